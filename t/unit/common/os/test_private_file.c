
/* Whether a file of keys has an owner and a mode that keep it private. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

#include "common/os/private_file.h"


static int
is_closed(mode_t mode, uid_t uid, gid_t gid)
{
    struct stat  st = { .st_mode = S_IFREG | mode, .st_uid = uid,
                        .st_gid = gid };

    return private_file_is_closed(&st);
}


static void
test_owner_alone_may_use_it(void **state)
{
    assert_true(is_closed(0600, geteuid(), getegid()));
    assert_true(is_closed(0400, geteuid() + 1, getegid() + 1));
    assert_false(is_closed(0640, geteuid(), getegid()));
    assert_false(is_closed(0604, geteuid(), getegid()));
}


static void
test_another_user_may_let_our_group_read_it(void **state)
{
    assert_true(is_closed(0440, geteuid() + 1, getegid()));
    assert_true(is_closed(0640, geteuid() + 1, getegid()));
    assert_false(is_closed(0460, geteuid() + 1, getegid()));
    assert_false(is_closed(0444, geteuid() + 1, getegid()));
    assert_false(is_closed(0440, geteuid() + 1, (gid_t) 4294967000U));
}


static void
test_only_a_closed_regular_file_is_opened(void **state)
{
    FILE  *file;
    char   why[PRIVATE_FILE_WHY_BYTES];
    char   dir[] = "/tmp/test_private_file.XXXXXX", path[64];

    assert_non_null(mkdtemp(dir));
    snprintf(path, sizeof(path), "%s/key", dir);

    assert_null(private_file_open(path, why));
    assert_string_equal(why, "No such file or directory");

    assert_null(private_file_open(dir, why));
    assert_string_equal(why, "not a regular file");

    assert_int_equal(mkfifo(path, 0600), 0);
    assert_null(private_file_open(path, why));
    assert_string_equal(why, "not a regular file");
    unlink(path);

    file = fopen(path, "w");
    assert_non_null(file);
    fputs("secret\n", file);
    fclose(file);

    assert_int_equal(chmod(path, 0644), 0);
    assert_null(private_file_open(path, why));
    assert_non_null(strstr(why, "its mode is 0644"));

    assert_int_equal(chmod(path, 0600), 0);
    file = private_file_open(path, why);
    assert_non_null(file);
    assert_int_equal(fgetc(file), 's');
    fclose(file);

    unlink(path);
    rmdir(dir);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(test_owner_alone_may_use_it),
        cmocka_unit_test(test_another_user_may_let_our_group_read_it),
        cmocka_unit_test(test_only_a_closed_regular_file_is_opened)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
