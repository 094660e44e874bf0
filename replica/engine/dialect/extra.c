
/*
 * Members of a whole answer other than its text, reason and numbers:
 * system_fingerprint, stop_reason, timings and the like.
 *
 * A whole answer is requested as a stream, so such members come in its events,
 * many of them in each event, and null until they are known.  For each key the
 * last value that is not null counts.  After a failover, the members are those
 * of the last engine.
 */

#include <stdlib.h>
#include <string.h>

#include "replica/engine/dialect/dialect_inner.h"


#define EXTRA_MEMBERS  32       /* in an object; engines have some 10 */
#define EXTRA_BYTES    16384    /* of an object's keys and values; the rest is
                                   left out */


typedef struct {
    buf_t   text;               /* `,"key":value` */
    size_t  value_at;
} extra_member_t;

typedef struct {
    extra_member_t  *members;
    size_t           n;
    size_t           bytes;
} extra_object_t;

struct extra_s {
    extra_object_t  answer;
    extra_object_t  choices[CALL_MAX_CHOICES];
    buf_t           usage;
    buf_t           sent;       /* of the last message: answer, choice */
};


static void
extra_object_free(extra_object_t *object)
{
    size_t  i;

    for (i = 0; i < object->n; i++) {
        buf_free(&object->members[i].text);
    }

    free(object->members);
}


void
extra_free(dialect_call_t *call)
{
    size_t   i;
    extra_t  *extra;

    extra = call->extra;

    if (extra == NULL) {
        return;
    }

    extra_object_free(&extra->answer);

    for (i = 0; i < CALL_MAX_CHOICES; i++) {
        extra_object_free(&extra->choices[i]);
    }

    buf_free(&extra->usage);
    buf_free(&extra->sent);
    free(extra);
    call->extra = NULL;
}


/* NULL: chunks of this call are passed on as they are, or it wants only
   tokens. */
static extra_t *
extra_of(dialect_call_t *call)
{
    if (call->is_stream || call->is_infer || call->is_plain) {
        return NULL;
    }

    if (call->extra == NULL) {
        call->extra = calloc(1, sizeof(extra_t));
    }

    return call->extra;
}


static extra_member_t *
extra_find(const extra_object_t *object, llmgw_json_t key)
{
    size_t           i, len;
    extra_member_t  *member;

    len = llmgw_json_bytes(key);

    for (i = 0; i < object->n; i++) {
        member = &object->members[i];

        if (member->value_at == len + 2
            && memcmp(member->text.data + 1, key.begin, len) == 0)
        {
            return member;
        }
    }

    return NULL;
}


/* NULL: there is no room for one more. */
static extra_member_t *
extra_grow(extra_object_t *object, llmgw_json_t key)
{
    extra_member_t  *member;

    if (object->n == EXTRA_MEMBERS) {
        return NULL;
    }

    member = realloc(object->members,
                     (object->n + 1) * sizeof(extra_member_t));

    if (member == NULL) {
        return NULL;
    }

    object->members = member;
    member = &object->members[object->n++];
    memset(member, 0, sizeof(extra_member_t));

    buf_text(&member->text, ",");
    buf_value(&member->text, key);
    buf_text(&member->text, ":");
    member->value_at = member->text.len;

    return member;
}


static void
extra_add(extra_object_t *object, llmgw_json_t key, llmgw_json_t value)
{
    size_t           len;
    extra_member_t  *member;

    member = extra_find(object, key);

    if (value.kind == LLMGW_JSON_END
        || (member != NULL && llmgw_json_is_null(value)))
    {
        return;
    }

    len = llmgw_json_bytes(key) + llmgw_json_bytes(value);

    if (len > EXTRA_BYTES - object->bytes) {
        return;
    }

    if (member == NULL) {
        member = extra_grow(object, key);
    }

    if (member != NULL) {
        object->bytes += len;
        object->bytes -= member->text.len - member->value_at;
        member->text.len = member->value_at;
        buf_value(&member->text, value);
    }
}


void
extra_answer(dialect_call_t *call, llmgw_json_t key, llmgw_json_t value)
{
    extra_t  *extra;

    extra = extra_of(call);

    if (extra != NULL && !llmgw_json_is(key, "object")) {
        extra_add(&extra->answer, key, value);
    }
}


void
extra_choice(dialect_call_t *call, uint32_t index, llmgw_json_t key,
    llmgw_json_t value)
{
    extra_t  *extra;

    extra = extra_of(call);

    if (extra != NULL && !llmgw_json_is(key, "index")
        && !llmgw_json_is(key, "text") && !llmgw_json_is(key, "finish_reason"))
    {
        extra_add(&extra->choices[index], key, value);
    }
}


buf_t *
extra_usage(dialect_call_t *call)
{
    extra_t  *extra;

    extra = extra_of(call);

    if (extra == NULL) {
        return NULL;
    }

    extra->usage.len = 0;

    return &extra->usage;
}


static void
extra_write(const extra_object_t *object, buf_t *to)
{
    size_t  i;

    for (i = 0; i < object->n; i++) {
        to->failed |= object->members[i].text.failed;
        buf_add(to, object->members[i].text.data, object->members[i].text.len);
    }
}


void
extra_write_answer(const dialect_call_t *call, buf_t *to)
{
    if (call->extra != NULL) {
        extra_write(&call->extra->answer, to);
    }
}


void
extra_write_choice(const dialect_call_t *call, uint32_t index, buf_t *to)
{
    if (call->extra != NULL) {
        extra_write(&call->extra->choices[index], to);
    }
}


int
extra_write_usage(const dialect_call_t *call, buf_t *to)
{
    const buf_t  *usage;

    usage = call->extra != NULL ? &call->extra->usage : NULL;

    if (usage == NULL || usage->len == 0) {
        return 0;
    }

    to->failed |= usage->failed;
    buf_add(to, usage->data, usage->len);

    return 1;
}


void
extra_fill(dialect_call_t *call)
{
    size_t              len;
    buf_t              *sent;
    Llmgateway__Extra  *message;

    if (call->extra == NULL || call->out != OUT_TEXT) {
        return;
    }

    message = &call->message_extra;
    llmgateway__extra__init(message);
    sent = &call->extra->sent;
    sent->len = 0;

    extra_write_answer(call, sent);
    len = sent->len;
    extra_write_choice(call, 0, sent);

    if (sent->failed || call->extra->usage.failed) {
        return;             /* out of memory: the answer is complete without
                               them */
    }

    message->answer.data = (uint8_t *) sent->data;
    message->answer.len = len;
    message->choice.data = (uint8_t *) sent->data + len;
    message->choice.len = sent->len - len;
    message->usage.data = (uint8_t *) call->extra->usage.data;
    message->usage.len = call->extra->usage.len;
    call->message.extra = message;
}
