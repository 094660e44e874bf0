
/* What names and addresses may look like, and the names of states. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "proto/members/member.h"


static void
test_names_and_addresses(void **state)
{
    size_t             i;
    char               name[80];
    const char *const  good[] = {
        "127.0.0.1:1", "[::1]:65535", "host-1.example:8080", "[fe80::1]:5"
    };
    const char *const  bad[] = {
        "", ":", ":80", "host", "host:", "host:0", "host:65536", "host:080",
        "host:8a", "host:+8", "::1:80", "[::1]", "[]:80", "[:80", "[::g]:80",
        "a b:80", "host:999999", "-h:80", "[127.0.0.1]:80", "h\n:80"
    };

    for (i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
        assert_true(llmgw_members_address_is_valid(good[i]));
    }

    for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        assert_false(llmgw_members_address_is_valid(bad[i]));
    }

    memset(name, 'n', sizeof(name));
    assert_true(llmgw_name_is_valid(name, 63));
    assert_false(llmgw_name_is_valid(name, 64));
    assert_false(llmgw_name_is_valid(name, 0));
    assert_true(llmgw_name_is_valid("0.a_B-", 6));
    assert_false(llmgw_name_is_valid(".a", 2));
    assert_false(llmgw_name_is_valid("a/b", 3));
    assert_false(llmgw_name_is_valid("a\0b", 3));

    assert_string_equal(llmgw_liveness_name(LLMGW_LIVENESS_LEFT), "LEFT");
    assert_string_equal(llmgw_service_name(LLMGW_SERVICE_DOWN), "DOWN");
    assert_string_equal(llmgw_liveness_name(4), "UNKNOWN");
    assert_string_equal(llmgw_service_name(5), "UNKNOWN");
}


static void
test_names_of_groups_and_states(void **state)
{
    assert_true(llmgw_group_is_valid("-", 1));
    assert_true(llmgw_group_is_valid("_a.b-C9", 7));
    assert_true(llmgw_group_is_valid("0123456789012345678901234567890", 31));
    assert_false(llmgw_group_is_valid("", 0));
    assert_false(llmgw_group_is_valid(".lock", 5));
    assert_false(llmgw_group_is_valid("a b", 3));
    assert_false(llmgw_group_is_valid("a\0b", 3));
    assert_false(llmgw_group_is_valid("01234567890123456789012345678901", 32));

    assert_string_equal(llmgw_group_state_name(LLMGW_GROUP_NONE), "none");
    assert_string_equal(llmgw_group_state_name(LLMGW_GROUP_INIT), "init");
    assert_string_equal(llmgw_group_state_name(LLMGW_GROUP_STANDBY),
                        "standby");
    assert_string_equal(llmgw_group_state_name(LLMGW_GROUP_WAKING), "waking");
    assert_string_equal(llmgw_group_state_name(LLMGW_GROUP_ACTIVE), "active");
    assert_string_equal(llmgw_group_state_name(LLMGW_GROUP_ACTIVE + 1),
                        "unknown");
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(test_names_and_addresses),
        cmocka_unit_test(test_names_of_groups_and_states),
    };

    return cmocka_run_group_tests_name("names", tests, NULL, NULL);
}
