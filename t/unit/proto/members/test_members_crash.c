
/*
 * The members segment when things go wrong: writers that die at any write, a
 * file system without space, and a file that somebody removes, replaces,
 * truncates or fills with garbage.  What must hold every time: a reader gives
 * out a view that was once published or none at all, and the next writer, or
 * the next heartbeat, puts things right with a greater generation.
 *
 * Writers die for real, by SIGKILL, in processes of their own.  Where they die
 * is decided by a seam at link time: pwrite() and posix_fallocate() are
 * defined here and stand in for the C library's.
 */

#include <errno.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>

#include "t/unit/proto/members/test_members_support.h"


static struct {
    int     die_at;         /* the n-th pwrite from now; 0: never */
    size_t  die_permille;   /* of it is still written */
    int     no_space;
} seam;


ssize_t
pwrite(int fd, const void *buf, size_t bytes, off_t at)
{
    if (seam.die_at > 0 && --seam.die_at == 0) {
        bytes = bytes * seam.die_permille / 1000;
        (void) syscall(SYS_pwrite64, fd, buf, bytes, at);
        kill(getpid(), SIGKILL);
    }

    return syscall(SYS_pwrite64, fd, buf, bytes, at);
}


int
posix_fallocate(int fd, off_t at, off_t bytes)
{
    if (seam.no_space) {
        return ENOSPC;
    }

    return syscall(SYS_fallocate, fd, 0, at, bytes) == 0 ? 0 : errno;
}


static void
expect_killed(pid_t pid)
{
    int  status;

    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFSIGNALED(status));
    assert_int_equal(WTERMSIG(status), SIGKILL);
}


typedef enum { DIE_IN_PUBLISH, DIE_IN_LOAD, DIE_IN_HEARTBEAT } deed_t;

/* A writer that goes on in the file, and dies in its n-th write of a deed. */
static void
die_writing(fixture_t *f, deed_t deed, int write, size_t permille)
{
    pid_t                    pid;
    llmgw_member_t           members[6];
    llmgw_member_load_t      load = load_make(1, 7);
    llmgw_members_writer_t  *writer;

    pid = fork();
    assert_int_not_equal(pid, -1);

    if (pid != 0) {
        expect_killed(pid);
        return;
    }

    if (llmgw_members_writer_create(&writer, f->path, 8, f->error)
        != LLMGW_MEMBERS_DONE)
    {
        _exit(1);
    }

    members_make(members, 6, 2);
    (void) llmgw_members_publish(writer, members, NULL, 4, 0);
    seam.die_at = write;
    seam.die_permille = permille;

    switch (deed) {

    case DIE_IN_PUBLISH:
        members_make(members, 6, 3);
        (void) llmgw_members_publish(writer, members, NULL, 6, 0);
        break;

    case DIE_IN_LOAD:
        llmgw_members_set_load(writer, 1, &load);
        break;

    case DIE_IN_HEARTBEAT:
        (void) llmgw_members_heartbeat(writer, 1000, f->error);
        break;
    }

    _exit(0);
}


/* After a death: readers, old and new, and then the next writer. */
static void
expect_stamp_and_recovery(fixture_t *f, uint64_t stamp)
{
    uint64_t              generation;
    llmgw_members_view_t  view = { 0 };

    fixture_read(f);
    assert_int_equal(view_stamp(&f->view), stamp);
    assert_int_equal(f->view.n, stamp == 2 ? 4 : 6);
    assert_true(view_loads_are_right(&f->view));

    assert_int_equal(fixture_judge(f, &view), LLMGW_MEMBERS_DONE);
    assert_int_equal(view_stamp(&view), stamp);
    llmgw_members_view_done(&view);

    generation = f->view.generation;
    fixture_rewrite(f, 8);
    publish(f, 5, 4);
    fixture_read(f);
    assert_int_equal(view_stamp(&f->view), 4);
    assert_int_equal(f->view.n, 5);
    assert_true(f->view.generation > generation);

    llmgw_members_writer_destroy(f->writer);
    f->writer = NULL;
}


static void
test_writer_killed_in_a_publish_leaves_old_or_new(void **state)
{
    int         write;
    size_t      permille;
    fixture_t  *f = *state;

    /* Records, then slots, cut anywhere: the old view. */
    for (write = 1; write <= 2; write++) {
        for (permille = 0; permille <= 1000; permille += 125) {
            die_writing(f, DIE_IN_PUBLISH, write, permille);
            expect_stamp_and_recovery(f, 2);
        }
    }

    /* The head, which the kernel writes whole or not. */
    die_writing(f, DIE_IN_PUBLISH, 3, 0);
    expect_stamp_and_recovery(f, 2);
    die_writing(f, DIE_IN_PUBLISH, 3, 1000);
    expect_stamp_and_recovery(f, 3);
}


static void
test_writer_killed_in_load_or_heartbeat_leaves_the_view(void **state)
{
    fixture_t  *f = *state;

    die_writing(f, DIE_IN_LOAD, 1, 0);
    expect_stamp_and_recovery(f, 2);
    die_writing(f, DIE_IN_LOAD, 1, 500);
    expect_stamp_and_recovery(f, 2);
    die_writing(f, DIE_IN_LOAD, 1, 1000);
    expect_stamp_and_recovery(f, 2);
    die_writing(f, DIE_IN_HEARTBEAT, 1, 0);
    expect_stamp_and_recovery(f, 2);
    die_writing(f, DIE_IN_HEARTBEAT, 1, 1000);
    expect_stamp_and_recovery(f, 2);
}


static void
test_torn_load_says_never(void **state)
{
    fixture_t  *f = *state;

    /* Eight of sixteen bytes: the time without figure and check. */
    die_writing(f, DIE_IN_LOAD, 1, 500);
    fixture_read(f);
    assert_int_equal(f->view.n, 4);
    assert_int_equal(f->view.loads[1].reported_ms, 0);
    assert_int_equal(f->view.loads[1].active_requests, 0);
}


/* Not to be expected of a kernel; still no reader may believe it. */
static void
test_half_a_head_is_refused_and_replaced(void **state)
{
    fixture_t             *f = *state;
    llmgw_members_view_t   view = { 0 };

    fixture_write(f, 8);
    publish(f, 4, 2);
    fixture_read(f);
    llmgw_members_writer_destroy(f->writer);
    f->writer = NULL;

    die_writing(f, DIE_IN_PUBLISH, 3, 500);
    assert_int_equal(llmgw_members_read(f->reader, &f->view, f->error),
                     LLMGW_MEMBERS_REFUSED);
    assert_non_null(strstr(f->error, "head is damaged"));
    assert_int_equal(view_stamp(&f->view), 2);
    assert_int_equal(llmgw_members_reader_generation(f->reader),
                     f->view.generation);
    assert_int_equal(llmgw_members_reader_check(f->reader, f->error),
                     LLMGW_MEMBERS_REFUSED);
    assert_int_equal(fixture_judge(f, &view), LLMGW_MEMBERS_REFUSED);

    fixture_write(f, 8);
    assert_int_equal(llmgw_members_reader_check(f->reader, f->error),
                     LLMGW_MEMBERS_DONE);
    assert_true(llmgw_members_reader_generation(f->reader)
                > f->view.generation);
}


static void
test_writer_killed_while_making_leaves_no_half_file(void **state)
{
    int         write;
    char        tmp[128];
    pid_t       pid;
    fixture_t  *f = *state;

    snprintf(tmp, sizeof(tmp), "%s.tmp", f->path);

    /* The lock's pid, header and records, head: an empty table has no slots. */
    for (write = 1; write <= 3; write++) {
        pid = fork();
        assert_int_not_equal(pid, -1);

        if (pid == 0) {
            seam.die_at = write;
            seam.die_permille = 500;
            (void) llmgw_members_writer_create(&f->writer, f->path, 8,
                                               f->error);
            _exit(0);
        }

        expect_killed(pid);
        assert_int_equal(llmgw_members_read(f->reader, &f->view, f->error),
                         LLMGW_MEMBERS_ABSENT);
        assert_int_equal(access(tmp, F_OK), write == 1 ? -1 : 0);
    }

    fixture_write(f, 8);
    fixture_read(f);
    assert_int_equal(access(tmp, F_OK), -1);
}


#define KILL_ROUNDS   200
#define KILL_LIMIT_S  100

/* Publishes for ever, each table with the stamp after the last one's. */
static void
publish_until_killed(fixture_t *f)
{
    uint64_t                 stamp;
    llmgw_member_t           members[32];
    llmgw_member_load_t      load;
    llmgw_members_writer_t  *writer;

    if (llmgw_members_writer_create(&writer, f->path, 32, f->error)
        != LLMGW_MEMBERS_DONE)
    {
        _exit(1);
    }

    for (stamp = f->view.n > 0 ? f->view.members[0].epoch : 0;; ) {
        stamp++;
        members_make(members, 32, stamp);
        load = load_make(stamp % 10, stamp);

        if (llmgw_members_publish(writer, members, NULL, 10 + stamp % 22, 0)
                != LLMGW_MEMBERS_DONE
            || llmgw_members_heartbeat(writer, stamp, f->error)
                != LLMGW_MEMBERS_DONE)
        {
            _exit(1);
        }

        llmgw_members_set_load(writer, stamp % 10, &load);
    }
}


/* 1: a new view, greater in all that has to grow. */
static int
look(fixture_t *f)
{
    uint64_t            stamp, generation;
    llmgw_members_rc_t  rc;

    stamp = view_stamp(&f->view);
    generation = f->view.generation;

    rc = llmgw_members_read(f->reader, &f->view, f->error);
    if (rc == LLMGW_MEMBERS_BUSY || rc == LLMGW_MEMBERS_ABSENT) {
        return 0;
    }

    if (rc != LLMGW_MEMBERS_DONE) {
        fail_msg("%s", f->error);
    }

    assert_true(f->view.n == 0 || view_stamp(&f->view) != 0);
    assert_true(view_stamp(&f->view) >= stamp);
    assert_true(f->view.generation >= generation);
    assert_true(view_loads_are_right(&f->view));

    return view_stamp(&f->view) > stamp;
}


static void
test_writers_killed_at_random_never_leave_a_mixture(void **state)
{
    int               round, views;
    pid_t             pid;
    time_t            end;
    fixture_t        *f = *state;
    struct timespec   pause = { 0 };

    end = time(NULL) + KILL_LIMIT_S;

    for (round = 0; round < KILL_ROUNDS; round++) {
        pid = fork();
        assert_int_not_equal(pid, -1);

        if (pid == 0) {
            publish_until_killed(f);
        }

        for (views = 0; views < 3 && time(NULL) < end; ) {
            views += look(f);
        }

        pause.tv_nsec = rand() % 300000;
        nanosleep(&pause, NULL);
        kill(pid, SIGKILL);
        expect_killed(pid);
        (void) look(f);
    }

    assert_true(time(NULL) < end);
}


static void
test_no_space_is_told_and_leaves_nothing(void **state)
{
    char        tmp[128];
    fixture_t  *f = *state;

    snprintf(tmp, sizeof(tmp), "%s.tmp", f->path);

    seam.no_space = 1;
    assert_int_equal(llmgw_members_writer_create(&f->writer, f->path, 8,
                                                 f->error),
                     LLMGW_MEMBERS_ESYSTEM);
    seam.no_space = 0;

    assert_int_equal(errno, ENOSPC);
    assert_non_null(strstr(f->error, "posix_fallocate"));
    assert_non_null(strstr(f->error, "No space left"));
    assert_int_equal(access(f->path, F_OK), -1);
    assert_int_equal(access(tmp, F_OK), -1);

    fixture_write(f, 8);
}


/* The heartbeat notices, says so, and the reader gets the same table again. */
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
    fixture_read(f);    /* from the file that is open still */
    expect_put_back(f, "was removed");

    file_replace(f->path, "garbage", 7);
    assert_int_equal(llmgw_members_reader_check(f->reader, f->error),
                     LLMGW_MEMBERS_REFUSED);
    expect_put_back(f, "was replaced");

    /* By a valid one that is a thousand generations ahead. */
    data = file_load(f->path, &bytes);
    memcpy(&head, data, sizeof(head));
    memcpy(&buffer, data + llmgw_members_buffer_at(8, head.sequence),
           sizeof(buffer));
    head.generation += 1000;
    buffer.generation += 1000;
    llmgw_members_head_seal(&head);
    llmgw_members_buffer_seal(&buffer, (llmgw_member_t *) (data
        + llmgw_members_buffer_at(8, head.sequence) + sizeof(buffer)));
    memcpy(data, &head, sizeof(head));
    memcpy(data + llmgw_members_buffer_at(8, head.sequence), &buffer,
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
    scribble(f->path, llmgw_members_buffer_at(8, head.sequence) + 500);
    expect_put_back(f, "was overwritten");
}


static void
test_next_writer_finds_nothing_to_mend(void **state)
{
    fixture_t  *f = *state;

    die_writing(f, DIE_IN_PUBLISH, 2, 500);
    fixture_read(f);
    fixture_write(f, 8);
    assert_int_equal(llmgw_members_heartbeat(f->writer, 55, f->error),
                     LLMGW_MEMBERS_DONE);
    assert_string_equal(f->error, "");
    assert_int_equal(llmgw_members_reader_check(f->reader, f->error),
                     LLMGW_MEMBERS_UNCHANGED);
    assert_int_equal(llmgw_members_reader_generation(f->reader),
                     f->view.generation);
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


#define fixture_test(name)                                                   \
    cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)

int
main(void)
{
    const struct CMUnitTest  tests[] = {
        fixture_test(test_writer_killed_in_a_publish_leaves_old_or_new),
        fixture_test(test_writer_killed_in_load_or_heartbeat_leaves_the_view),
        fixture_test(test_torn_load_says_never),
        fixture_test(test_half_a_head_is_refused_and_replaced),
        fixture_test(test_writer_killed_while_making_leaves_no_half_file),
        fixture_test(test_writers_killed_at_random_never_leave_a_mixture),
        fixture_test(test_no_space_is_told_and_leaves_nothing),
        fixture_test(test_heartbeat_puts_the_segment_back),
        fixture_test(test_next_writer_finds_nothing_to_mend),
        fixture_test(test_heartbeat_that_cannot_put_back_tries_again),
    };

    return cmocka_run_group_tests_name("members_crash", tests, NULL, NULL);
}
