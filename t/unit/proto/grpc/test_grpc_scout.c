
/*
 * The scout knows where the next frame begins, however the input is cut.
 * Whether it makes sessions faster is a question for benchmarks.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "proto/grpc/session_inner.h"


#define FRAMES     200
#define BODY_MAX   300

typedef struct {
    uint8_t  bytes[FRAMES * (LLMGW_GRPC_FRAME_HEAD_BYTES + BODY_MAX)];
    size_t   len;
    size_t   begins[FRAMES + 1];        /* where each frame begins; the end */
} frames_t;


/* Makes DATA and PING frames, of streams that do not exist. */
static void
frames_make(frames_t *frames, unsigned *seed)
{
    size_t    i, body;
    uint8_t  *head;

    frames->len = 0;

    for (i = 0; i < FRAMES; i++) {
        frames->begins[i] = frames->len;
        head = frames->bytes + frames->len;
        body = rand_r(seed) % 4 == 0 ? 0 : (size_t) rand_r(seed) % BODY_MAX;

        memset(head, 0xff, LLMGW_GRPC_FRAME_HEAD_BYTES + body);
        head[0] = 0;
        head[1] = (uint8_t) (body >> 8);
        head[2] = (uint8_t) body;
        head[3] = i % 3 == 0 ? NGHTTP2_PING : NGHTTP2_DATA;

        frames->len += LLMGW_GRPC_FRAME_HEAD_BYTES + body;
    }

    frames->begins[FRAMES] = frames->len;
}


static void
assert_knows_the_way(const llmgw_grpc_scout_t *scout, const frames_t *frames,
    size_t at)
{
    size_t  i;

    if (scout->head_bytes > 0) {
        assert_int_equal(scout->skip, 0);
        at -= scout->head_bytes;
    }

    for (i = 0; frames->begins[i] < at + scout->skip; i++) {
        /* void */
    }

    assert_int_equal(frames->begins[i], at + scout->skip);
}


static void
any_cut_keeps_the_way(void **state)
{
    size_t                 at, n, largest;
    unsigned               seed;
    frames_t              *frames;
    llmgw_grpc_session_t  *session;
    llmgw_grpc_config_t    config = { 0 };

    static const llmgw_grpc_callbacks_t  none;

    config.callbacks = &none;
    frames = malloc(sizeof(frames_t));
    session = llmgw_grpc_client_create(&config);
    assert_non_null(frames);
    assert_non_null(session);

    seed = 1;

    for (largest = 1; largest < 2000; largest += 1 + largest / 8) {
        frames_make(frames, &seed);

        for (at = 0; at < frames->len; at += n) {
            n = 1 + (size_t) rand_r(&seed) % largest;
            n = n < frames->len - at ? n : frames->len - at;

            llmgw_grpc_scout(session, frames->bytes + at, n);
            assert_knows_the_way(&session->scout, frames, at + n);
        }

        assert_int_equal(session->scout.skip, 0);
        assert_int_equal(session->scout.head_bytes, 0);
    }

    llmgw_grpc_session_destroy(session);
    free(frames);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(any_cut_keeps_the_way),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
