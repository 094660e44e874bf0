
/*
 * The members segment when its file is not what it should be: the file system
 * has no space, or the file is removed, replaced, truncated or filled with
 * garbage.  The heartbeat puts it back with a greater generation.
 *
 * posix_fallocate() stands in for the C library's, at link time.
 */

#include <errno.h>
#include <sys/syscall.h>

#include "t/unit/proto/members/test_members_support.h"


static struct {
    int  no_space;
} seam;


int
posix_fallocate(int fd, off_t at, off_t bytes)
{
    if (seam.no_space) {
        return ENOSPC;
    }

    return syscall(SYS_fallocate, fd, 0, at, bytes) == 0 ? 0 : errno;
}


/* Without space the writer works without a file; the heartbeat creates it. */
static void
test_no_space_is_told_and_made_good_by_the_heartbeat(void **state)
{
    char             tmp[128];
    fixture_t       *f = *state;
    llmgw_member_t   members[4];

    snprintf(tmp, sizeof(tmp), "%s.tmp", f->path);

    seam.no_space = 1;
    assert_int_equal(llmgw_members_writer_create(&f->writer, f->path, 8,
                                                 f->error),
                     LLMGW_MEMBERS_DONE);
    assert_non_null(strstr(f->error, "posix_fallocate"));
    assert_non_null(strstr(f->error, "No space left"));
    assert_int_equal(access(f->path, F_OK), -1);
    assert_int_equal(access(tmp, F_OK), -1);

    members_make(members, 4, 1);
    assert_int_equal(publish_array(f->writer, members, NULL, 4, 0),
                     LLMGW_MEMBERS_ESYSTEM);
    assert_int_equal(llmgw_members_heartbeat(f->writer, 1, f->error),
                     LLMGW_MEMBERS_ESYSTEM);
    assert_int_equal(access(f->path, F_OK), -1);

    seam.no_space = 0;
    assert_int_equal(llmgw_members_heartbeat(f->writer, 2, f->error),
                     LLMGW_MEMBERS_DONE);
    publish(f, 4, 1);
    assert_int_equal(access(f->path, F_OK), 0);
}


/* The heartbeat notices it and reports it; readers get the same table again. */
static void
expect_put_back(fixture_t *f, const char *why)
{
    uint64_t  generation;

    generation = f->view.generation;

    assert_int_equal(llmgw_members_heartbeat(f->writer, 55, f->error),
                     LLMGW_MEMBERS_DONE);
    assert_non_null(strstr(f->error, why));
    assert_int_equal(llmgw_members_reader_check(f->reader, f->error),
                     LLMGW_MEMBERS_DONE);

    fixture_read(f);
    assert_int_equal(f->view.n, 4);
    assert_int_equal(view_stamp(&f->view), 2);
    assert_int_equal(f->view.heartbeat_ms, 55);
    assert_true(f->view.generation > generation);

    assert_int_equal(llmgw_members_heartbeat(f->writer, 55, f->error),
                     LLMGW_MEMBERS_DONE);
    assert_string_equal(f->error, "");
}


static void
scribble(const char *path, off_t at)
{
    int   fd;
    char  byte;

    fd = open(path, O_RDWR);
    assert_int_equal(pread(fd, &byte, 1, at), 1);
    byte = (char) (byte ^ 1);
    assert_int_equal(pwrite(fd, &byte, 1, at), 1);
    close(fd);
}


static void
test_heartbeat_puts_the_segment_back(void **state)
{
    size_t                   bytes;
    fixture_t               *f = *state;
    unsigned char           *data;
    llmgw_members_head_t     head;
    llmgw_members_buffer_t   buffer;

    fixture_write(f, 8);
    publish(f, 4, 2);
    fixture_read(f);

    assert_int_equal(unlink(f->path), 0);
    assert_int_equal(llmgw_members_reader_check(f->reader, f->error),
                     LLMGW_MEMBERS_ABSENT);
    fixture_read(f);    /* the reader still has the old file open */
    expect_put_back(f, "was removed");

    file_replace(f->path, "garbage", 7);
    assert_int_equal(llmgw_members_reader_check(f->reader, f->error),
                     LLMGW_MEMBERS_REFUSED);
    expect_put_back(f, "was replaced");

    /* The file is replaced by a valid one, a thousand generations ahead. */
    data = file_load(f->path, &bytes);
    memcpy(&head, data, sizeof(head));
    memcpy(&buffer, data + fixture_buffer_at(8, head.sequence),
           sizeof(buffer));
    head.generation += 1000;
    buffer.generation += 1000;
    llmgw_members_head_seal(&head);
    llmgw_members_buffer_seal(&buffer,
        data + fixture_buffer_at(8, head.sequence) + sizeof(buffer),
        head.record_bytes);
    memcpy(data, &head, sizeof(head));
    memcpy(data + fixture_buffer_at(8, head.sequence), &buffer,
           sizeof(buffer));
    file_replace(f->path, data, bytes);
    free(data);
    assert_int_equal(llmgw_members_reader_check(f->reader, f->error),
                     LLMGW_MEMBERS_DONE);
    fixture_read(f);
    assert_int_equal(f->view.generation, head.generation);
    expect_put_back(f, "was replaced");

    assert_int_equal(truncate(f->path, 100), 0);
    expect_put_back(f, "has another size");
    assert_int_equal(chmod(f->path, 0600), 0);
    expect_put_back(f, "has another mode");
    scribble(f->path, 20);
    expect_put_back(f, "was overwritten");

    memset(&head, 0, sizeof(head));
    data = file_load(f->path, &bytes);
    memcpy(&head, data, sizeof(head));
    free(data);
    scribble(f->path, fixture_buffer_at(8, head.sequence) + 500);
    expect_put_back(f, "was overwritten");
}


static void
test_heartbeat_that_cannot_put_back_tries_again(void **state)
{
    fixture_t  *f = *state;

    fixture_write(f, 8);
    publish(f, 4, 2);
    fixture_read(f);
    assert_int_equal(unlink(f->path), 0);

    seam.no_space = 1;
    assert_int_equal(llmgw_members_heartbeat(f->writer, 55, f->error),
                     LLMGW_MEMBERS_ESYSTEM);
    seam.no_space = 0;
    assert_non_null(strstr(f->error, "No space left"));

    expect_put_back(f, "was removed");
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        fixture_test(test_no_space_is_told_and_made_good_by_the_heartbeat),
        fixture_test(test_heartbeat_puts_the_segment_back),
        fixture_test(test_heartbeat_that_cannot_put_back_tries_again),
    };

    return cmocka_run_group_tests_name("members_mend", tests, NULL, NULL);
}
