
/*
 * A request while it is read: its body's JSON, and the job that it becomes.
 * Functions that return -1 have said why by ask_refuse(), or there is no
 * memory.
 */

#ifndef ASK_INNER_H
#define ASK_INNER_H

#include <jansson.h>

#include "replica/engine/llama/job.h"


typedef struct {
    const Llmgateway__GenerateRequest  *request;
    json_t                             *body;
    core_job_t                         *job;
    hold_t                             *hold;
    job_error_t                        *error;
} ask_t;


/* The request's own fault: 400.  Returns -1. */
int ask_refuse(ask_t *ask, const char *param, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* NULL: absent, which null is, too. */
json_t *ask_get(const ask_t *ask, const char *key);

/* Between two bounds; absent: *out stays.  0, or -1. */
int ask_number(ask_t *ask, const char *key, double least, double most,
    float *out);
int ask_integer(ask_t *ask, const char *key, int64_t least, int64_t most,
    int64_t *out);

/* A string without NUL, copied; NULL: it is none, or no memory. */
char *ask_string(const json_t *value);

/* params.c: all but the prompt.  0, or -1. */
int params_read(ask_t *ask);

#endif /* ASK_INNER_H */
