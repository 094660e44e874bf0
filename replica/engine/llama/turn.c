
/*
 * A run's turn: from the request to a sequence, from its events to messages.
 *
 * A stream continues here by its ids.  Infer without ids continues by its
 * position: the text is generated again from its start, which is exact, and
 * what the client has is left out.
 */

#include <stdio.h>
#include <string.h>

#include "replica/engine/llama/chunk.h"
#include "replica/engine/llama/job.h"
#include "replica/engine/llama/llama_inner.h"


static void
turn_release(llama_run_t *r)
{
    llama_t  *l;

    if (r->seq != NULL) {
        l = r->run.engine->data;

        if (r->remote != NULL) {
            l->remote.on_release(l->remote.data, r->remote);
            r->remote = NULL;
        }

        l->plugin->release(r->seq);
        r->seq = NULL;
    }

    hold_done(&r->hold);
    answer_done(&r->answer);
}


/* Sends how shards have failed under the run, also if others continued; it
   comes before the run's last message. */
static int
turn_report_failures(llama_run_t *r)
{
    llama_t          *l;
    llama_failure_t   failure;

    l = r->run.engine->data;

    if (r->remote == NULL) {
        return 0;
    }

    l->remote.failure(l->remote.data, r->remote, &failure);

    return failure.text[0] != '\0'
           ? answer_shards(&r->answer, failure.count, failure.text) : 0;
}


static void
turn_finish(llama_run_t *r, engine_end_t end, llmgw_grpc_status_t status,
    const char *text)
{
    turn_release(r);
    run_finish(&r->run, end, status, text);
}


static void
turn_no_memory(llama_run_t *r)
{
    turn_finish(r, ENGINE_FAILED, LLMGW_GRPC_RESOURCE_EXHAUSTED,
                 "out of memory");
}


/* The request's own fault. */
static void
turn_refuse(llama_run_t *r, unsigned status, const char *message,
    const char *param, const char *code)
{
    if (answer_failure(&r->answer, status, message, param, code) != 0) {
        turn_no_memory(r);
        return;
    }

    turn_finish(r, ENGINE_FAILED, status == 404 ? LLMGW_GRPC_NOT_FOUND
                                                 : LLMGW_GRPC_INVALID_ARGUMENT,
                 message);
}


/* Sends the last tokens, and why they are the last. */
static void
turn_complete(llama_run_t *r, const char *reason)
{
    if (turn_report_failures(r) != 0 || answer_end(&r->answer, reason) != 0) {
        turn_no_memory(r);
        return;
    }

    turn_finish(r, ENGINE_FINISHED, LLMGW_GRPC_OK, NULL);
}


static void
turn_on_token(llama_run_t *r, const core_event_t *event)
{
    char      piece[HOLD_PIECE_BYTES];
    size_t    n;
    hold_t   *h;
    llama_t  *l;

    l = r->run.engine->data;
    h = &r->hold;
    n = l->plugin->piece(l->core, event->id, piece, sizeof(piece));

    if (hold_add(h, event->id, piece, n, &event->logprobs) != 0
        || hold_take(h, 0) != 0)
    {
        turn_no_memory(r);
        return;
    }

    if (h->is_stopped) {
        turn_complete(r, "stop");
        return;
    }

    r->has_sent |= h->nout > 0;

    if (answer_tokens(&r->answer) != 0) {
        turn_no_memory(r);
    }
}


static void
turn_on_end(llama_run_t *r, const char *reason)
{
    if (hold_take(&r->hold, 1) != 0) {
        turn_no_memory(r);
        return;
    }

    turn_complete(r, r->hold.is_stopped ? "stop" : reason);
}


/* Refuses a request that is too long.  tokens: of the prompt; 0: too many to be
   counted. */
static void
turn_on_context(llama_run_t *r, uint32_t tokens)
{
    char            message[256];
    const llama_t  *l;

    l = r->run.engine->data;

    if (r->answer.completion_tokens > 0) {
        turn_finish(r, ENGINE_FAILED, LLMGW_GRPC_FAILED_PRECONDITION,
                    "the context is smaller here");
        return;
    }

    if (tokens > 0) {
        snprintf(message, sizeof(message), "the model's context is %u tokens: "
                 "the prompt has %u, and the answer has to fit as well",
                 l->facts.context, tokens);

    } else {
        snprintf(message, sizeof(message), "the prompt is longer than any of "
                 "%u tokens, the model's context", l->facts.context);
    }

    turn_refuse(r, 400, message, r->answer.is_chat ? "messages" : "prompt",
                "context_length_exceeded");
}


/* Makes the text of the tokens that the client has, for its length. */
static int
turn_count_delivered(llama_run_t *r)
{
    char                          piece[HOLD_PIECE_BYTES];
    size_t                        i, n;
    llama_t                      *l;
    const Llmgateway__Delivered  *delivered;

    l = r->run.engine->data;
    delivered = r->run.request->delivered;

    for (i = 0; delivered != NULL && i < delivered->n_token_ids; i++) {
        n = l->plugin->piece(l->core, delivered->token_ids[i], piece,
                             sizeof(piece));

        if (hold_whole(&r->hold.text, &r->hold.text_size, &r->hold.text_len,
                       piece, n) != 0)
        {
            return -1;
        }

        r->answer.offset += chunk_characters(r->hold.text,
                                             r->hold.text_len);
    }

    return 0;
}


/* The status of a lost sequence: if shards are full, another replica may serve
   the request.  A request that is too long is not the replica's fault. */
static llmgw_grpc_status_t
turn_lost_status(const llama_run_t *r, const char *reason)
{
    if (r->run.sent == 0 && strcmp(reason, CORE_FULL) == 0) {
        return LLMGW_GRPC_RESOURCE_EXHAUSTED;
    }

    if (r->run.sent == 0 && strcmp(reason, CORE_CONTEXT_FULL) == 0) {
        return LLMGW_GRPC_FAILED_PRECONDITION;
    }

    return LLMGW_GRPC_UNAVAILABLE;
}


static void
turn_on_failed(llama_run_t *r, const core_event_t *event)
{
    char                 text[CORE_TEXT_BYTES], reason[CORE_REASON_BYTES];
    llmgw_grpc_field_t   trailer = { "llmgw-reason", reason };
    llmgw_grpc_status_t  status;

    if (event->reason == NULL) {
        turn_finish(r, ENGINE_FAILED, LLMGW_GRPC_UNAVAILABLE,
                    "libllama cannot decode");
        return;
    }

    status = turn_lost_status(r, event->reason);
    snprintf(text, sizeof(text), "%s", event->text);
    snprintf(reason, sizeof(reason), "%s", event->reason);
    (void) turn_report_failures(r);         /* its status is due as well */
    turn_release(r);
    run_finish_with(&r->run, ENGINE_FAILED, status, text, &trailer, 1);
}


static void
turn_on_event(llama_run_t *r, const core_event_t *event)
{
    switch (event->kind) {

    case CORE_PROMPT:
        r->answer.prompt_tokens = event->tokens;
        r->answer.prompt_hash = event->hash;
        break;

    case CORE_TOKEN:
        turn_on_token(r, event);
        break;

    case CORE_STOP:
        turn_on_end(r, "stop");
        break;

    case CORE_LENGTH:
        turn_on_end(r, "length");
        break;

    case CORE_CONTEXT:
        turn_on_context(r, event->tokens);
        break;

    case CORE_NO_TEMPLATE:
        turn_refuse(r, 400, "the model has no chat template that libllama "
                     "knows: use /v1/completions", "messages", NULL);
        break;

    case CORE_BAD_PROMPT:
        turn_refuse(r, 400, "the prompt has no tokens, or ids that the model "
                     "does not have", "prompt", NULL);
        break;

    case CORE_OTHER_PROMPT:
        turn_finish(r, ENGINE_FAILED, LLMGW_GRPC_FAILED_PRECONDITION,
                     "the prompt has other tokens here");
        break;

    default:
        turn_on_failed(r, event);
    }
}


void
turn_pump(run_t *run)
{
    llama_t       *l;
    llama_run_t   *r;
    core_event_t   event;

    l = run->engine->data;
    r = (llama_run_t *) run;

    while (r->seq != NULL && !run_is_full(run)
           && l->plugin->take(r->seq, &event) == 0)
    {
        turn_on_event(r, &event);
    }
}


/* Checks Infer's number of tokens; OpenAI's requests are checked by job.c. */
llmgw_grpc_status_t
turn_judge(engine_t *engine, const Llmgateway__GenerateRequest *request,
    char *text, size_t bytes)
{
    if (request->openai == NULL && request->max_tokens < 1) {
        snprintf(text, bytes, "max_tokens is %d, not at least 1",
                 request->max_tokens);
        return LLMGW_GRPC_INVALID_ARGUMENT;
    }

    if (request->tokens_already_generated < 0) {
        snprintf(text, bytes, "tokens_already_generated is %d",
                 request->tokens_already_generated);
        return LLMGW_GRPC_INVALID_ARGUMENT;
    }

    return LLMGW_GRPC_OK;
}


/* Why the request cannot be continued here, which is reported before any
   token. */
static const char *
turn_cannot_resume(const llama_run_t *r, const core_job_t *job)
{
    const llama_t                      *l;
    const Llmgateway__GenerateRequest  *request;

    l = r->run.engine->data;
    request = r->run.request;

    if (request->tokens_already_generated == 0 || job->ndelivered > 0) {
        return NULL;
    }

    if (r->answer.form != ANSWER_PLAIN) {
        return "this engine resumes by token ids";
    }

    return l->facts.is_exact ? NULL : "this engine is not exact, so it "
                                      "resumes by token ids only";
}


void
turn_start(run_t *run)
{
    llama_t      *l;
    core_job_t   *job;
    const char   *why;
    job_error_t   error;
    llama_run_t  *r;

    l = run->engine->data;
    r = (llama_run_t *) run;
    answer_init(&r->answer, run);
    job = llama_job_create(run->request, &r->hold, &error);

    if (job == NULL) {
        if (error.status == 0) {
            turn_no_memory(r);
            return;
        }

        turn_refuse(r, error.status, error.message, error.param, error.code);
        return;
    }

    r->answer.plugin = l->plugin;
    r->answer.core = l->core;
    r->answer.hold = &r->hold;
    r->answer.completion_tokens = (uint32_t) job->ndelivered;

    if (answer_shape(&r->answer, job->sample.is_logprobs) != 0
        || turn_count_delivered(r) != 0)
    {
        job->free(job);
        turn_no_memory(r);
        return;
    }

    why = turn_cannot_resume(r, job);

    if (why != NULL) {
        job->free(job);
        turn_finish(r, ENGINE_FAILED, LLMGW_GRPC_FAILED_PRECONDITION, why);
        return;
    }

    if (job->ndelivered == 0) {
        r->answer.skip = (uint32_t) run->request->tokens_already_generated;
    }

    job->data = &r->remote;
    run_drop_request(run);
    r->seq = l->plugin->submit(l->core, job);

    if (r->seq == NULL) {
        turn_no_memory(r);
    }
}


void
turn_cancel(run_t *run)
{
    turn_release((llama_run_t *) run);
}


void
turn_progress(run_t *run, int has_moved)
{
    llama_run_t  *r;

    r = (llama_run_t *) run;

    if (has_moved && !r->has_sent && answer_progress(&r->answer) != 0) {
        turn_no_memory(r);
        return;
    }

    r->has_sent = 0;
}
