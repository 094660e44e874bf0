
/*
 * Events like the last one.
 *
 * From token to token an engine's events differ in their text and their ids
 * alone.  So the bytes of the last event are kept, with the places of these two
 * in it.  An event that is equal everywhere else means the same: it is not
 * walked, and its chunk is the last chunk with another text.
 *
 *   event   {"id":"a",..."delta":{"content":" the"},..."token_ids":[279]}]}
 *           '------- equal ----------------' text '---- equal -----' ids '-'
 *   chunk   {"id":"chatcmpl-1",..."delta":{"content":" the"},...}]}
 *           '------- stays --------------------------' text ' moves '
 *
 * An event is kept if all that it said is in its bytes: it was no choice's
 * first or last, had no usage, and one text.
 */

#include <string.h>

#include "replica/engine/dialect/dialect_inner.h"


void
again_begin(dialect_call_t *call)
{
    again_t  *a;

    a = &call->again;
    a->nspans = 0;
    a->text.p = NULL;
    a->ids.p = NULL;
    a->is_odd = 0;
}


void
again_text(dialect_call_t *call, value_t text)
{
    call->again.is_odd |= call->again.text.p != NULL;
    call->again.text = text;
}


void
again_ids(dialect_call_t *call, value_t ids)
{
    call->again.is_odd |= call->again.ids.p != NULL || call->keeps_ids;
    call->again.ids = ids;
}


/* Whether the event said nothing but its text and ids. */
static int
again_is_plain(const dialect_call_t *call)
{
    const Llmgateway__GenerateResponse  *m;

    m = &call->message;

    return call->again.text.p != NULL && !call->again.is_odd
           && call->has_message && m->n_finish == 0 && m->usage == NULL
           && m->prompt == NULL
           && m->resume_by == LLMGATEWAY__RESUME_BY__RESUME_AS_ASKED;
}


static void
again_span(again_t *a, const char *event, value_t value, int is_text)
{
    again_span_t  *span;

    span = &a->spans[a->nspans++];
    span->begin = (size_t) (value.p - event);
    span->end = (size_t) (value.end - event);
    span->is_text = is_text;
}


void
again_keep(dialect_call_t *call, value_t event)
{
    again_t  *a;

    a = &call->again;

    if (!again_is_plain(call)) {
        return;
    }

    a->event.len = 0;
    buf_value(&a->event, event);

    if (a->event.failed) {
        return;
    }

    if (a->ids.p != NULL && a->ids.p < a->text.p) {
        again_span(a, event.p, a->ids, 0);
    }

    again_span(a, event.p, a->text, 1);

    if (a->ids.p > a->text.p) {
        again_span(a, event.p, a->ids, 0);
    }

    a->chunk_end = a->chunk_text + (size_t) (a->text.end - a->text.p);
    a->chunk_len = call->data.len;
}


/* A text that says something, at p; 0: there is none. */
static int
again_read_text(const char *p, const char *end, value_t *text)
{
    text->p = p;
    text->end = value_string_end(p, end);

    return text->end != NULL && text->end - p > 2;
}


static int
again_read_ids(const char *p, const char *end, value_t *ids)
{
    const char  *last;

    last = p < end && *p == '[' ? memchr(p, ']', (size_t) (end - p)) : NULL;

    return last != NULL && value_check(p, (size_t) (last + 1 - p), ids) == 0;
}


/* The values of the spans, if the event is equal everywhere else. */
static int
again_match(const again_t *a, const char *p, const char *end, value_t *values)
{
    size_t  i, at, equal;

    at = 0;

    for (i = 0; i <= a->nspans; i++) {
        equal = (i < a->nspans ? a->spans[i].begin : a->event.len) - at;

        if ((size_t) (end - p) < equal
            || memcmp(p, a->event.data + at, equal) != 0)
        {
            return 0;
        }

        p += equal;

        if (i == a->nspans) {
            break;
        }

        if (!(a->spans[i].is_text ? again_read_text(p, end, &values[i])
                                  : again_read_ids(p, end, &values[i])))
        {
            return 0;
        }

        p = values[i].end;
        at = a->spans[i].end;
    }

    return p == end;
}


/* The last chunk stands in call->data still. */
static void
again_chunk(dialect_call_t *call, value_t text)
{
    buf_t    *data;
    size_t    len, rest;
    again_t  *a;

    a = &call->again;
    data = &call->data;
    len = (size_t) (text.end - text.p);
    rest = a->chunk_len - a->chunk_end;
    data->len = a->chunk_len;

    if (len > a->chunk_end - a->chunk_text) {
        buf_add(data, text.p, len - (a->chunk_end - a->chunk_text));
    }

    if (data->failed) {
        return;
    }

    memmove(data->data + a->chunk_text + len, data->data + a->chunk_end, rest);
    memcpy(data->data + a->chunk_text, text.p, len);

    a->chunk_end = a->chunk_text + len;
    a->chunk_len = a->chunk_end + rest;
    data->len = a->chunk_len;
}


int
again_event(dialect_call_t *call, const char *data, size_t len,
    dialect_do_t *next)
{
    int       is_wrong;
    size_t    i;
    again_t  *a;
    value_t   values[2];

    a = &call->again;

    if (a->nspans == 0 || !again_match(a, data, data + len, values)) {
        return 0;
    }

    is_wrong = 0;

    for (i = 0; i < a->nspans; i++) {
        if (a->spans[i].is_text) {
            value_string(values[i], &call->token);
            again_chunk(call, values[i]);

        } else if (call->want & LLMGATEWAY__WANT__WANT_IDS) {
            message_ids(call, values[i], &is_wrong);
        }
    }

    *next = is_wrong ? call_malformed(call, "a chunk of another form "
                                             "than OpenAI's")
                     : message_end(call, 1);

    return 1;
}
