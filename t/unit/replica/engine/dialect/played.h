
/*
 * A call against an engine that a test plays by hand: requests are made of
 * JSON with their Members, and what the call gives out is a string per
 * message.
 */

#ifndef PLAYED_H
#define PLAYED_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "proto/grpc/session.h"
#include "proto/json/check.h"
#include "proto/json/text.h"
#include "replica/engine/dialect/dialect.h"


#define PLAYED_MEMBERS  64

#define WANT_IDS     LLMGATEWAY__WANT__WANT_IDS
#define WANT_CHUNKS  LLMGATEWAY__WANT__WANT_CHUNKS
#define WANT_TEXT    LLMGATEWAY__WANT__WANT_TEXT

#define PLAYED_VLLM_CHAT \
    "{\"model\":\"m\",\"messages\":[{\"role\":\"user\",\"content\":\"hi\"}]," \
    "\"stream\":true,\"max_tokens\":10}"


typedef struct {
    Llmgateway__GenerateRequest   request;
    Llmgateway__OpenaiRequest     openai;
    Llmgateway__Delivered         delivered;
    Llmgateway__Priority          priority;
    Llmgateway__Member            members[PLAYED_MEMBERS];
    Llmgateway__Member           *list[PLAYED_MEMBERS];
    char                          keys[PLAYED_MEMBERS][40];
    dialect_facts_t               facts;
    dialect_call_t               *call;
    char                          said[8192];   /* messages, with "|" between */
} played_t;


static inline void
played_init(played_t *p)
{
    memset(p, 0, sizeof(*p));
    llmgateway__generate_request__init(&p->request);
    llmgateway__openai_request__init(&p->openai);
    llmgateway__delivered__init(&p->delivered);
    dialect_facts_init(&p->facts);
}


/* A request of OpenAI's API: the body's top-level members are found here. */
static inline void
played_openai(played_t *p, Llmgateway__Api api, const char *body)
{
    size_t               n;
    llmgw_json_t         object;
    llmgw_json_item_t    item;
    llmgw_json_items_t   items;
    Llmgateway__Member  *m;

    assert_int_equal(llmgw_json_check(body, strlen(body), &object), 0);

    items = llmgw_json_members(object);

    for (n = 0; llmgw_json_next(&items, &item); n++) {
        assert_true(n < PLAYED_MEMBERS);
        m = &p->members[n];
        llmgateway__member__init(m);
        llmgw_json_copy(item.key, p->keys[n], sizeof(p->keys[n]));
        m->key = p->keys[n];
        m->begin = (uint32_t) (item.key.begin - (const uint8_t *) body);
        m->value = (uint32_t) (item.value.begin - (const uint8_t *) body);
        m->end = (uint32_t) (item.value.end - (const uint8_t *) body);
        p->list[n] = m;
    }

    p->openai.api = api;
    p->openai.body.data = (uint8_t *) body;
    p->openai.body.len = strlen(body);
    p->openai.members = p->list;
    p->openai.n_members = n;
    p->openai.id = (char *) "chatcmpl-1";
    p->openai.created = 1700000000;
    p->openai.model = (char *) "alias";
    p->openai.stream = strstr(body, "\"stream\":true") != NULL;
    p->request.openai = &p->openai;
    p->request.want = WANT_CHUNKS | WANT_IDS;
}


static inline void
played_say(played_t *p, const char *format, ...)
{
    size_t   len;
    va_list  args;

    len = strlen(p->said);
    va_start(args, format);
    vsnprintf(p->said + len, sizeof(p->said) - len, format, args);
    va_end(args);
}


static inline void
played_message(played_t *p, const Llmgateway__GenerateResponse *m)
{
    size_t  i;

    played_say(p, "%s", *p->said == '\0' ? "" : "|");

    if (m->prompt != NULL) {
        played_say(p, "prompt=%u ", m->prompt->tokens);
    }

    if (m->token.len > 0) {
        played_say(p, "'%.*s' ", (int) m->token.len, m->token.data);
    }

    for (i = 0; i < m->n_token_ids; i++) {
        played_say(p, "#%u ", m->token_ids[i]);
    }

    for (i = 0; i < m->n_finish; i++) {
        played_say(p, "finish%u=%s ", m->finish[i]->index,
                   m->finish[i]->reason);
    }

    if (m->usage != NULL) {
        played_say(p, "usage=%u+%u(%u) ", m->usage->prompt_tokens,
                   m->usage->completion_tokens, m->usage->cached_tokens);
    }

    if (m->usage != NULL && m->usage->reasoning_tokens > 0) {
        played_say(p, "thought=%u ", m->usage->reasoning_tokens);
    }

    if (m->resume_by != LLMGATEWAY__RESUME_BY__RESUME_AS_ASKED) {
        played_say(p, "resume_by=%d ", m->resume_by);
    }

    if (m->data.len > 0) {
        played_say(p, "%.*s ", (int) m->data.len, m->data.data);
    }

    if (m->failure != NULL) {
        played_say(p, "failure=%u %.*s ", m->failure->status,
                   (int) m->failure->body.len, m->failure->body.data);
    }

    if (m->raw != NULL) {
        played_say(p, "raw=%u %s%s %.*s ", m->raw->status,
                   m->raw->is_open ? "open " : "",
                   m->raw->content_type == NULL ? "" : m->raw->content_type,
                   (int) m->raw->data.len, m->raw->data.data);
    }

    if (m->extra != NULL) {
        played_say(p, "extra={%.*s}{%.*s}%.*s ",
                   (int) m->extra->answer.len, m->extra->answer.data,
                   (int) m->extra->choice.len, m->extra->choice.data,
                   (int) m->extra->usage.len, m->extra->usage.data);
    }

    if (m->is_final) {
        played_say(p, "final ");
    }

    p->said[strlen(p->said) - 1] = '\0';
}


static inline dialect_do_t
played_take(played_t *p, dialect_do_t next)
{
    const Llmgateway__GenerateResponse  *m;

    while ((m = dialect_take(p->call)) != NULL) {
        played_message(p, m);
    }

    return next;
}


static inline dialect_do_t
played_start(played_t *p, const char *dialect)
{
    assert_non_null(dialect_find(dialect));
    p->said[0] = '\0';
    p->call = dialect_call_create(dialect_find(dialect), &p->facts,
                                  &p->request);
    assert_non_null(p->call);

    return played_take(p, dialect_start(p->call));
}


static inline void
played_asks(played_t *p, const char *path, const char *body)
{
    const dialect_http_t  *http;

    http = dialect_http(p->call);
    assert_string_equal(http->method, "POST");
    assert_string_equal(http->path, path);
    assert_int_equal(http->body_bytes, strlen(body));
    assert_memory_equal(http->body, body, strlen(body));
}


static inline int
played_asks_for(played_t *p, const char *part)
{
    const dialect_http_t  *http;

    http = dialect_http(p->call);

    return memmem(http->body, http->body_bytes, part, strlen(part)) != NULL;
}


/* A whole answer, byte by byte. */
static inline dialect_do_t
played_answer(played_t *p, unsigned status, const char *body)
{
    size_t  i;

    dialect_head(p->call, status, "application/json");
    assert_false(dialect_reads_events(p->call));

    for (i = 0; i < strlen(body); i++) {
        assert_int_equal(played_take(p, dialect_bytes(p->call, body + i, 1)),
                         DIALECT_MORE);
    }

    return played_take(p, dialect_end(p->call));
}


static inline void
played_stream(played_t *p)
{
    dialect_head(p->call, 200, "text/event-stream; charset=utf-8");
    assert_true(dialect_reads_events(p->call));
}


/* The request's class has this priority at the engine; 0: it has none. */
static inline void
played_priority(played_t *p, int32_t value)
{
    llmgateway__priority__init(&p->priority);
    p->priority.value = value;
    p->priority.has_value_case =
                  value != 0 ? LLMGATEWAY__PRIORITY__HAS_VALUE_VALUE
                             : LLMGATEWAY__PRIORITY__HAS_VALUE__NOT_SET;
    p->request.priority = &p->priority;
}


/*
 * The event is copied to memory of its own size, so that a sanitizer sees each
 * byte that is read beyond it.
 */
static inline dialect_do_t
played_event(played_t *p, const char *data)
{
    char          *copy;
    size_t         len;
    dialect_do_t   next;

    len = strlen(data);
    copy = malloc(len == 0 ? 1 : len);
    assert_non_null(copy);
    memcpy(copy, data, len);
    next = played_take(p, dialect_event(p->call, copy, len));
    free(copy);

    return next;
}


/* Compares the messages since the last time with `expected`. */
static inline void
played_said(played_t *p, const char *expected)
{
    assert_string_equal(p->said, expected);
    p->said[0] = '\0';
}


static inline void
played_end(played_t *p)
{
    dialect_call_destroy(p->call);
    p->call = NULL;
}

#endif /* PLAYED_H */
