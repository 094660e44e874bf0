
/* Server-sent events, in one piece and cut at every position. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "common/http/sse.h"


#define BOM  "\xef\xbb\xbf"

/* What the parser reported: "[data]" for an event, "!data!" for an error. */
typedef struct {
    char    text[4096];
    int     n;
    int     stop_at;        /* the event whose callback stops; 0: none */
    size_t  last_len;
} seen_t;


static int
note(void *arg, const char *data, size_t len, int is_error)
{
    char     mark;
    seen_t  *seen;

    seen = arg;
    mark = is_error ? '!' : '[';

    if (len < 1024) {
        sprintf(seen->text + strlen(seen->text), "%c%.*s%c", mark, (int) len,
                data, is_error ? '!' : ']');
    }

    seen->last_len = len;

    return ++seen->n == seen->stop_at;
}


/* Feeds a copy of each slice, so that a read beyond it is seen by asan. */
static sse_rc_t
feed(sse_t *sse, const char *bytes, size_t len)
{
    char      *copy;
    sse_rc_t   rc;

    copy = malloc(len + (len == 0));
    memcpy(copy, bytes, len);
    rc = sse_feed(sse, copy, len);
    memset(copy, 'x', len);
    free(copy);

    return rc;
}


static void
check(const char *input, const char *expected, size_t first, size_t second)
{
    size_t   len;
    sse_t    sse;
    seen_t   seen;

    memset(&seen, 0, sizeof(seen));
    sse_init(&sse, note, &seen);
    len = strlen(input);

    assert_int_equal(feed(&sse, input, first), SSE_DONE);
    assert_int_equal(feed(&sse, input + first, second - first), SSE_DONE);
    assert_int_equal(feed(&sse, input + second, len - second), SSE_DONE);
    assert_int_equal(sse_end(&sse), SSE_DONE);
    assert_string_equal(seen.text, expected);

    sse_done(&sse);
}


static const struct {
    const char  *input;
    const char  *expected;
} samples[] = {

    { "data: {\"a\":1}\n\ndata: [DONE]\n\n", "[{\"a\":1}][[DONE]]" },
    { "data: a\r\n\r\ndata: b\r\n\r\n", "[a][b]" },
    { "data: a\r\rdata: b\r\r", "[a][b]" },
    { "data: a\n\r\ndata: b\r\n\ndata: c\r\n\r\n", "[a][b][c]" },
    { BOM "data: a\n\n", "[a]" },
    { BOM BOM "data: a\n\ndata: b\n\n", "[b]" },
    { "\xef\xbb" "data: a\n\ndata: b\n\n", "[b]" },
    { ": ping\n\n:\n\ndata: a\n: in between\n\n", "[a]" },
    { "data: a\ndata: b\ndata:c\n\n", "[a\nb\nc]" },
    { "data:  two blanks\n\ndata:none\n\n", "[ two blanks][none]" },
    { "data\n\ndata:\n\ndata: \n\n", "" },
    { "data\ndata\n\n", "[\n]" },
    { "data: \ndata: a\n\n", "[\na]" },
    { "event: x\nid: 1\nretry: 10\ndatum: 2\ndata: a\n\n", "[a]" },
    { "event: x\n\ndata: a\n\n", "[a]" },
    { "data: a:b: c\n\n", "[a:b: c]" },
    { "error: {\"code\":500}\n\ndata: a\n\n", "!{\"code\":500}![a]" },
    { "data: a\n\ndata: b", "[a][b]" },
    { "data: a\n\ndata: b\n", "[a][b]" },
    { "data: a\n\ndata: b\r", "[a][b]" },
    { "\n\n\r\n\n", "" },
    { "", "" },
    { "x", "" },
};


static void
events_are_the_same_wherever_slices_are_cut(void **state)
{
    size_t  i, j, k, len;

    for (i = 0; i < sizeof(samples) / sizeof(samples[0]); i++) {
        len = strlen(samples[i].input);

        for (j = 0; j <= len; j++) {
            for (k = j; k <= len; k++) {
                check(samples[i].input, samples[i].expected, j, k);
            }
        }
    }
}


static void
events_come_one_byte_at_a_time(void **state)
{
    size_t   i, j;
    sse_t    sse;
    seen_t   seen;

    for (i = 0; i < sizeof(samples) / sizeof(samples[0]); i++) {
        memset(&seen, 0, sizeof(seen));
        sse_init(&sse, note, &seen);

        for (j = 0; samples[i].input[j] != '\0'; j++) {
            assert_int_equal(feed(&sse, samples[i].input + j, 1), SSE_DONE);
        }

        assert_int_equal(sse_end(&sse), SSE_DONE);
        assert_string_equal(seen.text, samples[i].expected);
        sse_done(&sse);
    }
}


/* An event is complete when its empty line ends, also if a CR ends it. */
static void
an_event_does_not_wait_for_what_follows(void **state)
{
    size_t   i;
    sse_t    sse;
    seen_t   seen;

    static const char *const  inputs[] = {
        "data: a\n\n", "data: a\r\r", "data: a\r\n\r"
    };

    for (i = 0; i < sizeof(inputs) / sizeof(inputs[0]); i++) {
        memset(&seen, 0, sizeof(seen));
        sse_init(&sse, note, &seen);
        assert_int_equal(feed(&sse, inputs[i], strlen(inputs[i])), SSE_DONE);
        assert_string_equal(seen.text, "[a]");
        assert_null(sse.buf);
        sse_done(&sse);
    }
}


static void
a_callback_stops_the_parser(void **state)
{
    sse_t   sse;
    seen_t  seen;

    memset(&seen, 0, sizeof(seen));
    seen.stop_at = 2;
    sse_init(&sse, note, &seen);

    assert_int_equal(feed(&sse, "data: a\n\ndata: b\n\ndata: c\n\n", 27),
                     SSE_STOPPED);
    assert_string_equal(seen.text, "[a][b]");
    sse_done(&sse);
}


/* Feeds a large event in pieces of 4 kB, as from a socket, or all at once. */
static sse_rc_t
feed_large(size_t bytes, size_t step, seen_t *seen)
{
    char      *input;
    size_t     at, len, total;
    sse_t      sse;
    sse_rc_t   rc;

    total = bytes + 8;
    input = malloc(total);
    memset(input, 'x', total);
    memcpy(input, "data: ", 6);
    memcpy(input + total - 2, "\n\n", 2);

    memset(seen, 0, sizeof(*seen));
    sse_init(&sse, note, seen);

    for (rc = SSE_DONE, at = 0; rc == SSE_DONE && at < total; at += len) {
        len = total - at < step ? total - at : step;
        rc = sse_feed(&sse, input + at, len);
    }

    sse_done(&sse);
    free(input);

    return rc;
}


static void
an_event_has_a_limit(void **state)
{
    seen_t  seen;

    /* If an event comes in slices, the name of its line counts, too. */

    assert_int_equal(feed_large(SSE_EVENT_BYTES - 6, 4096, &seen), SSE_DONE);
    assert_int_equal(seen.last_len, SSE_EVENT_BYTES - 6);
    assert_int_equal(feed_large(SSE_EVENT_BYTES - 5, 4096, &seen),
                     SSE_ELIMIT);
    assert_int_equal(seen.n, 0);

    assert_int_equal(feed_large(SSE_EVENT_BYTES, SIZE_MAX, &seen), SSE_DONE);
    assert_int_equal(feed_large(SSE_EVENT_BYTES + 1, SIZE_MAX, &seen),
                     SSE_ELIMIT);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(events_are_the_same_wherever_slices_are_cut),
        cmocka_unit_test(events_come_one_byte_at_a_time),
        cmocka_unit_test(an_event_does_not_wait_for_what_follows),
        cmocka_unit_test(a_callback_stops_the_parser),
        cmocka_unit_test(an_event_has_a_limit),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
