
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/grpc/asker.h"
#include "llmgateway.pb-c.h"
#include "rollout/trial.h"


#define TRIAL_PROMPT  "Does this replica work?"

struct trial_s {
    asker_t         asker;
    int             is_final;       /* a final message has come */
    trial_done_pt   on_done;
    void           *data;
};


/* Ends and frees the trial.  error NULL: the replica works. */
static void
trial_end(trial_t *trial, const char *error)
{
    void           *data;
    trial_done_pt   on_done;

    on_done = trial->on_done;
    data = trial->data;

    trial_destroy(trial);
    on_done(data, error);
}


static void
trial_on_message(void *data, const uint8_t *message, size_t len)
{
    trial_t                       *trial = data;
    Llmgateway__GenerateResponse  *response;

    response = llmgateway__generate_response__unpack(NULL, len, message);
    if (response == NULL) {
        trial_end(trial, "its message cannot be read");
        return;
    }

    trial->is_final |= response->is_final;
    llmgateway__generate_response__free_unpacked(response, NULL);
}


static void
trial_on_end(void *data, asker_end_t end, int status, const char *text)
{
    char      error[TRIAL_ERROR_BYTES];
    trial_t  *trial = data;

    if (end != ASKER_ANSWERED) {
        trial_end(trial, text);

    } else if (status != LLMGW_GRPC_OK) {
        snprintf(error, sizeof(error), "%s%s%s",
                 llmgw_grpc_status_name(status), text[0] ? ": " : "", text);
        trial_end(trial, error);

    } else if (!trial->is_final) {
        trial_end(trial, "it ended without a final token");

    } else {
        trial_end(trial, NULL);
    }
}


static const asker_use_t  trial_use = {
    .on_message = trial_on_message,
    .on_end = trial_on_end
};


static int
trial_ask(trial_t *trial, const char *authority,
    const grpc_conn_options_t *options, const char *request_id,
    uint64_t timeout_ms)
{
    asker_question_t             question;
    Llmgateway__GenerateRequest  request = LLMGATEWAY__GENERATE_REQUEST__INIT;

    request.request_id = (char *) request_id;
    request.prompt.data = (uint8_t *) TRIAL_PROMPT;
    request.prompt.len = sizeof(TRIAL_PROMPT) - 1;
    request.max_tokens = 1;

    question.path = "/llmgateway.LLMReplica/Generate";
    question.authority = authority;
    question.message = &request.base;
    question.limit_ms = timeout_ms;
    question.deadline_ms = timeout_ms;

    if (asker_connect(&trial->asker, options, timeout_ms) != 0) {
        return -1;
    }

    return asker_ask(&trial->asker, &question);
}


trial_t *
trial_start(struct ev_loop *loop, const char *address,
    const grpc_conn_options_t *options, const char *request_id,
    uint64_t timeout_ms, trial_done_pt on_done, void *data, char *error)
{
    trial_t    *trial;
    address_t   parsed;

    if (address_parse(address, &parsed) != 0) {
        snprintf(error, TRIAL_ERROR_BYTES, "\"%s\" is no numeric address",
                 address);
        return NULL;
    }

    trial = calloc(1, sizeof(trial_t));
    if (trial == NULL) {
        snprintf(error, TRIAL_ERROR_BYTES, "out of memory");
        return NULL;
    }

    asker_init(&trial->asker, loop, &parsed, &trial_use, trial);
    trial->on_done = on_done;
    trial->data = data;

    if (trial_ask(trial, address, options, request_id, timeout_ms) != 0) {
        snprintf(error, TRIAL_ERROR_BYTES, "cannot connect: %s",
                 strerror(errno));
        trial_destroy(trial);
        return NULL;
    }

    return trial;
}


void
trial_destroy(trial_t *trial)
{
    asker_drop(&trial->asker);
    free(trial);
}
