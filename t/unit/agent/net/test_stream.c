
/* Datagrams over TCP: one question, one answer, and silent peers. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "net/stream.h"
#include "t/unit/common/loopback.h"


/* Ports of the two sides, and of no process. */
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

        /* A question has only one answer. */
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

    /* Without a question, streams_answer() does nothing. */
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


/* Listens at the port of NOBODY, and never answers. */
static int
silent_listener(address_t *address)
{
    int  fd;

    address_parse(loopback(NOBODY), address);
    fd = listener_socket(address);
    assert_true(fd != -1);
    assert_int_equal(listen(fd, 2 * STREAM_MAX), 0);

    return fd;
}


static int
connected(unsigned port)
{
    int        fd;
    address_t  to;

    address_parse(loopback(port), &to);
    fd = socket(to.ss.ss_family, SOCK_STREAM, 0);
    assert_int_equal(connect(fd, (struct sockaddr *) &to.ss, to.len), 0);

    return fd;
}


static void
turns(struct ev_loop *loop)
{
    int  i;

    for (i = 0; i < 200; i++) {
        ev_run(loop, EVRUN_NOWAIT);
    }
}


static int
is_open(int fd)
{
    char  byte;

    return recv(fd, &byte, 1, MSG_DONTWAIT|MSG_PEEK) != 0;
}


/* Starts nasked questions, then connects more peers than there are slots.
   Returns how many of the questions are left; *last: whether the last peer's
   connection is open. */
static size_t
questions_left(size_t nasked, int *last)
{
    int              listener, asked, peers[STREAM_MAX + 8];
    size_t           i, left;
    side_t           asker;
    address_t        to;
    struct ev_loop  *loop;

    loop = ev_loop_new(0);
    side_init(&asker, loop, ASKER);
    listener = silent_listener(&to);

    for (i = 0; i < nasked; i++) {
        streams_ask(asker.streams, &to, (const uint8_t *) "?", 1);
    }

    for (i = 0; i < STREAM_MAX + 8; i++) {
        peers[i] = connected(ASKER);
        turns(loop);
    }

    for (left = 0, i = 0; i < nasked; i++) {
        asked = accept(listener, NULL, NULL);
        recv(asked, asker.had, sizeof(asker.had), MSG_DONTWAIT);
        left += is_open(asked);
        close(asked);
    }

    *last = is_open(peers[STREAM_MAX + 7]);

    for (i = 0; i < STREAM_MAX + 8; i++) {
        close(peers[i]);
    }

    close(listener);
    streams_destroy(asker.streams);
    ev_loop_destroy(loop);

    return left;
}


static void
peers_that_connect_end_no_question_of_ours(void **state)
{
    int        last;
    size_t     one, all;
    ev_tstamp  began;

    /* Once more if this process stood still until they timed out. */
    do {
        began = ev_time();
        one = questions_left(1, &last);
    } while (ev_time() - began > STREAM_TIMEOUT_S / 2);

    assert_int_equal(one, 1);
    assert_true(last);

    /* If questions take all slots, peers are refused. */
    do {
        began = ev_time();
        all = questions_left(STREAM_MAX, &last);
    } while (ev_time() - began > STREAM_TIMEOUT_S / 2);

    assert_int_equal(all, STREAM_MAX);
    assert_false(last);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(question_is_answered_by_its_connection),
        cmocka_unit_test(many_questions_leave_no_connection_behind),
        cmocka_unit_test(peers_that_connect_end_no_question_of_ours),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
