
/*
 * The members segment between a correct writer and a correct reader: what is
 * published is read, generations move only for changes of routing, loads
 * stay with their members, limits hold, and a reader beside a busy writer
 * never sees a mixture (the last test, which make test-tsan runs too).
 *
 * What happens when a writer dies or the file is spoiled: test_members_crash.
 */

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

#include "t/unit/proto/members/test_members_support.h"


static void
test_absent_file_is_absent(void **state)
{
    fixture_t  *f = *state;

    assert_int_equal(llmgw_members_reader_check(f->reader, f->error),
                     LLMGW_MEMBERS_ABSENT);
    assert_int_equal(llmgw_members_read(f->reader, &f->view, f->error),
                     LLMGW_MEMBERS_ABSENT);
    assert_int_equal(llmgw_members_reader_generation(f->reader), 0);
    assert_int_equal(llmgw_members_read_loads(f->reader, &f->view),
                     LLMGW_MEMBERS_ABSENT);
}


static void
test_new_segment_is_valid_and_empty(void **state)
{
    fixture_t  *f = *state;

    fixture_write(f, 16);
    fixture_read(f);

    assert_int_equal(f->view.n, 0);
    assert_int_equal(f->view.isolated, 0);
    assert_int_equal(f->view.heartbeat_ms, 0);
    assert_true(f->view.generation > 0);
}


static void
test_what_is_published_is_read_ordered_by_id(void **state)
{
    size_t           i;
    fixture_t       *f = *state;
    llmgw_member_t   members[5], reversed[5];

    members_make(members, 5, 77);
    strcpy(members[2].drain_owner, "rolling-update@host.1");
    members[2].draining = 1;
    members[3].role = LLMGW_ROLE_GATEWAY;
    members[3].grpc[0] = '\0';
    memset(&members[3].grpc[1], 'x', sizeof(members[3].grpc) - 1);
    members[4].model_version[0] = '\0';

    for (i = 0; i < 5; i++) {
        reversed[i] = members[4 - i];
    }

    fixture_write(f, 16);
    assert_int_equal(publish_array(f->writer, reversed, NULL, 5, 1),
                     LLMGW_MEMBERS_DONE);
    fixture_read(f);

    /* Bytes after the end of a string are not published. */
    memset(members[3].grpc, 0, sizeof(members[3].grpc));
    memset(members[4].model_version, 0, sizeof(members[4].model_version));

    assert_int_equal(f->view.n, 5);
    assert_int_equal(f->view.isolated, 1);
    assert_memory_equal(f->view.members, members, sizeof(members));
}


static void
test_mode_is_0644_under_any_umask(void **state)
{
    mode_t       old;
    fixture_t   *f = *state;
    struct stat  file;
    llmgw_members_head_t  head;

    llmgw_members_head_init(&head, 16);
    old = umask(0077);
    fixture_write(f, 16);
    umask(old);

    assert_int_equal(stat(f->path, &file), 0);
    assert_int_equal(file.st_mode & 07777, 0644);
    assert_int_equal(file.st_size, llmgw_members_file_bytes(&head));
    assert_true(file.st_blocks * 512 >= file.st_size);
}


static void
test_second_writer_is_told_the_first_ones_pid(void **state)
{
    char                     pid[32];
    fixture_t               *f = *state;
    llmgw_members_writer_t  *second = NULL;

    fixture_write(f, 16);
    assert_int_equal(llmgw_members_writer_create(&second, f->path, 16,
                                                 f->error),
                     LLMGW_MEMBERS_ESYSTEM);
    assert_int_equal(errno, EWOULDBLOCK);
    assert_null(second);

    snprintf(pid, sizeof(pid), "another writer, pid %d", (int) getpid());
    assert_non_null(strstr(f->error, pid));

    fixture_rewrite(f, 16);
}


static void
test_writer_goes_on_in_a_valid_file(void **state)
{
    fixture_t           *f = *state;
    struct stat          before, after;
    llmgw_member_load_t  load = load_make(1, 5);

    fixture_write(f, 16);
    publish(f, 3, 5);
    set_load_of(f->writer, 1, &load);
    assert_int_equal(llmgw_members_heartbeat(f->writer, 123, f->error),
                     LLMGW_MEMBERS_DONE);
    fixture_read(f);
    assert_int_equal(stat(f->path, &before), 0);

    fixture_rewrite(f, 8);
    assert_int_equal(stat(f->path, &after), 0);
    assert_int_equal(before.st_ino, after.st_ino);

    fixture_read(f);
    assert_int_equal(f->view.heartbeat_ms, 123);
    assert_int_equal(f->view.loads[1].active_requests, 1005);

    /* Publishing the same table again leaves the generation as it was. */
    publish(f, 3, 5);
    assert_int_equal(llmgw_members_reader_generation(f->reader),
                     f->view.generation);

    publish(f, 3, 6);
    assert_int_equal(llmgw_members_reader_generation(f->reader),
                     f->view.generation + 1);
}


/* A greater capacity needs a new file; a reader still has the old one open. */
static void
test_a_greater_capacity_carries_the_table_over(void **state)
{
    uint64_t             generation;
    fixture_t           *f = *state;
    struct stat          before, after;
    llmgw_member_load_t  load = load_make(1, 5);

    fixture_write(f, 4);
    publish(f, 4, 5);
    set_load_of(f->writer, 1, &load);
    assert_int_equal(llmgw_members_heartbeat(f->writer, 123, f->error),
                     LLMGW_MEMBERS_DONE);
    fixture_read(f);
    generation = f->view.generation;
    assert_int_equal(stat(f->path, &before), 0);

    fixture_rewrite(f, 100);
    assert_int_equal(stat(f->path, &after), 0);
    assert_int_not_equal(before.st_ino, after.st_ino);

    /* The reader keeps reading the old file until it checks the path. */
    fixture_read(f);
    assert_int_equal(f->view.generation, generation);
    assert_int_equal(view_stamp(&f->view), 5);

    assert_int_equal(llmgw_members_reader_check(f->reader, f->error),
                     LLMGW_MEMBERS_DONE);
    fixture_read(f);
    assert_int_equal(f->view.n, 4);
    assert_int_equal(view_stamp(&f->view), 5);
    assert_int_equal(f->view.generation, generation + 1);
    assert_int_equal(f->view.heartbeat_ms, 123);
    assert_int_equal(f->view.loads[1].active_requests, 1005);
    assert_int_equal(f->view.loads[1].reported_ms, 6);

    publish(f, 50, 6);
    fixture_read(f);
    assert_int_equal(f->view.n, 50);
    assert_int_equal(view_stamp(&f->view), 6);
}


static void
test_full_table_works_and_one_more_is_refused(void **state)
{
    fixture_t       *f = *state;
    llmgw_member_t   members[9];

    members_make(members, 9, 1);
    fixture_write(f, 8);

    publish(f, 7, 1);
    publish(f, 8, 1);
    fixture_read(f);
    assert_int_equal(f->view.n, 8);

    assert_int_equal(publish_array(f->writer, members, NULL, 9, 0),
                     LLMGW_MEMBERS_EFULL);
    fixture_read(f);
    assert_int_equal(f->view.n, 8);
    assert_int_equal(view_stamp(&f->view), 1);
}


static void
test_capacity_has_limits(void **state)
{
    fixture_t  *f = *state;

    assert_int_equal(llmgw_members_writer_create(&f->writer, f->path, 0,
                                                 f->error),
                     LLMGW_MEMBERS_ESYSTEM);
    assert_int_equal(llmgw_members_writer_create(&f->writer, f->path,
                                                 LLMGW_MEMBERS_MAX + 1,
                                                 f->error),
                     LLMGW_MEMBERS_ESYSTEM);
    assert_int_equal(errno, EINVAL);
    assert_null(f->writer);

    fixture_write(f, LLMGW_MEMBERS_MAX);
    publish(f, 64, 3);
    fixture_read(f);
    assert_int_equal(view_stamp(&f->view), 3);
}


static void
test_invalid_members_are_not_published(void **state)
{
    fixture_t       *f = *state;
    llmgw_member_t   members[3];

    fixture_write(f, 8);
    publish(f, 3, 1);

    members_make(members, 3, 2);
    members[2] = members[0];
    assert_int_equal(publish_array(f->writer, members, NULL, 3, 0),
                     LLMGW_MEMBERS_REFUSED);

    members_make(members, 3, 2);
    memset(members[1].id, 'a', sizeof(members[1].id));
    assert_int_equal(publish_array(f->writer, members, NULL, 3, 0),
                     LLMGW_MEMBERS_REFUSED);

    fixture_read(f);
    assert_int_equal(view_stamp(&f->view), 1);

    publish(f, 3, 3);
    fixture_read(f);
    assert_int_equal(view_stamp(&f->view), 3);
}


/* Publishes a changed member; returns whether the generation moved. */
static int
moves(fixture_t *f, const llmgw_member_t *member, int isolated)
{
    uint64_t  before, after;

    before = llmgw_members_reader_generation(f->reader);
    assert_int_equal(publish_array(f->writer, member, NULL, 1, isolated),
                     LLMGW_MEMBERS_DONE);
    after = llmgw_members_reader_generation(f->reader);
    assert_true(after == before || after == before + 1);

    return after != before;
}


static void
test_generation_moves_for_routing_alone(void **state)
{
    fixture_t      *f = *state;
    llmgw_member_t  m;

    fixture_write(f, 8);
    fixture_read(f);
    member_make(&m, 1, 1);
    assert_true(moves(f, &m, 0));
    assert_false(moves(f, &m, 0));

    strcpy(m.model_version, "v2");
    strcpy(m.address, "10.0.0.1:7000");
    strcpy(m.drain_owner, "someone");
    m.epoch++;
    m.incarnation++;
    assert_false(moves(f, &m, 0));
    fixture_read(f);
    assert_string_equal(f->view.members[0].model_version, "v2");
    assert_string_equal(f->view.members[0].drain_owner, "someone");
    assert_int_equal(f->view.members[0].epoch, m.epoch);

    m.liveness = LLMGW_LIVENESS_SUSPECT;
    assert_true(moves(f, &m, 0));
    m.service = LLMGW_SERVICE_DOWN;
    assert_true(moves(f, &m, 0));
    m.replica_start_ms++;           /* readers may have missed the DOWN */
    assert_true(moves(f, &m, 0));
    m.draining = 1;
    assert_true(moves(f, &m, 0));
    strcpy(m.grpc, "10.0.0.1:8000");
    assert_true(moves(f, &m, 0));
    m.weight++;
    assert_true(moves(f, &m, 0));
    m.max_capacity++;
    assert_true(moves(f, &m, 0));
    m.role = LLMGW_ROLE_GATEWAY;
    assert_true(moves(f, &m, 0));
    assert_true(moves(f, &m, 1));
    strcpy(m.id, "r002");
    assert_true(moves(f, &m, 1));
    assert_false(moves(f, &m, 1));
}


static void
test_loads_change_in_place(void **state)
{
    fixture_t           *f = *state;
    llmgw_member_load_t  load = load_make(2, 9);

    fixture_write(f, 8);
    publish(f, 4, 1);
    fixture_read(f);
    assert_int_equal(f->view.loads[2].reported_ms, 0);

    set_load_of(f->writer, 2, &load);
    set_load_of(f->writer, 4, &load);    /* no such member */
    assert_int_equal(llmgw_members_heartbeat(f->writer, 42, f->error),
                     LLMGW_MEMBERS_DONE);
    assert_string_equal(f->error, "");
    assert_int_equal(llmgw_members_reader_generation(f->reader),
                     f->view.generation);

    assert_int_equal(llmgw_members_read_loads(f->reader, &f->view),
                     LLMGW_MEMBERS_DONE);
    assert_int_equal(f->view.loads[2].active_requests, 2009);
    assert_int_equal(f->view.loads[2].reported_ms, 10);
    assert_int_equal(f->view.loads[3].reported_ms, 0);
    assert_int_equal(f->view.heartbeat_ms, 42);
}


static void
test_loads_follow_their_members(void **state)
{
    size_t               i;
    fixture_t           *f = *state;
    llmgw_member_t       members[4];
    llmgw_member_load_t  loads[4], load;

    fixture_write(f, 8);
    members_make(members, 4, 1);

    for (i = 0; i < 4; i++) {
        loads[i] = load_make(i, 1);
    }

    assert_int_equal(publish_array(f->writer, members, loads, 4, 0),
                     LLMGW_MEMBERS_DONE);
    fixture_read(f);

    /* r000 leaves, r009 joins, and the order changes: at each index is another
       member. */
    members[0] = members[3];
    members[3] = members[1];
    member_make(&members[1], 9, 1);
    loads[0] = loads[3];
    loads[3] = loads[1];
    memset(&loads[1], 0, sizeof(loads[1]));
    assert_int_equal(publish_array(f->writer, members, loads, 4, 0),
                     LLMGW_MEMBERS_DONE);

    /* The old view must not take loads from the new table. */
    assert_int_equal(llmgw_members_read_loads(f->reader, &f->view),
                     LLMGW_MEMBERS_UNCHANGED);
    assert_true(view_loads_are_right(&f->view));

    fixture_read(f);
    assert_true(view_loads_are_right(&f->view));
    assert_int_equal(member_number(&f->view.members[3]), 9);
    assert_int_equal(f->view.loads[3].reported_ms, 0);

    for (i = 0; i < 3; i++) {
        assert_int_equal(f->view.loads[i].active_requests, (i + 1) * 1000 + 1);
    }

    load = load_make(9, 2);
    set_load_of(f->writer, 9, &load);
    assert_int_equal(llmgw_members_read_loads(f->reader, &f->view),
                     LLMGW_MEMBERS_DONE);
    assert_int_equal(f->view.loads[3].active_requests, 9002);
    assert_true(view_loads_are_right(&f->view));
}


#define BUSY_MEMBERS    40
#define BUSY_PUBLISHES  5000
#define BUSY_VIEWS      1000    /* different views that the reader has to see */
#define BUSY_LIMIT_S    300     /* a reader that starves fails, never hangs */

typedef struct {
    llmgw_members_writer_t  *writer;
    atomic_int               stop;
    atomic_uint_fast64_t     published;
    atomic_uint_fast64_t     seen;          /* by the reader */
    atomic_int               failures;
} busy_t;


/* Members join and leave and change places, and their loads move with them. */
static void
busy_publish(busy_t *b, uint64_t stamp)
{
    size_t               i, k, n, first;
    llmgw_member_t       members[BUSY_MEMBERS];
    llmgw_member_load_t  loads[BUSY_MEMBERS];

    first = stamp % 7;
    n = BUSY_MEMBERS / 2 + stamp % (BUSY_MEMBERS / 2 - 7);

    for (i = 0; i < n; i++) {
        k = first + (stamp % 2 ? n - 1 - i : i);
        member_make(&members[i], k, stamp);
        loads[i] = load_make(k, stamp);
    }

    if (publish_array(b->writer, members, loads, n, 0)
        != LLMGW_MEMBERS_DONE)
    {
        b->failures++;
    }

    for (i = 0; i < n; i += 3) {
        loads[i] = load_make(member_number(&members[i]), stamp + 1);
        set_load_of(b->writer, member_number(&members[i]), &loads[i]);
    }
}


static void *
busy_writer(void *data)
{
    busy_t           *b = data;
    char              error[LLMGW_MEMBERS_ERROR_BYTES];
    uint64_t          stamp;
    struct timespec   pause = { 0, 50000 };

    for (stamp = 1; !b->stop; stamp++) {
        busy_publish(b, stamp);
        b->published = stamp;

        if (stamp % 16 != 0) {
            continue;
        }

        if (llmgw_members_heartbeat(b->writer, stamp, error)
                != LLMGW_MEMBERS_DONE
            || error[0] != '\0')
        {
            b->failures++;
        }

        /* Waits for the reader now and then: a slow one would only ever be
           BUSY. */
        while (b->seen < stamp && !b->stop) {
            nanosleep(&pause, NULL);
        }
    }

    return NULL;
}


/* Reads once; returns whether the view is one not seen before. */
static int
busy_look(fixture_t *f, uint64_t *last)
{
    uint64_t            stamp;
    llmgw_members_rc_t  rc;

    rc = llmgw_members_read(f->reader, &f->view, f->error);
    if (rc == LLMGW_MEMBERS_BUSY) {
        return 0;
    }

    if (rc != LLMGW_MEMBERS_DONE) {
        fail_msg("%s", f->error);
    }

    stamp = view_stamp(&f->view);
    assert_true(f->view.n == 0 || stamp != 0);
    assert_true(stamp >= *last);
    assert_true(view_loads_are_right(&f->view));

    (void) llmgw_members_read_loads(f->reader, &f->view);
    assert_int_equal(view_stamp(&f->view), stamp);
    assert_true(view_loads_are_right(&f->view));
    assert_true(llmgw_members_reader_generation(f->reader)
                >= f->view.generation);

    if (stamp == *last) {
        return 0;
    }

    *last = stamp;

    return 1;
}


static void
test_reader_beside_a_busy_writer_sees_whole_views(void **state)
{
    size_t      views = 0;
    time_t      end;
    busy_t      b = { .stop = 0 };
    uint64_t    last = 0;
    pthread_t   thread;
    fixture_t  *f = *state;

    fixture_write(f, 64);
    b.writer = f->writer;
    assert_int_equal(pthread_create(&thread, NULL, busy_writer, &b), 0);
    end = time(NULL) + BUSY_LIMIT_S;

    while ((views < BUSY_VIEWS || b.published < BUSY_PUBLISHES)
           && time(NULL) < end)
    {
        views += (size_t) busy_look(f, &last);
        b.seen = last;
    }

    b.stop = 1;
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(b.failures, 0);
    assert_true(views >= BUSY_VIEWS);
    assert_true(b.published >= BUSY_PUBLISHES);

    fixture_read(f);
    assert_int_equal(view_stamp(&f->view), b.published);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        fixture_test(test_absent_file_is_absent),
        fixture_test(test_new_segment_is_valid_and_empty),
        fixture_test(test_what_is_published_is_read_ordered_by_id),
        fixture_test(test_mode_is_0644_under_any_umask),
        fixture_test(test_second_writer_is_told_the_first_ones_pid),
        fixture_test(test_writer_goes_on_in_a_valid_file),
        fixture_test(test_a_greater_capacity_carries_the_table_over),
        fixture_test(test_full_table_works_and_one_more_is_refused),
        fixture_test(test_capacity_has_limits),
        fixture_test(test_invalid_members_are_not_published),
        fixture_test(test_generation_moves_for_routing_alone),
        fixture_test(test_loads_change_in_place),
        fixture_test(test_loads_follow_their_members),
        fixture_test(test_reader_beside_a_busy_writer_sees_whole_views),
    };

    return cmocka_run_group_tests_name("members", tests, NULL, NULL);
}
