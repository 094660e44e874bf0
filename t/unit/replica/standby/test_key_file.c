
/* The lock file of a group: its owner and mode, and invalid files. */

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

#include "replica/standby/key_file.h"


#define GROUP_OF_THE_SOCKET  4242

typedef struct {
    char        dir[64];
    char        socket[128];
    char        error[KEY_FILE_ERROR_BYTES];
    key_file_t  file;
} scene_t;


static int
scene_setup(void **state)
{
    FILE     *f;
    scene_t  *s;

    s = calloc(1, sizeof(scene_t));
    strcpy(s->dir, "/tmp/llmgw-key-XXXXXX");
    assert_non_null(mkdtemp(s->dir));
    snprintf(s->socket, sizeof(s->socket), "%s/lock.sock", s->dir);
    f = fopen(s->socket, "w");
    assert_non_null(f);
    fclose(f);
    assert_int_equal(key_file_init(&s->file, s->socket, "g"), 0);
    *state = s;

    return 0;
}


static int
scene_teardown(void **state)
{
    scene_t  *s = *state;

    if (s->file.fd != -1) {
        close(s->file.fd);
    }

    unlink(s->file.path);
    unlink(s->socket);
    rmdir(s->dir);
    free(s);

    return 0;
}


static mode_t
scene_mode(scene_t *s)
{
    struct stat  st;

    assert_int_equal(stat(s->file.path, &st), 0);

    return st.st_mode & 07777;
}


static void
engines_of_the_sockets_group_share_it_whatever_the_umask(void **state)
{
    int          rc;
    mode_t       mask;
    scene_t     *s = *state;
    struct stat  st;

    if (geteuid() == 0) {
        assert_int_equal(chown(s->socket, (uid_t) -1, GROUP_OF_THE_SOCKET),
                         0);
    }

    mask = umask(077);
    rc = key_file_take(&s->file, s->error);
    umask(mask);
    assert_int_equal(rc, 0);
    assert_int_equal(scene_mode(s), 0660);

    if (geteuid() == 0) {
        assert_int_equal(stat(s->file.path, &st), 0);
        assert_int_equal(st.st_gid, GROUP_OF_THE_SOCKET);
    }
}


static void
one_from_before_is_shared_from_now_on(void **state)
{
    scene_t  *s = *state;

    assert_int_equal(key_file_take(&s->file, s->error), 0);
    close(s->file.fd);
    assert_int_equal(chmod(s->file.path, 0640), 0);
    assert_int_equal(key_file_take(&s->file, s->error), 0);
    assert_int_equal(scene_mode(s), 0660);
}


/* The lock service has the same rule. */
static void
a_symbolic_link_is_no_lock_file(void **state)
{
    char      other[128];
    scene_t  *s = *state;

    snprintf(other, sizeof(other), "%s/other", s->dir);
    assert_int_equal(symlink(other, s->file.path), 0);
    assert_int_equal(key_file_check(&s->file, s->error), -1);
    assert_int_equal(key_file_take(&s->file, s->error), -1);
    assert_int_equal(access(other, F_OK), -1);
    unlink(s->file.path);

    assert_int_equal(key_file_take(&s->file, s->error), 0);
    assert_true(key_file_is_ours(&s->file));
    assert_int_equal(rename(s->file.path, other), 0);
    assert_int_equal(symlink(other, s->file.path), 0);
    assert_false(key_file_is_ours(&s->file));
    unlink(other);
}


static void
a_check_makes_no_file(void **state)
{
    scene_t  *s = *state;

    assert_int_equal(key_file_check(&s->file, s->error), 0);
    assert_int_equal(access(s->file.path, F_OK), -1);
}


#define TEST(name)                                                            \
    cmocka_unit_test_setup_teardown(name, scene_setup, scene_teardown)


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        TEST(engines_of_the_sockets_group_share_it_whatever_the_umask),
        TEST(one_from_before_is_shared_from_now_on),
        TEST(a_symbolic_link_is_no_lock_file),
        TEST(a_check_makes_no_file)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
