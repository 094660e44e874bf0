
/*
 * Reads what a request asks of the model from an OpenAI body, or from Infer's
 * prompt.  Pure except for memory.
 */

#ifndef JOB_H
#define JOB_H

#include "llmgateway.pb-c.h"
#include "replica/engine/llama/core.h"
#include "replica/engine/llama/hold.h"


/* Above it, reading the JSON would hold up the other streams. */
#define JOB_BODY_BYTES  (8 * 1024 * 1024)

typedef struct {
    unsigned     status;        /* HTTP */
    const char  *param;         /* NULL: none */
    const char  *code;          /* NULL: none */
    char         message[256];
} job_error_t;


/*
 * Returns the job, and copies the stop strings into hold->stops.  NULL: see
 * error, whose status is 0 if memory ran out.
 */
core_job_t *llama_job_create(const Llmgateway__GenerateRequest *request,
    hold_t *hold, job_error_t *error);

#endif /* JOB_H */
