
/*
 * A gateway's usage so far, read from its files in steps: the state, and the
 * records of the log and its rotated files beyond it (books.h).
 *
 * A log's rotated files are all whose names begin with the log's: usage.log,
 * usage.log.1, usage.log.2.gz, usage.log-20261128.  Left out are those that
 * were changed last before the state was written, or before this month began:
 * nothing in them counts now.  A minute is allowed for clocks and for a write
 * that took long.
 *
 * Files may be rotated meanwhile.  Each is known by its inode, and the folder
 * is looked through again until no file is new, so none is missed; what is read
 * twice is a double, and counts once.
 */

#ifndef LLMGW_PAST_H
#define LLMGW_PAST_H

#include "proto/usage/books.h"


/* Files of one log. */
#define LLMGW_PAST_FILES  4096

typedef struct llmgw_past_s  llmgw_past_t;

/*
 * A file that is left out, or not read to its end: why (constant), and errno
 * where that says more, or else 0.  path lives as long as the call.
 */
typedef void (*llmgw_past_trouble_pt)(void *data, const char *path,
    const char *why, int error);

typedef struct {
    const char             *gateway;
    const char             *below;      /* books.h; or NULL */
    const char             *state;      /* a path; NULL: none */
    const char             *log;        /* the same */
    uint64_t                unix_ms;    /* now */
    llmgw_past_trouble_pt   on_trouble;
    void                   *data;
} llmgw_past_files_t;

typedef struct {
    uint64_t                records;    /* read */
    uint32_t                files;      /* of the log, begun */
    int                     is_refused; /* there is a state, and it does not
                                           count */
} llmgw_past_counts_t;


/* The paths of *files live until done().  NULL: no memory. */
llmgw_past_t *llmgw_past_begin(const llmgw_past_files_t *files);
void llmgw_past_done(llmgw_past_t *past);

/*
 * A step takes about a millisecond.  1: call again; 0: all is read; -1: there
 * is no memory for it.
 */
int llmgw_past_step(llmgw_past_t *past);

/* The amount read so far; the state is read before the log. */
const llmgw_books_t *llmgw_past_books(const llmgw_past_t *past);
const llmgw_past_counts_t *llmgw_past_counts(const llmgw_past_t *past);

#endif /* LLMGW_PAST_H */
