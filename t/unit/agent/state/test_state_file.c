
/* What an agent leaves to its next start. */

#include <errno.h>
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

#include "state/state_file.h"


static void
fill(const char *path, const char *bytes, size_t len)
{
    FILE  *file;

    file = fopen(path, "w");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, len, file), len);
    fclose(file);
}


static void
text_comes_back_and_the_directory_has_nothing_else(void **state)
{
    char  dir[] = "/tmp/llmgw-test-XXXXXX", path[64];
    char  text[STATE_FILE_BYTES];

    assert_non_null(mkdtemp(dir));
    snprintf(path, sizeof(path), "%s/r1.drain", dir);

    assert_int_equal(state_file_read(NULL, "r1", "drain", text), 0);
    assert_int_equal(state_file_write(NULL, "r1", "drain", "x"), 0);
    assert_int_equal(state_file_read(dir, "r1", "drain", text), 0);

    assert_int_equal(state_file_write(dir, "r1", "drain", "operator"), 0);
    assert_int_equal(state_file_read(dir, "r1", "drain", text), 1);
    assert_string_equal(text, "operator");
    assert_int_equal(state_file_write(dir, "r1", "drain", ""), 0);
    assert_int_equal(state_file_read(dir, "r1", "drain", text), 1);
    assert_string_equal(text, "");

    unlink(path);
    assert_int_equal(rmdir(dir), 0);
    assert_int_equal(state_file_write(dir, "r1", "drain", "x"), -1);
    assert_int_equal(errno, ENOENT);
}


/* A line at the limit, a line one byte beyond, and contents that
   are no line. */
static void
what_is_no_line_is_an_error(void **state)
{
    char  dir[] = "/tmp/llmgw-test-XXXXXX", path[64];
    char  text[STATE_FILE_BYTES], bytes[STATE_FILE_BYTES + 1];

    assert_non_null(mkdtemp(dir));
    snprintf(path, sizeof(path), "%s/r1.drain", dir);
    memset(bytes, 'x', sizeof(bytes));

#define reads(n, rc)                                                          \
    fill(path, bytes, n);                                                     \
    errno = 0;                                                                \
    assert_int_equal(state_file_read(dir, "r1", "drain", text), rc);          \
    assert_int_equal(errno, rc == 1 ? 0 : EINVAL);

    bytes[STATE_FILE_BYTES - 1] = '\n';
    reads(STATE_FILE_BYTES, 1);
    assert_int_equal(strlen(text), STATE_FILE_BYTES - 1);
    reads(STATE_FILE_BYTES - 1, -1);
    bytes[STATE_FILE_BYTES - 1] = 'x';
    bytes[STATE_FILE_BYTES] = '\n';
    reads(STATE_FILE_BYTES + 1, -1);
    reads(0, -1);
    memcpy(bytes, "a\0b\n", 4);
    reads(4, -1);
#undef reads

    unlink(path);
    assert_int_equal(mkdir(path, 0700), 0);
    assert_int_equal(state_file_read(dir, "r1", "drain", text), -1);
    assert_int_equal(state_file_write(dir, "r1", "drain", "x"), -1);
    assert_int_equal(rmdir(path), 0);
    assert_int_equal(rmdir(dir), 0);        /* no file is left there */
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(text_comes_back_and_the_directory_has_nothing_else),
        cmocka_unit_test(what_is_no_line_is_an_error),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
