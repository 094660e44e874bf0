
/*
 * Messages that are more than a plain token: how they are classified, which of
 * them break a rule of llmgateway.proto, and how much memory they may take.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "proto/token_message.h"


#define IDS  1000


typedef Llmgateway__GenerateResponse  response_t;


static response_t
response(const char *text)
{
    response_t  r;

    llmgateway__generate_response__init(&r);
    r.token.data = (uint8_t *) text;
    r.token.len = strlen(text);

    return r;
}


static ProtobufCBinaryData
bytes(const char *text)
{
    ProtobufCBinaryData  b = { strlen(text), (uint8_t *) text };

    return b;
}


/* Packs and decodes a response; the caller has to end the arena. */
static int
decode_as(const response_t *r, int has_data, llmgw_token_arena_t *arena,
    llmgw_token_t *token)
{
    int       rc;
    size_t    len;
    uint8_t  *packed;

    packed = malloc(llmgateway__generate_response__get_packed_size(r) + 1);
    assert_non_null(packed);

    len = llmgateway__generate_response__pack(r, packed);
    assert_false(llmgw_token_message_read(packed, len, token));

    rc = llmgw_token_message_decode(packed, len, has_data, arena, token);
    free(packed);

    return rc;
}


static int
is_valid(const response_t *r)
{
    int                  rc;
    llmgw_token_t        token;
    llmgw_token_arena_t  arena;

    rc = decode_as(r, 1, &arena, &token);
    llmgw_token_arena_done(&arena);

    return rc;
}


static void
it_counts_ids_or_else_text(void **state)
{
    size_t  i;

    static struct {
        const char  *text;
        size_t       ids;
        uint32_t     count;
    } cases[] = {
        { "x", 0, 1 }, { "", 0, 0 }, { "x", 1, 1 }, { "xyz", 3, 3 },
        { "", 1, 1 }, { "x", IDS, IDS },
    };

    for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        uint32_t             ids[IDS];
        response_t           r;
        llmgw_token_t        token;
        llmgw_token_arena_t  arena;

        memset(ids, 7, sizeof(ids));
        r = response(cases[i].text);
        r.token_ids = ids;
        r.n_token_ids = cases[i].ids;
        r.data = bytes("{}");

        assert_true(decode_as(&r, 1, &arena, &token));
        assert_non_null(token.more);
        assert_int_equal(token.count, cases[i].count);
        assert_int_equal(token.more->n_token_ids, cases[i].ids);
        assert_int_equal(token.text_len, strlen(cases[i].text));
        assert_memory_equal(token.text, cases[i].text, token.text_len);
        llmgw_token_arena_done(&arena);
    }
}


/* A gRPC client gets the text and the final mark of such a message, and
   nothing else. */
static void
its_message_has_the_plain_fields_alone(void **state)
{
    response_t           r;
    llmgw_token_t        token, again;
    llmgw_token_arena_t  arena;

    r = response("hello");
    r.is_final = 1;
    r.data = bytes("{\"a\":1}");

    assert_true(decode_as(&r, 1, &arena, &token));
    assert_true(llmgw_token_message_read(token.message, token.len, &again));
    assert_int_equal(again.text_len, 5);
    assert_true(again.is_final && token.is_final);
    llmgw_token_arena_done(&arena);
}


static void
data_that_nobody_reads_is_as_if_it_was_not_there(void **state)
{
    response_t           r;
    llmgw_token_t        token;
    llmgw_token_arena_t  arena;

    r = response("x");
    r.data = bytes("two\nlines");

    assert_true(decode_as(&r, 0, &arena, &token));
    assert_null(token.more);
    assert_int_equal(token.count, 1);
    llmgw_token_arena_done(&arena);
    assert_false(is_valid(&r));
}


static void
data_is_one_line_of_text(void **state)
{
    size_t      i;
    response_t  r;

    static const char  *bad[] = {
        "a\nb", "\r", "{}\n", "\xc3\x28", "\xff"
    };

    r = response("");
    r.data = bytes("{\"\xc3\xa4\": \"\\n\"}");
    assert_true(is_valid(&r));

    for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        r.data = bytes(bad[i]);
        assert_false(is_valid(&r));
    }
}


static void
failure_is_a_clients_error_of_bounded_size(void **state)
{
    char                *body;
    response_t           r;
    llmgw_token_t        token;
    Llmgateway__Failure  failure;
    llmgw_token_arena_t  arena;

    body = malloc(LLMGW_TOKEN_PIECE_MAX + 2);
    assert_non_null(body);
    memset(body, ' ', LLMGW_TOKEN_PIECE_MAX + 1);
    body[LLMGW_TOKEN_PIECE_MAX + 1] = '\0';

    llmgateway__failure__init(&failure);
    r = response("");
    r.failure = &failure;

    failure.body = bytes("{\n\"a\":\r1}");
    failure.status = 399;
    assert_false(is_valid(&r));
    failure.status = 500;
    assert_false(is_valid(&r));
    failure.status = 400;

    assert_true(decode_as(&r, 1, &arena, &token));
    assert_int_equal(token.count, 0);
    assert_false(llmgw_token_is_output(&token));
    assert_memory_equal(token.more->failure->body.data, "{ \"a\": 1}", 9);
    llmgw_token_arena_done(&arena);

    failure.body = bytes(body);
    assert_false(is_valid(&r));
    failure.body.len--;
    assert_true(is_valid(&r));
    failure.body = bytes("\xff");
    assert_false(is_valid(&r));

    free(body);
}


static void
extra_is_text_of_bounded_size(void **state)
{
    char                 *body;
    size_t                i;
    response_t            r;
    llmgw_token_t         token;
    Llmgateway__Extra     extra;
    llmgw_token_arena_t   arena;
    ProtobufCBinaryData  *fields[] = { &extra.answer, &extra.choice,
                                       &extra.usage };

    body = malloc(LLMGW_TOKEN_PIECE_MAX + 2);
    assert_non_null(body);
    memset(body, ' ', LLMGW_TOKEN_PIECE_MAX + 1);
    body[LLMGW_TOKEN_PIECE_MAX + 1] = '\0';

    r = response("");
    r.is_final = 1;
    r.extra = &extra;

    for (i = 0; i < sizeof(fields) / sizeof(fields[0]); i++) {
        llmgateway__extra__init(&extra);
        *fields[i] = bytes(body);
        assert_false(is_valid(&r));
        fields[i]->len--;

        assert_true(decode_as(&r, 1, &arena, &token));
        assert_true(token.is_final);
        assert_int_equal(token.count, 0);
        assert_non_null(token.more->extra);
        llmgw_token_arena_done(&arena);

        *fields[i] = bytes("\xff");
        assert_false(is_valid(&r));
    }

    free(body);
}


/* A reported failure becomes a line of the log and an error's text. */
static void
failure_of_shards_is_a_line_of_ascii(void **state)
{
    char                 last[LLMGW_TOKEN_WORD_MAX + 2];
    response_t           r;
    llmgw_token_t        token;
    Llmgateway__Shards   shards;
    llmgw_token_arena_t  arena;

    llmgateway__shards__init(&shards);
    r = response("");
    r.shards = &shards;
    memset(last, 'a', sizeof(last) - 1);
    last[sizeof(last) - 1] = '\0';
    shards.failures = 3;
    shards.last = last;
    assert_false(is_valid(&r));
    shards.last++;
    assert_true(decode_as(&r, 1, &arena, &token));
    assert_int_equal(token.more->shards->failures, 3);
    assert_false(llmgw_token_is_output(&token));
    llmgw_token_arena_done(&arena);
    last[5] = '\n';
    assert_false(is_valid(&r));
    shards.last = "caf\xc3\xa9";
    assert_false(is_valid(&r));
}


static void
piece_has_a_type_that_fits_into_a_header(void **state)
{
    char             word[LLMGW_TOKEN_WORD_MAX + 2];
    response_t       r;
    Llmgateway__Raw  raw;

    llmgateway__raw__init(&raw);
    r = response("");
    r.raw = &raw;
    assert_true(is_valid(&r));

    raw.status = 200;
    raw.content_type = "audio/mpeg; a=\"b\"";
    raw.data = bytes("\xff\n");
    assert_true(is_valid(&r));

    raw.status = 199;
    assert_false(is_valid(&r));
    raw.status = 600;
    assert_false(is_valid(&r));
    raw.status = 503;
    raw.content_type = "a\r\nset-cookie: b";
    assert_false(is_valid(&r));

    memset(word, 'x', sizeof(word));
    word[LLMGW_TOKEN_WORD_MAX + 1] = '\0';
    raw.content_type = word;
    assert_false(is_valid(&r));
    word[LLMGW_TOKEN_WORD_MAX] = '\0';
    assert_true(is_valid(&r));
}


/* Each of its events ends in a byte of its own. */
static void
piece_counts_as_its_events_at_most_its_bytes(void **state)
{
    response_t           r;
    llmgw_token_t        token;
    Llmgateway__Raw      raw;
    llmgw_token_arena_t  arena;

    llmgateway__raw__init(&raw);
    r = response("");
    r.raw = &raw;
    raw.data = bytes("abc");

    for (r.raw_tokens = 0; r.raw_tokens <= 3; r.raw_tokens++) {
        assert_true(decode_as(&r, 1, &arena, &token));
        assert_int_equal(token.count, r.raw_tokens);
        assert_true(llmgw_token_is_output(&token));
        llmgw_token_arena_done(&arena);
    }

    assert_false(is_valid(&r));

    r.raw = NULL;
    r.raw_tokens = 1;
    assert_false(is_valid(&r));
}


/* A status without a body is refused: what follows would be taken for the
   connection's next answer. */
static void
status_of_a_piece_is_one_that_has_a_body(void **state)
{
    uint32_t         status;
    response_t       r;
    Llmgateway__Raw  raw;

    llmgateway__raw__init(&raw);
    r = response("");
    r.raw = &raw;

    for (status = 1; status < 1000; status++) {
        raw.status = status;
        assert_int_equal(is_valid(&r),
                         (status >= 200 && status < 300 && status != 204
                          && status != 205)
                         || (status >= 400 && status < 600));
    }
}


static void
progress_and_facts_are_no_output(void **state)
{
    response_t           r;
    llmgw_token_t        token;
    Llmgateway__Usage    usage;
    Llmgateway__Finish   finish, *finishes[1] = { &finish };
    llmgw_token_arena_t  arena;

    llmgateway__usage__init(&usage);
    llmgateway__finish__init(&finish);

    r = response("");
    r.progress = 1;
    r.usage = &usage;
    r.resume_by = LLMGATEWAY__RESUME_BY__RESUME_TEXT;
    assert_true(decode_as(&r, 1, &arena, &token));
    assert_false(llmgw_token_is_output(&token));
    llmgw_token_arena_done(&arena);

    finish.reason = "stop";
    r.finish = finishes;
    r.n_finish = 1;
    assert_true(decode_as(&r, 1, &arena, &token));
    assert_true(llmgw_token_is_output(&token));
    assert_string_equal(token.more->finish[0]->reason, "stop");
    llmgw_token_arena_done(&arena);

    finish.reason = "st\nop";
    assert_false(is_valid(&r));
    assert_true(llmgw_token_is_output(&llmgw_token_final));
}


/* An empty submessage is 2 bytes on the wire, and 40 or more decoded. */
static void
memory_of_a_message_is_bounded(void **state)
{
    size_t               i, n;
    uint8_t             *message;
    llmgw_token_t        token;
    llmgw_token_arena_t  arena;

    n = LLMGW_TOKEN_ARENA_MAX / 8;
    message = malloc(n);
    assert_non_null(message);

    for (i = 0; i < n; i += 2) {
        message[i] = 0x2a;          /* finish */
        message[i + 1] = 0;
    }

    assert_true(llmgw_token_message_decode(message, 2000, 1, &arena, &token));
    assert_int_equal(token.more->n_finish, 1000);
    assert_true(arena.taken > 0);
    llmgw_token_arena_done(&arena);

    assert_false(llmgw_token_message_decode(message, n, 1, &arena, &token));
    assert_true(arena.taken <= LLMGW_TOKEN_ARENA_MAX);
    llmgw_token_arena_done(&arena);

    free(message);
}


static void
most_messages_need_no_malloc(void **state)
{
    uint32_t             ids[4] = { 1, 2, 3, 4 };
    response_t           r;
    llmgw_token_t        token;
    llmgw_token_arena_t  arena;

    r = response("four tokens of text");
    r.token_ids = ids;
    r.n_token_ids = 4;
    r.data = bytes("{\"id\":\"chatcmpl-0123456789abcdef0123456789abcdef\","
                   "\"object\":\"chat.completion.chunk\",\"choices\":[{"
                   "\"index\":0,\"delta\":{\"content\":\"four tokens\"}}]}");

    assert_true(decode_as(&r, 1, &arena, &token));
    assert_null(arena.blocks);
    llmgw_token_arena_done(&arena);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(it_counts_ids_or_else_text),
        cmocka_unit_test(its_message_has_the_plain_fields_alone),
        cmocka_unit_test(data_that_nobody_reads_is_as_if_it_was_not_there),
        cmocka_unit_test(data_is_one_line_of_text),
        cmocka_unit_test(failure_is_a_clients_error_of_bounded_size),
        cmocka_unit_test(extra_is_text_of_bounded_size),
        cmocka_unit_test(failure_of_shards_is_a_line_of_ascii),
        cmocka_unit_test(piece_has_a_type_that_fits_into_a_header),
        cmocka_unit_test(piece_counts_as_its_events_at_most_its_bytes),
        cmocka_unit_test(status_of_a_piece_is_one_that_has_a_body),
        cmocka_unit_test(progress_and_facts_are_no_output),
        cmocka_unit_test(memory_of_a_message_is_bounded),
        cmocka_unit_test(most_messages_need_no_malloc),
    };

    return cmocka_run_group_tests_name("token_more", tests, NULL, NULL);
}
