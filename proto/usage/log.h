
/*
 * A log of usage records as a file, plain or compressed by gzip, read in steps.
 *
 * A line that is no record is counted and skipped.  A record may have been cut
 * off, by a full disk or by a process that was killed while it wrote: then the
 * whole record after it counts, in the next line or in the same one.  Bytes
 * after the last newline are being written, and are not read.
 */

#ifndef LLMGW_USAGE_LOG_H
#define LLMGW_USAGE_LOG_H

#include "proto/usage/record.h"


/* Lines that a step reads within a millisecond. */
#define LLMGW_USAGE_LOG_STEP_LINES  200

typedef struct llmgw_usage_log_s  llmgw_usage_log_t;

/* Returns 0; any other value ends the reading, and step() returns -1. */
typedef int (*llmgw_usage_on_record_pt)(void *data,
    const llmgw_usage_source_t *source, const llmgw_usage_t *usage);

typedef struct {
    uint64_t     lines;
    uint64_t     records;
    uint64_t     wrong;                 /* lines that are neither empty nor a
                                           record */
    uint64_t     wrong_line;            /* number of the first of them */
    const char  *wrong_why;             /* constant */
} llmgw_usage_log_counts_t;


/*
 * Opens a log.  NULL: errno says why.  For a path that is a pipe, the caller
 * may have to wait.
 */
llmgw_usage_log_t *llmgw_usage_log_open(const char *path);
void llmgw_usage_log_close(llmgw_usage_log_t *log);

/*
 * Reads that many lines.  1: call again; 0: the end; -1: on_record() ended the
 * reading, or the file cannot be read further, for example a compressed one
 * that is cut off.
 */
int llmgw_usage_log_step(llmgw_usage_log_t *log, uint32_t lines,
    llmgw_usage_on_record_pt on_record, void *data);

const llmgw_usage_log_counts_t *llmgw_usage_log_counts(
    const llmgw_usage_log_t *log);

#endif /* LLMGW_USAGE_LOG_H */
