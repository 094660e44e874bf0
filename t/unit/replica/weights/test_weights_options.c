
#include "t/unit/replica/weights/weights_scene.h"


typedef struct {
    const char  *sockets;
    const char  *role;
    const char  *sleep;
    int          is_locked;
    uint64_t     waking_timeout_ms;
    const char  *error;         /* NULL: the options are right */
} options_row_t;


static void
test_options_that_do_not_go_together_are_named(void **state)
{
    int                    rc;
    char                   error[WEIGHTS_ERROR_BYTES];
    size_t                 i;
    weights_options_t      o;
    static const options_row_t  rows[] = {
        { NULL, "rw_or_ro", "mapped", 0, 0, NULL },
        { NULL, "rw_or_ro", "mapped", 0, 9, NULL },
        { "/a", "ro", "unmapped", 1, 9, NULL },
        { "/a,/b", "rw_or_ro", "mapped", 0, 0, NULL },
        { "/a", "rw", "mapped", 0, 0, "--weights-role: \"rw\" is not" },
        { "/a", "ro", "deep", 0, 9, "--sleep: \"deep\" is not" },
        { "/a", "ro", "unmapped", 0, 0, "--sleep: needs --standby" },
        { NULL, "ro", "mapped", 0, 0, "--weights-role: needs --weights" },
        { NULL, "rw_or_ro", "unmapped", 0, 9, "--sleep unmapped: needs" },
        { "/a", "ro", "unmapped", 0, 5, "--remap-timeout: 0.005 s is not" },
        { NULL, "rw_or_ro", "mapped", 1, 0, "--mlock: needs --weights" },
        { "/a,", "ro", "mapped", 0, 0, "--weights: \"\" is not a socket" },
        { ",/a", "ro", "mapped", 0, 0, "--weights: \"\" is not a socket" },
    };

    for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        memset(&o, 0, sizeof(o));
        o.sockets = rows[i].sockets;
        o.role = rows[i].role;
        o.sleep = rows[i].sleep;
        o.is_locked = rows[i].is_locked;
        o.remap_timeout_ms = 5;
        rc = weights_options_check(&o, rows[i].waking_timeout_ms, error);
        assert_int_equal(rc, rows[i].error == NULL ? 0 : -1);

        if (rc != 0) {
            assert_says(error, rows[i].error);
        }
    }
}


static void
test_services_are_limited(void **state)
{
    char               list[2 * WEIGHTS_DEVICES_MAX + 3];
    char               error[WEIGHTS_ERROR_BYTES];
    size_t             i;
    weights_options_t  o;

    memset(&o, 0, sizeof(o));
    o.role = "ro";
    o.sleep = "mapped";
    o.sockets = list;

    for (i = 0; i < sizeof(list); i++) {
        list[i] = i % 2 == 0 ? 'a' : ',';
    }

    list[2 * WEIGHTS_DEVICES_MAX - 1] = '\0';
    assert_int_equal(weights_count(list), WEIGHTS_DEVICES_MAX);
    assert_int_equal(weights_options_check(&o, 0, error), 0);

    list[2 * WEIGHTS_DEVICES_MAX - 1] = ',';
    list[2 * WEIGHTS_DEVICES_MAX + 1] = '\0';
    assert_int_equal(weights_options_check(&o, 0, error), -1);
    assert_says(error, "--weights: more than 64");
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(test_options_that_do_not_go_together_are_named),
        cmocka_unit_test(test_services_are_limited)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
