
/*
 * Messages.  Most have no JSON in them; for logprobs chunk.c writes it.
 */

#include <stdlib.h>
#include <string.h>

#include "replica/engine/llama/chunk.h"


#define ANSWER_PIECE_BYTES  65536       /* of a whole answer: of Raw.data */

typedef Llmgateway__GenerateResponse  answer_message_t;


void
answer_init(answer_t *a, run_t *run)
{
    const Llmgateway__GenerateRequest  *request;

    request = run->request;
    a->run = run;
    a->want = request->want;
    a->has_role = (request->delivered != NULL);
    a->is_openai = (request->openai != NULL);
    a->is_chat = a->is_openai
                 && request->openai->api == LLMGATEWAY__API__API_CHAT;
    a->form = a->is_openai || a->want != 0 ? ANSWER_TEXT : ANSWER_PLAIN;
}


int
answer_shape(answer_t *a, int is_logprobs)
{
    const Llmgateway__OpenaiRequest  *openai;

    if (!is_logprobs) {
        return 0;
    }

    openai = a->run->request->openai;
    a->form = openai->stream ? ANSWER_CHUNKS : ANSWER_WHOLE;
    a->created = openai->created;
    a->id = strdup(openai->id);
    a->model = strdup(openai->model);
    a->logprobs = chunk_no_logprobs(a);

    return a->id != NULL && a->model != NULL && a->logprobs != NULL ? 0 : -1;
}


void
answer_done(answer_t *a)
{
    free(a->id);
    free(a->model);
    free(a->text);
    json_decref(a->logprobs);
    memset(a, 0, sizeof(*a));
}


static int
answer_send(answer_t *a, answer_message_t *message,
    Llmgateway__Prompt *prompt)
{
    if (a->form != ANSWER_PLAIN && !a->has_prompt) {
        llmgateway__prompt__init(prompt);
        prompt->tokens = a->prompt_tokens;
        prompt->hash = a->prompt_hash;
        message->prompt = prompt;
        a->has_prompt = 1;
    }

    return run_send(a->run, message);
}


static int
answer_add_whole(answer_t *a)
{
    char    *grown;
    size_t   need;

    need = a->text_len + a->hold->text_len + 1;

    if (need > a->text_size) {
        grown = realloc(a->text, need + need / 2);

        if (grown == NULL) {
            return -1;
        }

        a->text = grown;
        a->text_size = need + need / 2;
    }

    memcpy(a->text + a->text_len, a->hold->text, a->hold->text_len);
    a->text_len += a->hold->text_len;
    chunk_add_logprobs(a, a->logprobs);

    return 0;
}


/* Sets the ids, text and data of the tokens that are sent now; the caller frees
   *data.  0, or -1. */
static int
answer_fill(answer_t *a, answer_message_t *message, uint32_t *ids,
    char **data)
{
    size_t  i;

    *data = NULL;

    if (a->form == ANSWER_CHUNKS) {
        *data = chunk_make(a, NULL);

        if (*data == NULL) {
            return -1;
        }

        message->data.data = (uint8_t *) *data;
        message->data.len = strlen(*data);
    }

    if (*data == NULL || (a->want & LLMGATEWAY__WANT__WANT_TEXT)) {
        message->token.data = (uint8_t *) a->hold->text;
        message->token.len = a->hold->text_len;
    }

    if (a->want & LLMGATEWAY__WANT__WANT_IDS) {
        for (i = 0; i < a->hold->nout; i++) {
            ids[i] = a->hold->tokens[i].id;
        }

        message->n_token_ids = a->hold->nout;
        message->token_ids = ids;
    }

    return 0;
}


/* Counts the tokens of a message that was sent. */
static void
answer_went(answer_t *a)
{
    a->completion_tokens += (uint32_t) a->hold->nout;
    a->offset += chunk_characters(a->hold->text, a->hold->text_len);
    hold_sent(a->hold);
}


int
answer_tokens(answer_t *a)
{
    int                 rc;
    char               *data;
    uint32_t           *ids;
    answer_message_t    message;
    Llmgateway__Prompt  prompt;

    if (a->hold->nout == 0) {
        return 0;
    }

    if (a->form == ANSWER_WHOLE || (a->form == ANSWER_PLAIN && a->skip > 0)) {
        rc = a->form == ANSWER_WHOLE ? answer_add_whole(a) : 0;
        a->skip -= (a->skip > 0);
        answer_went(a);
        return rc;
    }

    ids = malloc(a->hold->nout * sizeof(uint32_t));

    if (ids == NULL) {
        return -1;
    }

    llmgateway__generate_response__init(&message);
    rc = answer_fill(a, &message, ids, &data);

    if (rc == 0) {
        rc = answer_send(a, &message, &prompt);
    }

    free(ids);
    free(data);
    answer_went(a);

    return rc;
}


/* Sends the last message. */
static int
answer_final(answer_t *a)
{
    answer_message_t  message;

    llmgateway__generate_response__init(&message);
    message.is_final = 1;

    return run_send(a->run, &message);
}


/* Sends why the answer ended, and its usage. */
static int
answer_finish(answer_t *a, const char *reason, char *data)
{
    answer_message_t     message;
    Llmgateway__Usage    usage;
    Llmgateway__Prompt   prompt;
    Llmgateway__Finish   finish, *finishes;

    llmgateway__generate_response__init(&message);
    llmgateway__finish__init(&finish);
    llmgateway__usage__init(&usage);
    finish.reason = (char *) reason;
    finishes = &finish;
    message.n_finish = 1;
    message.finish = &finishes;

    if (data != NULL) {
        message.data.data = (uint8_t *) data;
        message.data.len = strlen(data);

        if (answer_send(a, &message, &prompt) != 0) {
            return -1;
        }

        llmgateway__generate_response__init(&message);
    }

    usage.prompt_tokens = a->prompt_tokens;
    usage.completion_tokens = a->completion_tokens;
    message.usage = &usage;

    return answer_send(a, &message, &prompt);
}


static int
answer_raw(answer_t *a, const char *json)
{
    size_t              at, len;
    answer_message_t    message;
    Llmgateway__Raw     raw;
    Llmgateway__Prompt  prompt;

    len = strlen(json);

    for (at = 0; at < len; at += raw.data.len) {
        llmgateway__generate_response__init(&message);
        llmgateway__raw__init(&raw);
        message.raw = &raw;

        if (at == 0) {
            raw.status = 200;
            raw.content_type = "application/json";
        }

        raw.data.data = (uint8_t *) json + at;
        raw.data.len = len - at < ANSWER_PIECE_BYTES ? len - at
                                                     : ANSWER_PIECE_BYTES;

        if (answer_send(a, &message, &prompt) != 0) {
            return -1;
        }
    }

    return 0;
}


int
answer_end(answer_t *a, const char *reason)
{
    int    rc;
    char  *json;

    json = NULL;
    rc = answer_tokens(a);

    if (rc != 0 || a->form == ANSWER_PLAIN) {
        return rc != 0 ? -1 : answer_final(a);
    }

    if (a->form == ANSWER_CHUNKS || a->form == ANSWER_WHOLE) {
        json = a->form == ANSWER_CHUNKS ? chunk_make(a, reason)
                                        : chunk_whole(a, reason);

        if (json == NULL) {
            return -1;
        }
    }

    if (a->form == ANSWER_WHOLE) {
        rc = answer_raw(a, json);
    }

    if (rc == 0) {
        rc = answer_finish(a, reason, a->form == ANSWER_CHUNKS ? json : NULL);
    }

    free(json);

    return rc == 0 ? answer_final(a) : -1;
}


int
answer_progress(answer_t *a)
{
    answer_message_t  message;

    if (a->form == ANSWER_PLAIN) {
        return 0;
    }

    llmgateway__generate_response__init(&message);
    message.progress = 1;

    return run_send(a->run, &message);
}


int
answer_shards(answer_t *a, uint32_t failures, const char *last)
{
    answer_message_t    message;
    Llmgateway__Shards  shards;

    if (a->form == ANSWER_PLAIN) {
        return 0;
    }

    llmgateway__generate_response__init(&message);
    llmgateway__shards__init(&shards);
    shards.failures = failures;
    shards.last = (char *) last;
    message.shards = &shards;

    return run_send(a->run, &message);
}


int
answer_failure(answer_t *a, unsigned status, const char *message,
    const char *param, const char *code)
{
    int                   rc;
    char                 *body;
    json_t               *error;
    answer_message_t      response;
    Llmgateway__Failure   failure;

    if (!a->is_openai) {
        return 0;
    }

    error = json_pack("{s:{s:s, s:s, s:s?, s:s?}}", "error", "message",
                      message, "type", "invalid_request_error", "param",
                      param, "code", code);
    body = error != NULL ? json_dumps(error, JSON_COMPACT) : NULL;
    json_decref(error);

    if (body == NULL) {
        return -1;
    }

    llmgateway__generate_response__init(&response);
    llmgateway__failure__init(&failure);
    failure.status = status;
    failure.body.data = (uint8_t *) body;
    failure.body.len = strlen(body);
    response.failure = &failure;
    rc = run_send(a->run, &response);
    free(body);

    return rc;
}
