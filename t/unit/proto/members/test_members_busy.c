
/*
 * The members segment's reader beside a faster writer, in races that are rare
 * in practice: a seam within pread() makes the writer publish just between two
 * reads, as often as the test wants.  Also the reader beside a process that
 * truncates the file while it is read, which is why the file is not mapped.
 */

#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>

#include "t/unit/proto/members/test_members_support.h"


#define RECORDS     5
#define CAPACITY    8


/*
 * pread() stands in for the C library's, at link time, and calls back after
 * each read that was made.
 */
static struct {
    void   (*after)(void *data, size_t bytes);
    void    *data;
} seam;


ssize_t
pread(int fd, void *buf, size_t bytes, off_t at)
{
    ssize_t  n;

    n = syscall(SYS_pread64, fd, buf, bytes, at);

    if (seam.after != NULL) {
        seam.after(seam.data, bytes);
    }

    return n;
}


/* A writer that publishes while the reader reads, a number of times. */
typedef struct {
    fixture_t  *f;
    size_t      bytes;      /* acts after a pread of that size */
    int         times;
    uint64_t    stamp;
} haste_t;


static void
haste(void *data, size_t bytes)
{
    int              i;
    haste_t         *h = data;
    llmgw_member_t   members[RECORDS];

    if (bytes != h->bytes || h->times == 0) {
        return;
    }

    h->times--;

    /* Publishes twice, so that the buffer is written that is being read. */
    for (i = 0; i < 2; i++) {
        h->stamp++;
        members_make(members, RECORDS, h->stamp);
        member_make(&members[0], h->stamp % 2 ? 0 : 9, h->stamp);
        (void) publish_array(h->f->writer, members, NULL, RECORDS, 0);
    }
}


static void
expect_read_in_haste(fixture_t *f, haste_t *h, int times,
    llmgw_members_rc_t expected)
{
    h->times = times;
    seam.after = haste;
    seam.data = h;
    assert_int_equal(llmgw_members_read(f->reader, &f->view, f->error),
                     expected);
    seam.after = NULL;
}


static void
test_overtaken_reader_tries_again_then_says_busy(void **state)
{
    haste_t     h = { .stamp = 2 };
    fixture_t  *f = *state;

    fixture_write(f, CAPACITY);
    publish(f, RECORDS, 2);
    h.f = f;

    /* The writer publishes between the reads of header and records; all
       records are one pread. */
    h.bytes = sizeof(llmgw_members_buffer_t);
    expect_read_in_haste(f, &h, 3, LLMGW_MEMBERS_DONE);
    assert_int_equal(view_stamp(&f->view), h.stamp);
    expect_read_in_haste(f, &h, 1000, LLMGW_MEMBERS_BUSY);
    assert_in_range(h.times, 900, 999);
    assert_non_null(strstr(f->error, "changes faster"));

    /* Between the reads of records and slots: the view is right, but one
       older. */
    h.bytes = RECORDS * sizeof(llmgw_member_t);
    expect_read_in_haste(f, &h, 1, LLMGW_MEMBERS_DONE);
    assert_int_equal(view_stamp(&f->view), h.stamp - 2);
    assert_true(view_loads_are_right(&f->view));
}


static void
test_slots_of_a_later_table_are_not_taken_for_ones_own(void **state)
{
    size_t               i;
    haste_t              h = { .stamp = 10 };
    fixture_t           *f = *state;
    llmgw_member_t       members[RECORDS];
    llmgw_member_load_t  loads[RECORDS];

    fixture_write(f, CAPACITY);
    h.f = f;
    h.bytes = RECORDS * sizeof(llmgw_member_t);

    /* Members r000 .. r004 have loads; the faster writer puts r009 in r000's
       place. */
    members_make(members, RECORDS, 10);

    for (i = 0; i < RECORDS; i++) {
        loads[i] = load_make(i, 10);
    }

    assert_int_equal(publish_array(f->writer, members, loads, RECORDS, 0),
                     LLMGW_MEMBERS_DONE);
    expect_read_in_haste(f, &h, 1, LLMGW_MEMBERS_DONE);

    assert_int_equal(view_stamp(&f->view), 10);
    assert_true(view_loads_are_right(&f->view));

    for (i = 0; i < RECORDS; i++) {
        assert_int_equal(member_number(&f->view.members[i]), i);
    }
}


#define TORMENT_VIEWS    150
#define TORMENT_LIMIT_S  300

/* Runs for ever: publishes, truncates the file anywhere, restores it. */
static void
torment(fixture_t *f)
{
    uint64_t  stamp;

    if (llmgw_members_writer_create(&f->writer, f->path, CAPACITY, f->error)
        != LLMGW_MEMBERS_DONE)
    {
        _exit(1);
    }

    for (stamp = 1;; stamp++) {
        llmgw_member_t  members[RECORDS];

        members_make(members, RECORDS, stamp);

        if (publish_array(f->writer, members, NULL, RECORDS, 0)
                != LLMGW_MEMBERS_DONE
            || truncate(f->path, rand() % 12288) == -1
            || llmgw_members_heartbeat(f->writer, stamp, f->error)
                != LLMGW_MEMBERS_DONE)
        {
            _exit(1);
        }
    }
}


static void
test_reader_outlives_truncation_under_its_hands(void **state)
{
    int                  status, views = 0, refused = 0;
    pid_t                pid;
    time_t               end;
    uint64_t             last = 0;
    fixture_t           *f = *state;
    llmgw_members_rc_t   rc;

    pid = fork();
    assert_int_not_equal(pid, -1);

    if (pid == 0) {
        torment(f);
    }

    end = time(NULL) + TORMENT_LIMIT_S;

    while ((views < TORMENT_VIEWS || refused == 0) && time(NULL) < end) {
        (void) llmgw_members_reader_check(f->reader, f->error);
        rc = llmgw_members_read(f->reader, &f->view, f->error);
        refused += rc == LLMGW_MEMBERS_REFUSED;

        assert_true(f->view.n == 0 || view_stamp(&f->view) != 0);
        assert_true(view_stamp(&f->view) >= last);
        views += view_stamp(&f->view) > last;
        last = view_stamp(&f->view);
    }

    kill(pid, SIGKILL);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFSIGNALED(status));
    assert_true(views >= TORMENT_VIEWS && refused > 0);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        fixture_test(test_overtaken_reader_tries_again_then_says_busy),
        fixture_test(test_slots_of_a_later_table_are_not_taken_for_ones_own),
        fixture_test(test_reader_outlives_truncation_under_its_hands),
    };

    return cmocka_run_group_tests_name("members_busy", tests, NULL, NULL);
}
