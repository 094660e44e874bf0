
/* The id of a file in memory, which threads on all processors compute. */

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "weights/digest.h"


#define CHUNK  DIGEST_CHUNK_BYTES

typedef struct {
    struct ev_loop  *loop;
    digest_t         digest;
    int              fd;
    int              ndone;
    char             id[DIGEST_ID_BYTES];       /* "": no id */
} scene_t;

static scene_t  s;


static void
on_done(void *data, const char *id)
{
    assert_ptr_equal(data, &s);
    s.ndone++;
    s.id[0] = '\0';

    if (id != NULL) {
        strcpy(s.id, id);
    }
}


static int
setup(void **state)
{
    memset(&s, 0, sizeof(s));
    s.loop = ev_loop_new(EVFLAG_AUTO);
    s.fd = memfd_create("test-digest", MFD_CLOEXEC);

    return s.loop != NULL && s.fd != -1 ? 0 : -1;
}


static int
teardown(void **state)
{
    close(s.fd);
    ev_loop_destroy(s.loop);

    return 0;
}


static void
start(uint64_t bytes)
{
    assert_int_equal(digest_start(&s.digest, s.loop, s.fd, bytes, on_done, &s),
                     0);
}


static void
put(uint64_t at, const char *text)
{
    assert_int_equal(pwrite(s.fd, text, strlen(text), (off_t) at),
                     strlen(text));
}


/* The loop has nothing else to do, so that ev_run() returns by itself. */
static void
hash(uint64_t bytes)
{
    start(bytes);
    ev_run(s.loop, 0);
    assert_int_equal(s.ndone, 1);
}


static void
one_chunk_is_a_list_of_one(void **state)
{
    put(0, "abc");
    hash(3);
    assert_string_equal(s.id, "4f8b42c22dd3729b519ba6f68d2da7cc"
                              "5b2d606d05daed5ad5128cc03e6c6358");
    assert_true(digest_done_bytes(&s.digest) == 3);
}


/* Bytes at a chunk's end and beginning, and in a last chunk that is short. */
static void
chunks_are_hashed_each_by_itself(void **state)
{
    put(CHUNK - 1, "\1\2");
    put(2 * CHUNK + 2, "\3");
    hash(2 * CHUNK + 3);
    assert_string_equal(s.id, "2aa1e6d2fb3133ec435f0befa926a934"
                              "a0ebd1c24f275d4cec2b87dff925bb1a");
    assert_true(digest_done_bytes(&s.digest) == 2 * CHUNK + 3);
}


static void
file_that_ends_early_has_no_id(void **state)
{
    put(0, "abc");
    hash(CHUNK + 1);
    assert_string_equal(s.id, "");
}


static void
file_that_cannot_be_read_has_no_id(void **state)
{
    close(s.fd);
    s.fd = open("/dev/null", O_WRONLY|O_CLOEXEC);
    hash(3);
    assert_string_equal(s.id, "");
}


/* To hash a hole of 1 TiB takes minutes: it is stopped before. */
static void
hashing_can_be_given_up(void **state)
{
    assert_int_equal(ftruncate(s.fd, 1LL << 40), 0);
    start(1ULL << 40);

    while (digest_done_bytes(&s.digest) == 0) {
        usleep(1000);
    }

    digest_cancel(&s.digest);
    ev_run(s.loop, 0);
    assert_int_equal(s.ndone, 0);
}


static void
hashing_that_is_stopped_has_no_id(void **state)
{
    assert_int_equal(ftruncate(s.fd, 1LL << 40), 0);
    start(1ULL << 40);
    digest_stop(&s.digest);
    ev_run(s.loop, 0);
    assert_int_equal(s.ndone, 1);
    assert_string_equal(s.id, "");
}


int
main(void)
{
    static const struct CMUnitTest  tests[] = {
        cmocka_unit_test_setup_teardown(one_chunk_is_a_list_of_one, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(chunks_are_hashed_each_by_itself,
                                        setup, teardown),
        cmocka_unit_test_setup_teardown(file_that_ends_early_has_no_id, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(file_that_cannot_be_read_has_no_id,
                                        setup, teardown),
        cmocka_unit_test_setup_teardown(hashing_can_be_given_up, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(hashing_that_is_stopped_has_no_id,
                                        setup, teardown)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
