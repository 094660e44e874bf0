
/*
 * The members segment when its writer dies, at any write.  What must hold
 * every time: a reader returns a view that was once published or none at all,
 * and the next writer repairs the segment with a greater generation.
 *
 * Writers really die, by SIGKILL, in processes of their own.  A seam at link
 * time decides where: pwrite() is defined here and stands in for the C
 * library's.
 */

#include <errno.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>

#include "t/unit/proto/members/test_members_support.h"


static struct {
    int     die_at;         /* dies at the n-th pwrite; 0: never */
    size_t  die_permille;   /* the part of it that is written */
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


static void
expect_killed(pid_t pid)
{
    int  status;

    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFSIGNALED(status));
    assert_int_equal(WTERMSIG(status), SIGKILL);
}


typedef enum {
    DIE_IN_PUBLISH,
    DIE_IN_LOAD,
    DIE_IN_HEARTBEAT,
    DIE_IN_LIST
} deed_t;

static const char  second_list[] = "qwen\0gemma\0phi";


/* Starts a writer that takes over the file, and dies in its n-th write while
   it does the deed. */
static void
die_writing(fixture_t *f, deed_t deed, int write, size_t permille)
{
    pid_t                    pid;
    uint64_t                 list;
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
    (void) publish_array(writer, members, NULL, 4, 0);
    seam.die_at = write;
    seam.die_permille = permille;

    switch (deed) {

    case DIE_IN_PUBLISH:
        members_make(members, 6, 3);
        (void) publish_array(writer, members, NULL, 6, 0);
        break;

    case DIE_IN_LOAD:
        set_load_of(writer, 1, &load);
        break;

    case DIE_IN_HEARTBEAT:
        (void) llmgw_members_heartbeat(writer, 1000, f->error);
        break;

    case DIE_IN_LIST:
        (void) llmgw_members_hold_list(writer, second_list,
                                       sizeof(second_list), &list);
        break;
    }

    _exit(0);
}


/* Checks, after a death, what old and new readers read, and that the next
   writer repairs the segment. */
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

    /* Records, then slots, cut anywhere: readers have the old view. */
    for (write = 1; write <= 2; write++) {
        for (permille = 0; permille <= 1000; permille += 125) {
            die_writing(f, DIE_IN_PUBLISH, write, permille);
            expect_stamp_and_recovery(f, 2);
        }
    }

    /* The kernel writes the head either whole or not at all. */
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

    /* Half of a load is its time, without its check. */
    die_writing(f, DIE_IN_LOAD, 1, 500);
    fixture_read(f);
    assert_int_equal(f->view.n, 4);
    assert_int_equal(f->view.loads[1].reported_ms, 0);
    assert_int_equal(f->view.loads[1].active_requests, 0);
}


/* Reads the second list, and checks its names. */
static llmgw_members_rc_t
second_list_read(fixture_t *f)
{
    char                names[LLMGW_MEMBERS_LIST_BYTES];
    size_t              bytes;
    llmgw_members_rc_t  rc;

    rc = llmgw_members_read_list(f->reader,
             llmgw_members_list_hash(second_list, sizeof(second_list)), names,
             &bytes);

    if (rc == LLMGW_MEMBERS_DONE) {
        assert_int_equal(bytes, sizeof(second_list));
        assert_memory_equal(names, second_list, bytes);
    }

    return rc;
}


/* The names, then their entry, cut anywhere: no reader gets half of a list. */
static void
test_writer_killed_in_a_list_leaves_no_half_of_it(void **state)
{
    int         write;
    size_t      permille;
    uint64_t    list;
    fixture_t  *f = *state;

    for (write = 1; write <= 2; write++) {
        for (permille = 0; permille <= 1000; permille += 125) {
            die_writing(f, DIE_IN_LIST, write, permille);
            assert_int_equal(llmgw_members_reader_check(f->reader, f->error),
                             LLMGW_MEMBERS_DONE);
            assert_int_equal(second_list_read(f),
                             write == 2 && permille >= 625
                             ? LLMGW_MEMBERS_DONE : LLMGW_MEMBERS_ABSENT);

            fixture_write(f, 8);
            assert_int_equal(llmgw_members_hold_list(f->writer, second_list,
                                                     sizeof(second_list),
                                                     &list),
                             LLMGW_MEMBERS_DONE);
            assert_int_equal(second_list_read(f), LLMGW_MEMBERS_DONE);

            llmgw_members_writer_destroy(f->writer);
            f->writer = NULL;
            assert_int_equal(unlink(f->path), 0);
        }
    }
}


/* No kernel should write half a head; a reader must not accept it
   in any case. */
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

    /* The writes are the lock's pid, header and records, head; an empty table
       has no slots. */
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


#define KILL_ROUNDS   100
#define KILL_LIMIT_S  300

/* Publishes for ever, each table with a stamp that is greater by one. */
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

        if (publish_array(writer, members, NULL, 10 + stamp % 22, 0)
                != LLMGW_MEMBERS_DONE
            || llmgw_members_heartbeat(writer, stamp, f->error)
                != LLMGW_MEMBERS_DONE)
        {
            _exit(1);
        }

        set_load_of(writer, stamp % 10, &load);
    }
}


/* Reads once; returns 1 for a new view, whose stamp and generation must be
   greater. */
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


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        fixture_test(test_writer_killed_in_a_publish_leaves_old_or_new),
        fixture_test(test_writer_killed_in_load_or_heartbeat_leaves_the_view),
        fixture_test(test_torn_load_says_never),
        fixture_test(test_writer_killed_in_a_list_leaves_no_half_of_it),
        fixture_test(test_half_a_head_is_refused_and_replaced),
        fixture_test(test_writer_killed_while_making_leaves_no_half_file),
        fixture_test(test_writers_killed_at_random_never_leave_a_mixture),
        fixture_test(test_next_writer_finds_nothing_to_mend),
    };

    return cmocka_run_group_tests_name("members_crash", tests, NULL, NULL);
}
