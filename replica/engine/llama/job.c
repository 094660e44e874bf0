
/*
 * Reading requests.
 *
 * Members that are null count as absent, and unknown keys are ignored, as
 * OpenAI's clients expect.  What this engine cannot do (tools, formats, several
 * choices) is an error, and not ignored.
 */

#include <stdlib.h>
#include <string.h>

#include "replica/engine/llama/ask_inner.h"


#define JOB_MESSAGES_MAX  65536

static void
job_free(core_job_t *job)
{
    size_t  i;

    for (i = 0; i < job->nmessages; i++) {
        free(job->messages[i].role);
        free(job->messages[i].text);
    }

    free(job->messages);
    free(job->text);
    free(job->ids);
    free(job->delivered);
    free(job->sample.bias);
    free(job);
}


/* The text of a message's parts, joined; NULL: not all are text. */
static char *
job_join(const json_t *parts)
{
    char         *text, *end;
    json_t       *part, *piece;
    size_t        i, len;
    const char   *type;

    len = 0;

    json_array_foreach(parts, i, part) {
        type = json_string_value(json_object_get(part, "type"));
        piece = json_object_get(part, "text");

        if (type == NULL || strcmp(type, "text") != 0
            || !json_is_string(piece)
            || strlen(json_string_value(piece)) != json_string_length(piece))
        {
            return NULL;
        }

        len += json_string_length(piece);
    }

    text = malloc(len + 1);

    if (text == NULL) {
        return NULL;
    }

    end = text;
    *end = '\0';

    json_array_foreach(parts, i, part) {
        end = stpcpy(end, json_string_value(json_object_get(part, "text")));
    }

    return text;
}


static int
job_read_message(ask_t *r, json_t *message, core_message_t *out)
{
    json_t      *content;
    const char  *role;

    role = json_string_value(json_object_get(message, "role"));
    content = json_object_get(message, "content");

    if (role == NULL) {
        return ask_refuse(r, "messages", "a message has no role");
    }

    out->role = strdup(strcmp(role, "developer") == 0 ? "system" : role);

    if (json_is_array(content)) {
        out->text = job_join(content);

    } else if (content == NULL || json_is_null(content)) {
        out->text = strdup("");

    } else {
        out->text = ask_string(content);
    }

    if (out->text == NULL || out->role == NULL) {
        return ask_refuse(r, "messages", "this engine reads text only, "
                          "without NUL");
    }

    return 0;
}


static int
job_read_messages(ask_t *r)
{
    json_t  *messages, *message;
    size_t   i, n;

    messages = ask_get(r, "messages");
    n = json_array_size(messages);

    if (n == 0 || n > JOB_MESSAGES_MAX) {
        return ask_refuse(r, "messages", "'messages' is an array of 1 to %d "
                          "messages", JOB_MESSAGES_MAX);
    }

    r->job->messages = calloc(n, sizeof(core_message_t));

    if (r->job->messages == NULL) {
        return -1;
    }

    r->job->nmessages = n;

    json_array_foreach(messages, i, message) {
        if (job_read_message(r, message, &r->job->messages[i]) != 0) {
            return -1;
        }
    }

    return 0;
}


static int
job_set_text(core_job_t *job, const char *text, size_t len)
{
    job->text = malloc(len + 1);

    if (job->text == NULL) {
        return -1;
    }

    memcpy(job->text, text, len);
    job->text[len] = '\0';
    job->text_len = len;

    return 0;
}


static int
job_read_ids(ask_t *r, const json_t *ids)
{
    json_t  *id;
    size_t   i;

    r->job->ids = malloc((json_array_size(ids) + 1) * sizeof(uint32_t));

    if (r->job->ids == NULL) {
        return -1;
    }

    json_array_foreach(ids, i, id) {
        if (!json_is_integer(id) || json_integer_value(id) < 0
            || json_integer_value(id) > INT32_MAX)
        {
            return ask_refuse(r, "prompt", "'prompt' is a text or an array "
                              "of token ids");
        }

        r->job->ids[i] = (uint32_t) json_integer_value(id);
    }

    r->job->nids = json_array_size(ids);

    return 0;
}


/* A text, its ids, or one of either in an array. */
static int
job_read_prompt(ask_t *r)
{
    json_t  *prompt, *first;

    prompt = ask_get(r, "prompt");
    first = json_array_get(prompt, 0);

    if (json_is_string(first) || json_is_array(first)) {
        if (json_array_size(prompt) > 1) {
            return ask_refuse(r, "prompt", "this engine takes one prompt");
        }

        prompt = first;
    }

    if (json_is_string(prompt)) {
        return job_set_text(r->job, json_string_value(prompt),
                            json_string_length(prompt));
    }

    if (json_array_size(prompt) > 0) {
        return job_read_ids(r, prompt);
    }

    return ask_refuse(r, "prompt", "'prompt' is a text or an array of token "
                      "ids");
}


static int
job_read_body(ask_t *r)
{
    json_error_t                       error;
    const Llmgateway__OpenaiRequest   *openai;

    openai = r->request->openai;

    if (openai->api != LLMGATEWAY__API__API_CHAT
        && openai->api != LLMGATEWAY__API__API_COMPLETIONS)
    {
        (void) ask_refuse(r, NULL, "this engine serves chat and completions");
        r->error->status = 404;
        return -1;
    }

    if (openai->body.len > JOB_BODY_BYTES) {
        (void) ask_refuse(r, NULL, "the body has more than %d MB",
                          JOB_BODY_BYTES >> 20);
        r->error->status = 413;
        return -1;
    }

    r->body = json_loadb((const char *) openai->body.data, openai->body.len,
                         JSON_ALLOW_NUL, &error);

    if (!json_is_object(r->body)) {
        return ask_refuse(r, NULL, "the body cannot be read: %.100s",
                          r->body == NULL ? error.text : "it is no object");
    }

    if (params_read(r) != 0) {
        return -1;
    }

    return openai->api == LLMGATEWAY__API__API_CHAT ? job_read_messages(r)
                                                    : job_read_prompt(r);
}


static int
job_read_delivered(core_job_t *job, const Llmgateway__Delivered *delivered)
{
    size_t  bytes;

    if (delivered == NULL) {
        return 0;
    }

    job->prompt_tokens = delivered->prompt_tokens;
    job->prompt_hash = delivered->prompt_hash;
    bytes = delivered->n_token_ids * sizeof(uint32_t);

    if (bytes > 0) {
        job->delivered = malloc(bytes);

        if (job->delivered == NULL) {
            return -1;
        }

        memcpy(job->delivered, delivered->token_ids, bytes);
        job->ndelivered = delivered->n_token_ids;
    }

    return 0;
}


core_job_t *
llama_job_create(const Llmgateway__GenerateRequest *request, hold_t *hold,
    job_error_t *error)
{
    int            rc;
    ask_t  r;

    memset(error, 0, sizeof(*error));
    memset(&r, 0, sizeof(r));
    r.request = request;
    r.hold = hold;
    r.error = error;
    r.job = calloc(1, sizeof(core_job_t));

    if (r.job == NULL) {
        return NULL;
    }

    r.job->free = job_free;
    r.job->sample.top_p = 1;
    r.job->sample.repeat_penalty = 1;

    if (request->openai != NULL) {
        rc = job_read_body(&r);

    } else {
        r.job->max_tokens = (uint32_t) request->max_tokens;
        rc = job_set_text(r.job, (const char *) request->prompt.data,
                          request->prompt.len);
    }

    if (rc == 0) {
        rc = job_read_delivered(r.job, request->delivered);
    }

    json_decref(r.body);

    if (rc != 0) {
        job_free(r.job);
        return NULL;
    }

    return r.job;
}
