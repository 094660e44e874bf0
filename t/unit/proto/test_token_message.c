
/*
 * Bytes are taken for a plain message only if protobuf-c would write exactly
 * these, and every plain message that protobuf-c writes is taken for one.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "llmgateway.pb-c.h"
#include "proto/token_message.h"


#define RANDOM_MESSAGES  300000
#define RANDOM_BYTES     8


/* Whether protobuf-c reads the bytes as a message, and writes the same bytes
   for it. */
static int
is_written_so(const uint8_t *bytes, size_t len, int *is_final)
{
    int                            same;
    uint8_t                       *again;
    Llmgateway__GenerateResponse  *response, plain;

    response = llmgateway__generate_response__unpack(NULL, len, bytes);

    if (response == NULL) {
        return 0;
    }

    llmgateway__generate_response__init(&plain);
    plain.token = response->token;
    plain.is_final = response->is_final;

    *is_final = response->is_final;
    same = llmgateway__generate_response__get_packed_size(&plain) == len;

    if (same) {
        again = malloc(len + 1);
        assert_non_null(again);
        llmgateway__generate_response__pack(&plain, again);
        same = memcmp(again, bytes, len) == 0;
        free(again);
    }

    llmgateway__generate_response__free_unpacked(response, NULL);

    return same;
}


static void
assert_alike(const uint8_t *bytes, size_t len)
{
    int            theirs;
    llmgw_token_t  ours;

    theirs = 0;

    assert_int_equal(llmgw_token_message_read(bytes, len, &ours),
                     is_written_so(bytes, len, &theirs));

    if (llmgw_token_message_read(bytes, len, &ours)) {
        assert_int_equal(ours.is_final, theirs);
    }
}


static void
what_is_written_is_plain(void **state)
{
    size_t                        i, len;
    uint8_t                      *bytes;
    llmgw_token_t                 token;
    Llmgateway__GenerateResponse  response;

    static const size_t  lens[] = {
        0, 1, 20, 127, 128, 129, 16383, 16384, 1000000, 2097151, 2097152
    };

    for (i = 0; i < 2 * sizeof(lens) / sizeof(lens[0]); i++) {
        llmgateway__generate_response__init(&response);
        response.token.len = lens[i / 2];
        response.token.data = malloc(lens[i / 2] + 1);
        response.is_final = i % 2;
        assert_non_null(response.token.data);
        memset(response.token.data, 'x', response.token.len);

        len = llmgateway__generate_response__get_packed_size(&response);
        bytes = malloc(len + 1);
        assert_non_null(bytes);
        llmgateway__generate_response__pack(&response, bytes);

        assert_true(llmgw_token_message_read(bytes, len, &token));
        assert_int_equal(token.is_final, (int) (i % 2));
        assert_ptr_equal(token.message, bytes);
        assert_int_equal(token.len, len);
        assert_int_equal(token.text_len, response.token.len);
        assert_memory_equal(token.text, response.token.data, token.text_len);

        free(bytes);
        free(response.token.data);
    }
}


static void
other_shapes_are_not(void **state)
{
    size_t         i;
    llmgw_token_t  token;

    static const struct {
        size_t   len;
        uint8_t  bytes[8];
    } others[] = {
        { 1, { 0x0a } },                            /* no length */
        { 2, { 0x0a, 2 } },                         /* cut off */
        { 3, { 0x0a, 2, 'x' } },
        { 2, { 0x0a, 0 } },                         /* empty, but written */
        { 4, { 0x0a, 0x81, 0x00, 'x' } },           /* length in two bytes */
        { 7, { 0x0a, 0x81, 0x80, 0x80, 0x80, 0x00, 'x' } },
        { 6, { 0x0a, 0xff, 0xff, 0xff, 0xff, 0x0f } },
        { 1, { 0x10 } },
        { 2, { 0x10, 0 } },                         /* false, but written */
        { 2, { 0x10, 2 } },                         /* true, but not 1 */
        { 3, { 0x10, 0x81, 0x00 } },
        { 5, { 0x10, 1, 0x0a, 1, 'x' } },           /* in reverse order */
        { 6, { 0x0a, 1, 'x', 0x0a, 1, 'y' } },      /* twice */
        { 4, { 0x10, 1, 0x10, 1 } },
        { 3, { 0x1a, 1, 'r' } },                    /* unknown fields */
        { 5, { 0x0a, 1, 'x', 0x20, 7 } },
    };

    for (i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
        assert_false(llmgw_token_message_read(others[i].bytes,
                                              others[i].len, &token));
        assert_alike(others[i].bytes, others[i].len);
    }
}


/* Bytes of which both nearly plain and quite different messages can be made. */
static void
random_bytes_are_judged_alike(void **state)
{
    size_t         i, k, len;
    uint8_t        bytes[RANDOM_BYTES];
    unsigned       seed, plain;
    llmgw_token_t  token;

    static const uint8_t  likely[] = {
        0x0a, 0x10, 0x1a, 0, 1, 1, 2, 3, 0x80, 0x81, 'x'
    };

    seed = 1;
    plain = 0;

    for (i = 0; i < RANDOM_MESSAGES; i++) {
        len = (size_t) rand_r(&seed) % (RANDOM_BYTES + 1);

        for (k = 0; k < len; k++) {
            bytes[k] = likely[(size_t) rand_r(&seed) % sizeof(likely)];
        }

        assert_alike(bytes, len);
        plain += llmgw_token_message_read(bytes, len, &token) != 0;
    }

    assert_true(plain > RANDOM_MESSAGES / 100);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(what_is_written_is_plain),
        cmocka_unit_test(other_shapes_are_not),
        cmocka_unit_test(random_bytes_are_judged_alike),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
