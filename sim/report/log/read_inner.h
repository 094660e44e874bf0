
/*
 * The line of the decision log that is being read, and readers of its members.
 */

#ifndef REPORT_LOG_READ_INNER_H
#define REPORT_LOG_READ_INNER_H

#include <jansson.h>

#include "sim/report/log/read.h"


/* A line, and where its errors are reported. */
typedef struct {
    report_log_reader_t  *reader;
    work_error_t         *error;
    json_t               *root;
} log_line_t;


/* All return 0, or -1 and an error that names file and line. */

int log_fail(const log_line_t *l, const char *what, const char *name);

int log_text(const log_line_t *l, const json_t *of, const char *name,
    char *text, size_t size);

/* Likewise for an optional member; a missing one is "". */
int log_word(const log_line_t *l, const json_t *of, const char *name,
    char *text, size_t size);

/*
 * has: NULL if the member is required; otherwise set to whether it is present.
 */
int log_int(const log_line_t *l, const json_t *of, const char *name,
    int64_t max, int64_t *number, int *has);

int log_uint32(const log_line_t *l, const json_t *of, const char *name,
    uint32_t *number);
int log_double(const log_line_t *l, const json_t *of, const char *name,
    double *number);

/*
 * Reads 64 bits, which do not fit into a JSON number: a text of 16 hexadecimal
 * digits.  *has is set to whether the member is present.
 */
int log_hex(const log_line_t *l, const char *name, uint64_t *number,
    int *has);

/* Reads the worker that wrote the line; 0: the only one. */
int log_worker(const log_line_t *l, int64_t *worker);

/* policies.c: takes note of how a worker chooses from a pool. */
int log_policy_line(const log_line_t *l);

#endif /* REPORT_LOG_READ_INNER_H */
