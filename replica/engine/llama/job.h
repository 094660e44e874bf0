
/*
 * What a request asks of the model: out of an OpenAI body, or of Infer's
 * prompt.  Pure but for memory.
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
 * The job, and the stop strings into hold->stops.  NULL: see error; status 0:
 * out of memory.
 */
core_job_t *llama_job_create(const Llmgateway__GenerateRequest *request,
    hold_t *hold, job_error_t *error);

#endif /* JOB_H */
