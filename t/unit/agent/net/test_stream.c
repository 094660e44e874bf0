
/* Datagrams over TCP: one question, one answer, and silent peers. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "net/stream.h"
#include "t/unit/common/loopback.h"


/* Ports. */
enum { ASKER = 23911, ASKED, NOBODY };

typedef struct {
    struct ev_loop  *loop;
    streams_t       *streams;
    uint8_t          had[64];
    size_t           len;
    const char      *answer;        /* NULL: none */
} side_t;


static void
on_datagram(void *data, const address_t *from, const uint8_t *bytes,
    size_t len)
{
    side_t  *side = data;

    assert_in_range(len, 1, sizeof(side->had));
    memcpy(side->had, bytes, len);
    side->len = len;

    if (side->answer != NULL) {
        assert_int_equal(streams_answer(side->streams, from,
                                        (const uint8_t *) side->answer,
                                        strlen(side->answer)), 1);

        /* Only one. */
        assert_int_equal(streams_answer(side->streams, from, bytes, len), 0);

    } else {
        ev_break(side->loop, EVBREAK_ALL);
    }
}


static void
side_init(side_t *side, struct ev_loop *loop, unsigned port)
{
    char       error[STREAM_ERROR_BYTES];
    address_t  address;

    memset(side, 0, sizeof(side_t));
    side->loop = loop;
    assert_int_equal(address_parse(loopback(port), &address), 0);
    side->streams = streams_create(loop, &address, on_datagram, side, error);
    assert_non_null(side->streams);
}


static void
question_is_answered_by_its_connection(void **state)
{
    side_t           asker, asked;
    address_t        to;
    struct ev_loop  *loop;

    loop = ev_loop_new(0);
    side_init(&asker, loop, ASKER);
    side_init(&asked, loop, ASKED);
    asked.answer = "I am";
    address_parse(loopback(ASKED), &to);

    streams_ask(asker.streams, &to, (const uint8_t *) "are you?", 8);
    ev_run(loop, 0);

    assert_int_equal(asked.len, 8);
    assert_memory_equal(asked.had, "are you?", 8);
    assert_int_equal(asker.len, 4);
    assert_memory_equal(asker.had, "I am", 4);

    /* Outside of a question nothing is answered over a stream. */
    assert_int_equal(streams_answer(asked.streams, &to, asked.had, 8), 0);

    streams_destroy(asker.streams);
    streams_destroy(asked.streams);
    ev_loop_destroy(loop);
}


static void
many_questions_leave_no_connection_behind(void **state)
{
    size_t           i;
    side_t           asker, asked;
    address_t        to, nobody;
    struct ev_loop  *loop;

    loop = ev_loop_new(0);
    side_init(&asker, loop, ASKER);
    side_init(&asked, loop, ASKED);
    asked.answer = "I am";
    address_parse(loopback(ASKED), &to);
    address_parse(loopback(NOBODY), &nobody);

    for (i = 0; i < 3 * STREAM_MAX; i++) {
        asker.len = 0;
        streams_ask(asker.streams, &nobody, (const uint8_t *) "?", 1);
        streams_ask(asker.streams, &to, (const uint8_t *) "are you?", 8);
        ev_run(loop, 0);
        assert_int_equal(asker.len, 4);
    }

    streams_destroy(asker.streams);
    streams_destroy(asked.streams);
    ev_loop_destroy(loop);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(question_is_answered_by_its_connection),
        cmocka_unit_test(many_questions_leave_no_connection_behind),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
