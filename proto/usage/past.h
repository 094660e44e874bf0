
/*
 * A gateway's usage so far, read from its files in steps: the state, and the
 * records of the log and its rotated files beyond it (books.h).
 *
 * A log's rotated files are all whose names begin with the log's: usage.log,
 * usage.log.1, usage.log.2.gz, usage.log-20261128.  Files whose last change was
 * before the state was written, or before this month began, are left out:
 * nothing in them counts now.  A minute is allowed for clocks and for a write
 * that took long.
 *
 * Files may be rotated meanwhile.  Each is known by its inode, and the folder
 * is looked through again until no file is new, so none is missed; a record
 * that is read twice counts once.
 */

#ifndef LLMGW_PAST_H
#define LLMGW_PAST_H

#include "proto/usage/books.h"


/* Most files of one log. */
#define LLMGW_PAST_FILES  4096

typedef struct llmgw_past_s  llmgw_past_t;

/*
 * Reports a file that is left out, or not read to its end.  why is constant;
 * error is an errno that says more, or 0.  path is valid during the call.
 */
typedef void (*llmgw_past_trouble_pt)(void *data, const char *path,
    const char *why, int error);

typedef struct {
    const char             *gateway;
    const char             *below;      /* as in books.h, or NULL */
    const char             *state;      /* a path; NULL: none */
    const char             *log;        /* a path; NULL: none */
    uint64_t                unix_ms;    /* now */
    llmgw_past_trouble_pt   on_trouble;
    void                   *data;
} llmgw_past_files_t;

typedef struct {
    uint64_t                records;    /* records read */
    uint32_t                files;      /* files of the log begun */
    int                     is_refused; /* there is a state, which is not
                                           used */
} llmgw_past_counts_t;


/* The paths of *files live until done().  NULL: no memory. */
llmgw_past_t *llmgw_past_begin(const llmgw_past_files_t *files);
void llmgw_past_done(llmgw_past_t *past);

/*
 * Does a step of about a millisecond.  1: call again; 0: everything is read;
 * -1: there is no memory for it.
 */
int llmgw_past_step(llmgw_past_t *past);

/* The usage that was read so far; the state is read before the log. */
const llmgw_books_t *llmgw_past_books(const llmgw_past_t *past);
const llmgw_past_counts_t *llmgw_past_counts(const llmgw_past_t *past);

#endif /* LLMGW_PAST_H */
