
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/openai_answer.h"


#define OPENAI_ANSWER_FIRST_BYTES  4096


void
openai_answer_init(openai_answer_t *a,
    const openai_answer_callbacks_t *callbacks, void *data)
{
    memset(a, 0, sizeof(*a));
    a->callbacks = callbacks;
    a->data = data;
}


void
openai_answer_done(openai_answer_t *a)
{
    free(a->line);
    free(a->event);
}


/* The first thing that is wrong counts. */
static int
openai_answer_fail(openai_answer_t *a, const char *why)
{
    if (a->error[0] == '\0') {
        snprintf(a->error, sizeof(a->error), "%s", why);
    }

    return -1;
}


/* 0, or -1: beyond the limit, or no memory.  A NUL stands behind the bytes. */
static int
openai_answer_append(char **buf, size_t *len, size_t *size, size_t limit,
    const char *bytes, size_t n)
{
    char    *bigger;
    size_t   need;

    if (n > limit || *len > limit - n) {
        return -1;
    }

    need = *size > 0 ? *size : OPENAI_ANSWER_FIRST_BYTES;

    while (need < *len + n + 1) {
        need *= 2;
    }

    if (need > *size) {
        bigger = realloc(*buf, need);

        if (bigger == NULL) {
            return -1;
        }

        *buf = bigger;
        *size = need;
    }

    memcpy(*buf + *len, bytes, n);
    *len += n;
    (*buf)[*len] = '\0';

    return 0;
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


/* A delta, a message, or a completion's choice itself. */
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


/* --- events */

static int
openai_answer_event(openai_answer_t *a)
{
    size_t  len;

    len = a->event_len;
    a->event_len = 0;

    if (len == 0) {
        return 0;
    }

    if (a->is_done) {
        return openai_answer_fail(a, "an event came behind [DONE]");
    }

    if (len == 6 && memcmp(a->event, "[DONE]", 6) == 0) {
        a->is_done = 1;
        return 0;
    }

    return openai_answer_json(a, a->event, len);
}


static int
openai_answer_line(openai_answer_t *a)
{
    size_t       len;
    const char  *value;

    len = a->line_len;
    a->line_len = 0;

    if (len > 0 && a->line[len - 1] == '\r') {
        len--;
    }

    if (len == 0) {
        return openai_answer_event(a);
    }

    if (len < 5 || memcmp(a->line, "data:", 5) != 0) {
        return 0;       /* a comment, or a field that the API does not use */
    }

    value = a->line + (len > 5 && a->line[5] == ' ' ? 6 : 5);

    if ((a->event_len > 0
         && openai_answer_append(&a->event, &a->event_len, &a->event_size,
                                 OPENAI_ANSWER_EVENT_BYTES, "\n", 1) != 0)
        || openai_answer_append(&a->event, &a->event_len, &a->event_size,
                                OPENAI_ANSWER_EVENT_BYTES, value,
                                (size_t) (a->line + len - value)) != 0)
    {
        return openai_answer_fail(a, "an event is too long");
    }

    return 0;
}


int
openai_answer_feed(openai_answer_t *a, const char *bytes, size_t len)
{
    size_t       n, limit;
    const char  *end;

    limit = a->is_stream ? OPENAI_ANSWER_EVENT_BYTES
                         : OPENAI_ANSWER_WHOLE_BYTES;

    for (; len > 0; bytes += n, len -= n) {
        end = a->is_stream ? memchr(bytes, '\n', len) : NULL;
        n = end != NULL ? (size_t) (end - bytes) : len;

        if (openai_answer_append(&a->line, &a->line_len, &a->line_size, limit,
                                 bytes, n) != 0)
        {
            return openai_answer_fail(a, "the answer is too long");
        }

        if (end == NULL) {
            break;
        }

        n++;

        if (openai_answer_line(a) != 0) {
            return -1;
        }
    }

    return 0;
}


/* --- the end */

/* What came with a status that is not 200; it need not be JSON. */
static void
openai_answer_refused(openai_answer_t *a, long status)
{
    char     why[OPENAI_ANSWER_ERROR_BYTES];
    json_t  *object;

    object = json_loadb(a->line != NULL ? a->line : "", a->line_len, 0, NULL);

    if (json_is_object(object)) {
        openai_answer_error(a, object);
    }

    json_decref(object);

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
        (void) openai_answer_json(a, a->line != NULL ? a->line : "",
                                  a->line_len);
    }

    if (a->finish_reason[0] == '\0') {
        (void) openai_answer_fail(a, "the answer ended without finish_reason");
    }

    if (a->is_stream && !a->is_done) {
        (void) openai_answer_fail(a, "the stream ended without [DONE]");
    }

    return a->error[0] != '\0' ? a->error : NULL;
}
