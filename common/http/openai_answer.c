
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/http/openai_answer.h"


#define OPENAI_ANSWER_FIRST_BYTES  4096


static int openai_answer_event(void *answer, const char *data, size_t len,
    int is_error);


void
openai_answer_init(openai_answer_t *a,
    const openai_answer_callbacks_t *callbacks, void *data)
{
    memset(a, 0, sizeof(*a));
    a->callbacks = callbacks;
    a->data = data;
    sse_init(&a->sse, openai_answer_event, a);
}


void
openai_answer_done(openai_answer_t *a)
{
    sse_done(&a->sse);
    free(a->whole);
}


/* Stores what is wrong; only the first fault is kept. */
static int
openai_answer_fail(openai_answer_t *a, const char *why)
{
    if (a->error[0] == '\0') {
        snprintf(a->error, sizeof(a->error), "%s", why);
    }

    return -1;
}


/* --- bytes */

static int
openai_answer_stream(openai_answer_t *a, const char *bytes, size_t len)
{
    switch (sse_feed(&a->sse, bytes, len)) {

    case SSE_DONE:
        return 0;

    case SSE_ELIMIT:
        return openai_answer_fail(a, "an event is too long");

    case SSE_ENOMEM:
        return openai_answer_fail(a, "no memory");

    default:
        return -1;      /* the error of the event is stored already */
    }
}


static int
openai_answer_append(openai_answer_t *a, const char *bytes, size_t len)
{
    char    *bigger;
    size_t   need;

    if (len > OPENAI_ANSWER_WHOLE_BYTES - a->whole_len) {
        return openai_answer_fail(a, "the answer is too long");
    }

    need = a->whole_size > 0 ? a->whole_size : OPENAI_ANSWER_FIRST_BYTES;

    while (need < a->whole_len + len) {
        need *= 2;
    }

    if (need > a->whole_size) {
        bigger = realloc(a->whole, need);

        if (bigger == NULL) {
            return openai_answer_fail(a, "no memory");
        }

        a->whole = bigger;
        a->whole_size = need;
    }

    memcpy(a->whole + a->whole_len, bytes, len);
    a->whole_len += len;

    return 0;
}


int
openai_answer_feed(openai_answer_t *a, const char *bytes, size_t len)
{
    return a->is_stream ? openai_answer_stream(a, bytes, len)
                        : openai_answer_append(a, bytes, len);
}


/* --- objects */

/* {"error": {...}} of OpenAI, or an engine's own without that level. */
static void
openai_answer_error(openai_answer_t *a, const json_t *object)
{
    char          why[OPENAI_ANSWER_ERROR_BYTES];
    const char   *type, *code, *message;
    const json_t *error;

    error = json_object_get(object, "error");
    message = json_string_value(error);

    if (!json_is_object(error)) {
        error = object;
    }

    if (message == NULL) {
        message = json_string_value(json_object_get(error, "message"));
    }

    type = json_string_value(json_object_get(error, "type"));
    code = json_string_value(json_object_get(error, "code"));

    snprintf(why, sizeof(why), "%s%s%s%s%s",
             type != NULL ? type : "error",
             code != NULL ? " " : "", code != NULL ? code : "",
             message != NULL ? ": " : "", message != NULL ? message : "");

    (void) openai_answer_fail(a, why);
}


/* Takes a delta, a message, or a completion's choice itself. */
static int
openai_answer_choice(openai_answer_t *a, const json_t *choice)
{
    const char    *reason;
    const json_t  *said, *text;

    said = json_object_get(choice, a->is_stream ? "delta" : "message");
    text = json_is_object(said) ? json_object_get(said, "content")
                                : json_object_get(choice, "text");

    if (json_string_length(text) > 0
        && a->callbacks->on_text(a->data, json_string_value(text),
                                 json_string_length(text)) != 0)
    {
        return openai_answer_fail(a, "the text cannot be written");
    }

    reason = json_string_value(json_object_get(choice, "finish_reason"));

    if (reason != NULL) {
        snprintf(a->finish_reason, sizeof(a->finish_reason), "%s", reason);
    }

    return 0;
}


static int
openai_answer_object(openai_answer_t *a, const json_t *object)
{
    const json_t  *choice;

    if (a->callbacks->on_object(a->data, object) != 0) {
        return openai_answer_fail(a, "an object cannot be written");
    }

    if (json_object_get(object, "error") != NULL) {
        openai_answer_error(a, object);
        return -1;
    }

    choice = json_array_get(json_object_get(object, "choices"), 0);

    return choice != NULL ? openai_answer_choice(a, choice) : 0;
}


static int
openai_answer_json(openai_answer_t *a, const char *bytes, size_t len)
{
    int      rc;
    json_t  *object;

    object = json_loadb(bytes, len, JSON_ALLOW_NUL, NULL);

    rc = json_is_object(object) ? openai_answer_object(a, object)
                                : openai_answer_fail(a, "no JSON object came");
    json_decref(object);

    return rc;
}


/* Takes the error of an answer that is nothing else; it need not be JSON. */
static void
openai_answer_refusal(openai_answer_t *a, const char *bytes, size_t len)
{
    json_t  *object;

    object = json_loadb(bytes, len, 0, NULL);

    if (json_is_object(object)) {
        openai_answer_error(a, object);
    }

    json_decref(object);
}


static int
openai_answer_event(void *answer, const char *data, size_t len, int is_error)
{
    openai_answer_t  *a;

    a = answer;

    if (a->is_done) {
        return openai_answer_fail(a, "an event came behind [DONE]");
    }

    if (is_error) {
        openai_answer_refusal(a, data, len);
        return openai_answer_fail(a, "error");
    }

    if (len == 6 && memcmp(data, "[DONE]", 6) == 0) {
        a->is_done = 1;
        return 0;
    }

    return openai_answer_json(a, data, len);
}


/* --- the end */

/* Takes the body of an answer whose status is not 200. */
static void
openai_answer_refused(openai_answer_t *a, long status)
{
    char  why[OPENAI_ANSWER_ERROR_BYTES];

    openai_answer_refusal(a, a->whole, a->whole_len);
    snprintf(why, sizeof(why), "HTTP %ld%s%.900s", status,
             a->error[0] != '\0' ? ", " : "", a->error);
    memcpy(a->error, why, sizeof(why));
}


const char *
openai_answer_end(openai_answer_t *a, long status)
{
    if (status != 200) {
        openai_answer_refused(a, status);
        return a->error;
    }

    if (!a->is_stream && a->error[0] == '\0') {
        (void) openai_answer_json(a, a->whole, a->whole_len);
    }

    if (a->finish_reason[0] == '\0') {
        (void) openai_answer_fail(a, "the answer ended without finish_reason");
    }

    if (a->is_stream && !a->is_done) {
        (void) openai_answer_fail(a, "the stream ended without [DONE]");
    }

    return a->error[0] != '\0' ? a->error : NULL;
}
