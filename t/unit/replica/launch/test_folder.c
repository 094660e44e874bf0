
/* The folder of an engine: its owner, its lock, and its contents. */

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

#include "replica/launch/folder.h"


static char  base[] = "/tmp/llmgw-folder-XXXXXX";


static int
begin(void **state)
{
    return mkdtemp(base) == NULL
           || setenv("RUNTIME_DIRECTORY", base, 1) != 0;
}


static int
end(void **state)
{
    return rmdir(base);
}


static void
removed(folder_t *folder, const char *file)
{
    char  path[FOLDER_PATH_BYTES];

    folder_close(folder);
    snprintf(path, sizeof(path), "%s/%s", folder->path, file);
    assert_int_equal(unlink(path), 0);
}


static void
one_run_at_a_time_has_it(void **state)
{
    char      error[FOLDER_ERROR_BYTES];
    folder_t  first, second;

    assert_int_equal(folder_open(&first, "r1", error), 0);
    assert_int_equal(folder_open(&second, "r1", error), 0);
    assert_int_equal(folder_lock(&first), 0);
    assert_int_equal(folder_lock(&second), -1);
    folder_close(&first);
    assert_int_equal(folder_lock(&second), 0);
    removed(&second, "lock");
    assert_int_equal(rmdir(second.path), 0);
}


static void
what_it_keeps_is_of_one_command(void **state)
{
    char      error[FOLDER_ERROR_BYTES];
    uint64_t  took[2] = { 7, UINT64_MAX }, read[3] = { 0, 0, 0 };
    folder_t  folder;

    assert_int_equal(folder_open(&folder, "r1", error), 0);
    folder_read(&folder, "serve a", read, 3);
    assert_true(read[0] == 0);

    folder_write(&folder, "serve a", took, 2);
    folder_read(&folder, "serve b", read, 3);
    assert_true(read[0] == 0 && read[1] == 0);
    folder_read(&folder, "serve a", read, 3);
    assert_true(read[0] == 7 && read[1] == UINT64_MAX && read[2] == 0);

    removed(&folder, "took");
    removed(&folder, "lock");
    assert_int_equal(rmdir(folder.path), 0);
}


static void
one_that_others_can_open_is_refused(void **state)
{
    char      path[FOLDER_PATH_BYTES], error[FOLDER_ERROR_BYTES];
    folder_t  folder;

    snprintf(path, sizeof(path), "%s/llmgw-engine-r1", base);
    assert_int_equal(mkdir(path, 0700), 0);
    assert_int_equal(chmod(path, 0750), 0);
    assert_int_equal(folder_open(&folder, "r1", error), -1);
    assert_non_null(strstr(error, "not a folder of this user's alone"));
    assert_int_equal(rmdir(path), 0);

    assert_int_equal(symlink("/tmp", path), 0);
    assert_int_equal(folder_open(&folder, "r1", error), -1);
    assert_int_equal(unlink(path), 0);
}


static void
a_socket_has_a_short_path_and_no_old_file(void **state)
{
    int       i;
    char      path[FOLDER_SOCKET_BYTES], error[FOLDER_ERROR_BYTES];
    FILE     *old;
    folder_t  folder;

    assert_int_equal(folder_open(&folder, "r1", error), 0);
    assert_int_equal(folder_socket(&folder, path), 0);
    old = fopen(path, "w");
    assert_non_null(old);
    fclose(old);
    assert_int_equal(folder_socket(&folder, path), 0);
    assert_int_equal(access(path, F_OK), -1);
    removed(&folder, "lock");
    assert_int_equal(rmdir(folder.path), 0);

    for (i = (int) strlen(folder.path);
         i < FOLDER_SOCKET_BYTES - (int) sizeof("/http"); i++)
    {
        folder.path[i] = 'x';
    }

    folder.path[i] = '\0';
    assert_int_equal(folder_socket(&folder, path), 0);
    folder.path[i++] = 'x';
    folder.path[i] = '\0';
    assert_int_equal(folder_socket(&folder, path), -1);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(one_run_at_a_time_has_it),
        cmocka_unit_test(what_it_keeps_is_of_one_command),
        cmocka_unit_test(one_that_others_can_open_is_refused),
        cmocka_unit_test(a_socket_has_a_short_path_and_no_old_file),
    };

    return cmocka_run_group_tests(tests, begin, end);
}
