
/*
 * A request whose body is sent after the written part reads as if protobuf-c
 * had written all of it.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "proto/ask_message.h"


static uint8_t  bytes[300000];

static const size_t  body_sizes[] = { 0, 1, 127, 128, 16383, 16384, 300000 };


/* The message as a reader decodes it, packed again by protobuf-c. */
static uint8_t *
is_read(const Llmgateway__GenerateRequest *request, const uint8_t *body,
    size_t body_len, size_t *len)
{
    size_t                        size;
    uint8_t                      *p;
    llmgw_ask_message_t           message;
    Llmgateway__GenerateRequest  *read;

    llmgw_ask_message_init(&message, request);
    assert_int_equal(message.body_bytes, body_len);
    size = message.bytes;
    p = malloc(size + body_len);
    assert_non_null(p);
    llmgw_ask_message_write(&message, p);
    memcpy(p + size, body, body_len);

    read = llmgateway__generate_request__unpack(NULL, size + body_len, p);
    assert_non_null(read);
    free(p);

    *len = llmgateway__generate_request__get_packed_size(read);
    p = malloc(*len);
    assert_non_null(p);
    llmgateway__generate_request__pack(read, p);
    llmgateway__generate_request__free_unpacked(read, NULL);

    return p;
}


static void
is_the_same(const Llmgateway__GenerateRequest *request, size_t body_len)
{
    size_t    len;
    uint8_t  *p, *expected;

    p = is_read(request, bytes, body_len, &len);
    assert_int_equal(len,
                     llmgateway__generate_request__get_packed_size(request));

    expected = malloc(len);
    assert_non_null(expected);
    llmgateway__generate_request__pack(request, expected);
    assert_memory_equal(p, expected, len);

    free(expected);
    free(p);
}


static void
an_openai_request_with_bodies_of_all_sizes(void **state)
{
    size_t                       i;
    uint32_t                     ids[] = { 1, 2, 70000 };
    Llmgateway__Member           member = LLMGATEWAY__MEMBER__INIT;
    Llmgateway__Member          *members[] = { &member, &member };
    Llmgateway__Delivered        delivered = LLMGATEWAY__DELIVERED__INIT;
    Llmgateway__OpenaiRequest    openai = LLMGATEWAY__OPENAI_REQUEST__INIT;
    Llmgateway__GenerateRequest  request = LLMGATEWAY__GENERATE_REQUEST__INIT;

    memset(bytes, '"', sizeof(bytes));
    member.key = (char *) "messages";
    member.end = 300000;
    openai.api = LLMGATEWAY__API__API_COMPLETIONS;
    openai.members = members;
    openai.n_members = 2;
    openai.stream = 1;
    openai.model = (char *) "m";
    openai.body.data = bytes;
    delivered.token_ids = ids;
    delivered.n_token_ids = 3;
    request.request_id = (char *) "r-1";
    request.max_tokens = 5;
    request.openai = &openai;
    request.delivered = &delivered;

    for (i = 0; i < sizeof(body_sizes) / sizeof(body_sizes[0]); i++) {
        openai.body.len = body_sizes[i];
        is_the_same(&request, body_sizes[i]);
    }
}


static void
a_request_of_infer_has_no_body(void **state)
{
    Llmgateway__GenerateRequest  request = LLMGATEWAY__GENERATE_REQUEST__INIT;

    request.prompt.data = (uint8_t *) "hello";
    request.prompt.len = 5;
    request.max_tokens = 5;

    is_the_same(&request, 0);
}


int
main(void)
{
    static const struct CMUnitTest  tests[] = {
        cmocka_unit_test(an_openai_request_with_bodies_of_all_sizes),
        cmocka_unit_test(a_request_of_infer_has_no_body)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
