
/*
 * A request while it is read: its body's JSON, and the job that it becomes.
 * Functions that return -1 have given the reason to ask_refuse(), or memory ran
 * out.
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


/* Refuses the request with 400, by its own fault.  Returns -1. */
int ask_refuse(ask_t *ask, const char *param, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* The value of a key; NULL: it is absent or null. */
json_t *ask_get(const ask_t *ask, const char *key);

/* Reads a number between two bounds; if it is absent, *out stays.  0, or -1. */
int ask_number(ask_t *ask, const char *key, double least, double most,
    float *out);
int ask_integer(ask_t *ask, const char *key, int64_t least, int64_t most,
    int64_t *out);

/* A copy of a string without NUL; NULL: it is no such string, or out of
   memory. */
char *ask_string(const json_t *value);

/* params.c: reads all but the prompt.  0, or -1. */
int params_read(ask_t *ask);

#endif /* ASK_INNER_H */
