
/* An answer of OpenAI's API: its text, and its errors. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "common/http/openai_answer.h"


#define CHUNK(said, reason)  \
    "data: {\"choices\":[{\"delta\":{" said "},\"finish_reason\":" reason "}]}"
#define SAY(text)            CHUNK("\"content\":\"" text "\"", "null") "\n\n"
#define STOP                 CHUNK("", "\"stop\"") "\n\n"
#define DONE                 "data: [DONE]\n\n"

typedef struct {
    char  text[256];
    int   objects;
} seen_t;


static int
on_text(void *data, const char *text, size_t len)
{
    seen_t  *seen;

    seen = data;
    strncat(seen->text, text, len);

    return 0;
}


static int
on_object(void *data, const json_t *object)
{
    ((seen_t *) data)->objects++;

    return 0;
}


static const openai_answer_callbacks_t  callbacks = { on_text, on_object };


/* Feeds the answer in pieces of so many bytes, and checks its text and its
   error; wrong is "" if there is none. */
static void
expect(int is_stream, long status, const char *body, size_t piece,
    const char *text, const char *wrong)
{
    int               rc;
    size_t            n, left;
    seen_t            seen;
    const char       *said;
    openai_answer_t   answer;

    memset(&seen, 0, sizeof(seen));
    openai_answer_init(&answer, &callbacks, &seen);
    answer.is_stream = is_stream;

    for (rc = 0, left = strlen(body); rc == 0 && left > 0; left -= n) {
        n = left < piece ? left : piece;
        rc = openai_answer_feed(&answer, body, n);
        body += n;
    }

    said = rc == 0 ? openai_answer_end(&answer, status) : answer.error;
    assert_string_equal(said != NULL ? said : "", wrong);
    assert_string_equal(seen.text, text);
    openai_answer_done(&answer);
}


static void
text_is_the_same_however_it_is_cut(void **state)
{
    size_t  piece;

    for (piece = 1; piece < 80; piece++) {
        expect(1, 200, ": ping\n" SAY("a\\u00e9") SAY("b\\n") STOP DONE, piece,
               "aéb\n", "");
        expect(1, 200, "data:{\"choices\":\r\ndata: [{\"delta\":{\"content\":"
               "\"x\"},\r\ndata:\"finish_reason\":\"stop\"}]}\r\n\r\n"
               "event: y\r\n\r\ndata: [DONE]\r\n\r\n", piece, "x", "");
    }
}


static void
stream_without_its_end_is_not_complete(void **state)
{
    expect(1, 200, SAY("a") DONE, 99, "a",
           "the answer ended without finish_reason");
    expect(1, 200, SAY("a") STOP, 99, "a", "the stream ended without [DONE]");
    expect(1, 200, SAY("a") STOP "data: [DONE]\n", 99, "a",
           "the stream ended without [DONE]");
    expect(1, 200, STOP DONE STOP, 99, "", "an event came behind [DONE]");
    expect(1, 200, SAY("a") "data: {\"choices\n\n", 99, "a",
           "no JSON object came");
}


static void
errors_of_the_server_are_told(void **state)
{
    expect(1, 200, SAY("a") "data: {\"error\":{\"message\":\"gone\","
           "\"type\":\"server_error\",\"code\":\"no_replicas\"}}\n\n", 7, "a",
           "server_error no_replicas: gone");
    expect(1, 200, SAY("a") "error: {\"message\":\"slot\",\"code\":500}\n\n",
           7, "a", "error: slot");
    expect(1, 200, "error: oh\n\n", 99, "", "error");
    expect(0, 404, "{\"error\":{\"message\":\"no x\",\"type\":\"t\","
           "\"code\":404}}", 99, "", "HTTP 404, t: no x");
    expect(0, 400, "{\"object\":\"error\",\"message\":\"m\",\"type\":\"t\"}",
           99, "", "HTTP 400, t: m");
    expect(0, 401, "{\"error\":\"Unauthorized\"}", 99, "",
           "HTTP 401, error: Unauthorized");
    expect(0, 502, "<html>", 99, "", "HTTP 502");
    expect(0, 503, "", 99, "", "HTTP 503");
}


static void
whole_answers_have_one_object(void **state)
{
    expect(0, 200, "{\"choices\":[{\"message\":{\"content\":\"hi\"},"
           "\"finish_reason\":\"length\"}]}", 5, "hi", "");
    expect(0, 200, "{\"choices\":[{\"text\":\"hi\","
           "\"finish_reason\":\"stop\"}]}", 99, "hi", "");
    expect(0, 200, "", 99, "", "no JSON object came");
    expect(0, 200, "{\"choices\":[]}", 99, "",
           "the answer ended without finish_reason");
}


/* Checks the error for an event that is larger than the reader's own limit. */
static void
expect_limit(int is_stream, size_t limit, const char *wrong)
{
    int               rc;
    char             *line;
    seen_t            seen;
    openai_answer_t   answer;

    line = malloc(limit + 1);
    assert_non_null(line);
    memset(line, 'x', limit + 1);

    memset(&seen, 0, sizeof(seen));
    openai_answer_init(&answer, &callbacks, &seen);
    answer.is_stream = is_stream;
    rc = openai_answer_feed(&answer, line, limit);
    assert_int_equal(rc, 0);
    rc = openai_answer_feed(&answer, line, 1);
    assert_int_equal(rc, -1);
    assert_string_equal(answer.error, wrong);

    openai_answer_done(&answer);
    free(line);
}


static void
events_and_answers_have_a_limit(void **state)
{
    expect_limit(1, SSE_EVENT_BYTES, "an event is too long");
    expect_limit(0, OPENAI_ANSWER_WHOLE_BYTES, "the answer is too long");
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(text_is_the_same_however_it_is_cut),
        cmocka_unit_test(stream_without_its_end_is_not_complete),
        cmocka_unit_test(errors_of_the_server_are_told),
        cmocka_unit_test(whole_answers_have_one_object),
        cmocka_unit_test(events_and_answers_have_a_limit),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
