
/*
 * The client's body with some members changed.
 *
 * The gateway has parsed the body and sends the positions of its members.  What
 * is not to be changed is copied byte for byte: a big integer or an escape
 * reaches the engine as it was written.  The positions come from another
 * process, so each is checked before it is used.
 */

#include <string.h>

#include "replica/engine/dialect/dialect_inner.h"


static int
edit_is_space(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}


/* Whether a member's positions are in order: the key's quote, the colon, the
   value's end. */
static int
edit_member_is_sound(const char *body, size_t len,
    const Llmgateway__Member *m, size_t from)
{
    const char  *p, *value;

    if (m->begin < from || m->value <= m->begin || m->end <= m->value
        || m->end >= len || body[m->begin] != '"')
    {
        return 0;
    }

    value = body + m->value;

    for (p = value - 1; edit_is_space(*p); p--) { /* void */ }

    if (*p != ':' || p <= body + m->begin) {
        return 0;
    }

    return !edit_is_space(*value) && !edit_is_space(body[m->end - 1]);
}


/* Checks the bytes between two members, before the first, or after the last. */
static int
edit_gap_is(const char *p, const char *end, const char *marks)
{
    for ( /* void */ ; p < end; p++) {
        if (*marks != '\0' && *p == *marks) {
            marks++;

        } else if (!edit_is_space(*p)) {
            return 0;
        }
    }

    return *marks == '\0';
}


int
edit_is_sound(const Llmgateway__OpenaiRequest *openai)
{
    size_t                     i, len, from;
    const char                *body;
    const Llmgateway__Member  *m;

    body = (const char *) openai->body.data;
    len = openai->body.len;

    for (i = 0, from = 0; i < openai->n_members; i++, from = m->end) {
        m = openai->members[i];

        if (!edit_member_is_sound(body, len, m, from)
            || !edit_gap_is(body + from, body + m->begin, i == 0 ? "{" : ","))
        {
            return 0;
        }
    }

    return edit_gap_is(body + from, body + len, i == 0 ? "{}" : "}");
}


llmgw_json_t
edit_find(const Llmgateway__OpenaiRequest *openai, const char *name)
{
    size_t                     i;
    llmgw_json_t               value = { 0 };
    const uint8_t             *body;
    const Llmgateway__Member  *m;

    body = openai->body.data;

    for (i = 0; i < openai->n_members; i++) {
        m = openai->members[i];

        if (strcmp(m->key, name) == 0) {
            value = llmgw_json_at(body + m->value, body + m->end);
        }
    }

    return value;
}


static int
edit_is_listed(const edit_t *edits, const char *name)
{
    for ( /* void */ ; edits->name != NULL; edits++) {
        if (strcmp(edits->name, name) == 0) {
            return 1;
        }
    }

    return 0;
}


int
edit_body(const Llmgateway__OpenaiRequest *openai, const edit_t *edits,
    buf_t *to)
{
    int          is_first;
    size_t       i;
    const char  *body;

    if (!edit_is_sound(openai)) {
        return -1;
    }

    body = (const char *) openai->body.data;
    is_first = 1;
    buf_text(to, "{");

    for (i = 0; i < openai->n_members; i++) {
        if (!edit_is_listed(edits, openai->members[i]->key)) {
            buf_text(to, is_first ? "" : ",");
            buf_add(to, body + openai->members[i]->begin,
                    openai->members[i]->end - openai->members[i]->begin);
            is_first = 0;
        }
    }

    for ( /* void */ ; edits->name != NULL; edits++) {
        if (edits->value.kind != LLMGW_JSON_END) {
            buf_text(to, is_first ? "\"" : ",\"");
            buf_text(to, edits->name);
            buf_text(to, "\":");
            buf_value(to, edits->value);
            is_first = 0;
        }
    }

    buf_text(to, "}");

    return to->failed ? -1 : 0;
}
