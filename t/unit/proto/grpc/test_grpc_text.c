
/* Timeouts, status names and messages as they are written in headers. */

#include "t/unit/proto/grpc/grpc_pair.h"


static void
timeout_is_read_rounded_up(void **state)
{
    size_t  i;
    static const struct {
        const char  *text;
        uint64_t     ms;
    } cases[] = {
        { "1m", 1 }, { "1500m", 1500 }, { "2S", 2000 }, { "1M", 60000 },
        { "1H", 3600000 }, { "1u", 1 }, { "1000u", 1 }, { "1001u", 2 },
        { "1n", 1 }, { "1000001n", 2 }, { "0m", 1 },
        { "99999999H", 99999999ull * 3600000 },
        { "", 0 }, { "m", 0 }, { "5", 0 }, { "5x", 0 }, { "-5m", 0 },
        { "5 m", 0 }, { "123456789m", 0 }, { "1.5S", 0 }, { "5s", 0 },
    };

    for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        assert_int_equal(llmgw_grpc_timeout_decode(cases[i].text,
                                                   strlen(cases[i].text)),
                         cases[i].ms);
    }
}


static void
timeout_written_is_never_shorter(void **state)
{
    char      buf[16];
    size_t    i;
    uint64_t  ms, back;
    static const struct {
        uint64_t     ms;
        const char  *text;
    } cases[] = {
        { 1, "1m" }, { 99999999, "99999999m" }, { 100000000, "100000S" },
        { 100000001, "100001S" }, { 99999999ull * 1000, "99999999S" },
        { 99999999ull * 1000 + 1, "1666667M" }, { UINT64_MAX, "99999999H" },
    };

    for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        llmgw_grpc_timeout_encode(buf, cases[i].ms);
        assert_string_equal(buf, cases[i].text);
    }

    for (ms = 1; ms < 1ull << 44; ms = ms * 3 + 1) {
        llmgw_grpc_timeout_encode(buf, ms);
        back = llmgw_grpc_timeout_decode(buf, strlen(buf));
        assert_true(back >= ms && back - ms <= ms / 1000);
    }
}


static void
message_is_percent_encoded(void **state)
{
    char    buf[64];
    size_t  n;

    n = llmgw_grpc_message_encode(buf, sizeof(buf), "a b~%\n\x7f\xe4", 8);
    assert_string_equal(buf, "a b~%25%0A%7F%E4");
    assert_int_equal(n, 16);

    assert_int_equal(llmgw_grpc_message_encode(NULL, 0, "%%", 2), 6);
}


/* A message is cut before an escape: a part of one would mean
   something else. */
static void
message_that_does_not_fit_is_cut_between_escapes(void **state)
{
    char    buf[16];
    size_t  capacity;
    static const char  *fits[] = {
        "", "", "a", "a", "a", "a%25", "a%25b", "a%25b"
    };

    for (capacity = 1; capacity < 8; capacity++) {
        memset(buf, '!', sizeof(buf));
        assert_int_equal(llmgw_grpc_message_encode(buf, capacity, "a%b%c", 5),
                         9);
        assert_string_equal(buf, fits[capacity]);
        assert_int_equal(buf[capacity], '!');
    }
}


static void
status_has_a_name_and_an_http_origin(void **state)
{
    assert_string_equal(llmgw_grpc_status_name(LLMGW_GRPC_OK), "OK");
    assert_string_equal(llmgw_grpc_status_name(LLMGW_GRPC_UNAUTHENTICATED),
                        "UNAUTHENTICATED");
    assert_string_equal(llmgw_grpc_status_name(17), "UNKNOWN");
    assert_string_equal(llmgw_grpc_status_name(LLMGW_GRPC_NO_STATUS),
                        "UNKNOWN");

    assert_int_equal(llmgw_grpc_status_of_http(400), LLMGW_GRPC_INTERNAL);
    assert_int_equal(llmgw_grpc_status_of_http(401),
                     LLMGW_GRPC_UNAUTHENTICATED);
    assert_int_equal(llmgw_grpc_status_of_http(403),
                     LLMGW_GRPC_PERMISSION_DENIED);
    assert_int_equal(llmgw_grpc_status_of_http(404),
                     LLMGW_GRPC_UNIMPLEMENTED);
    assert_int_equal(llmgw_grpc_status_of_http(429), LLMGW_GRPC_UNAVAILABLE);
    assert_int_equal(llmgw_grpc_status_of_http(503), LLMGW_GRPC_UNAVAILABLE);
    assert_int_equal(llmgw_grpc_status_of_http(200), LLMGW_GRPC_UNKNOWN);
    assert_int_equal(llmgw_grpc_status_of_http(500), LLMGW_GRPC_UNKNOWN);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(timeout_is_read_rounded_up),
        cmocka_unit_test(timeout_written_is_never_shorter),
        cmocka_unit_test(message_is_percent_encoded),
        cmocka_unit_test(message_that_does_not_fit_is_cut_between_escapes),
        cmocka_unit_test(status_has_a_name_and_an_http_origin),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
