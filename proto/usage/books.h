
/*
 * The usage of each account of a gateway before its nginx started: the state
 * file, and the records of the log beyond it.
 *
 * The state file has the sums of each account, and the record and zone up to
 * which they go.  A line each:
 *
 *     {"llmgw_usage_state":1,"gateway":"gw1","birth":"019a..."}
 *     {"key":"alice","n":42,"day":20785,"day_tokens":151,"month":24322,
 *      "month_tokens":9000}                                     (in one line)
 *     {"end":1}                                  how many lines of keys
 *
 * day and month are those of proto/date.h.  A record counts beside the state if
 *
 *     its birth is later than the state's, or
 *     it is the state's, and n is greater than that of its account's line,
 *
 * and it was not there before (seen.h).  So a state may be written account by
 * account while requests continue: each line is right by itself, and no
 * consistent snapshot is needed.
 *
 *   start     books_create(), books_state() if there is a file, then
 *             books_record() of each record of the log and its rotated files,
 *             in any order; then books_at() for each account, and
 *             llmgw_accounts_base()
 *   takeover  the same, once the older generation of nginx has ended, with that
 *             generation's last state; `below` is the own birth, so that what
 *             the own zone has counted is left out
 */

#ifndef LLMGW_BOOKS_H
#define LLMGW_BOOKS_H

#include "proto/usage/record.h"
#include "proto/usage/sums.h"


/* A line of the state with its newline: a name may need two bytes for one. */
#define LLMGW_STATE_LINE_BYTES  512

/* Accounts of a gateway in one month; a zone holds some 10,000 of them. */
#define LLMGW_BOOKS_ACCOUNTS    1000000

typedef struct llmgw_books_s  llmgw_books_t;

typedef struct {
    char          name[LLMGW_KEY_NAME_BYTES];
    llmgw_sums_t  sums;
    uint64_t      n;                    /* of the state's zone; 0: not in the
                                           state */
} llmgw_books_account_t;


/*
 * below: records of this birth and later ones do not count; NULL: all may
 * count.  Returns NULL if there is no memory.
 */
llmgw_books_t *llmgw_books_create(const char *gateway, const char *below);
void llmgw_books_destroy(llmgw_books_t *books);

/*
 * Takes that many lines of a state file's text, from *at on, which is 0 at
 * first.  1: call again; 0: complete.  -1: it is not a state, is cut off, or is
 * another gateway's; *why (constant) has the reason, and the books are empty.
 */
int llmgw_books_state(llmgw_books_t *books, const char *text, size_t len,
    size_t *at, uint32_t lines, const char **why);

/*
 * Takes a record: an llmgw_usage_on_record_pt with the books as its data.  0;
 * -1: the books are full, or there is no memory.
 */
int llmgw_books_record(void *books, const llmgw_usage_source_t *source,
    const llmgw_usage_t *usage);

/* The i-th account, from 0; NULL: no more. */
const llmgw_books_account_t *llmgw_books_at(const llmgw_books_t *books,
    size_t i);

/*
 * The state's birth, which the birth of a new zone has to exceed; "": no state.
 */
const char *llmgw_books_birth(const llmgw_books_t *books);

/* Write a line with its newline, and return its length. */
size_t llmgw_state_head(char line[LLMGW_STATE_LINE_BYTES],
    const llmgw_usage_source_t *source);
size_t llmgw_state_account(char line[LLMGW_STATE_LINE_BYTES],
    const char *name, const llmgw_sums_t *sums, uint64_t n);
size_t llmgw_state_end(char line[LLMGW_STATE_LINE_BYTES], uint64_t accounts);

#endif /* LLMGW_BOOKS_H */
