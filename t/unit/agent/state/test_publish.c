
/*
 * When changes are published: the first change at once, the changes after it
 * together; loads in place at any time.  The test moves the clock.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "state/publish.h"


#define T0_US  5000000ULL
#define MS     1000ULL

typedef struct {
    char        path[64];
    char        error[LLMGW_MEMBERS_ERROR_BYTES];
    publish_t  *publish;
    size_t      n;              /* members */
    struct {
        llmgw_member_t       member;
        llmgw_member_load_t  load;
        const char          *models;
        size_t               models_bytes;
    } members[8];
    size_t      nnew;           /* reported so far */
    size_t      ngone;
    size_t      nchanged;
} scene_t;

static scene_t  scene;


static void
scene_told(void *data, const llmgw_member_t *before,
    const llmgw_member_t *after)
{
    scene.nnew += before == NULL;
    scene.ngone += after == NULL;
    scene.nchanged += before != NULL && after != NULL;
}


static void
scene_add(const char *id)
{
    llmgw_member_t  *m;

    m = &scene.members[scene.n++].member;
    memset(m, 0, sizeof(*m));
    strcpy(m->id, id);
    strcpy(m->address, "10.0.0.1:7946");
    strcpy(m->grpc, "10.0.0.1:50051");
    m->weight = 1;
    publish_mark(scene.publish);
}


static void
scene_at(const void *data, size_t i, publish_item_t *item)
{
    item->member = &scene.members[i].member;
    item->load = &scene.members[i].load;
    item->models = scene.members[i].models;
    item->models_bytes = scene.members[i].models_bytes;
}


static int
scene_try(uint64_t now_us)
{
    publish_source_t  source = { .n = scene.n, .at = scene_at };

    return publish_flush(scene.publish, &source, now_us, scene.error);
}


static void
scene_flush(uint64_t now_us)
{
    assert_int_equal(scene_try(now_us), 0);
}


static void
scene_open(void)
{
    scene.publish = publish_create(scene.path, 8, scene_told, NULL,
                                   scene.error);
    assert_non_null(scene.publish);
    scene.nnew = scene.ngone = scene.nchanged = 0;
}


static int
setup(void **state)
{
    memset(&scene, 0, sizeof(scene));
    snprintf(scene.path, sizeof(scene.path), "/dev/shm/llmgw-publish-%d",
             (int) getpid());
    scene_open();

    return 0;
}


static int
teardown(void **state)
{
    char  lock[80];

    publish_destroy(scene.publish);
    unlink(scene.path);
    snprintf(lock, sizeof(lock), "%s.lock", scene.path);

    return unlink(lock);
}


/* What nginx would see. */
static size_t
scene_nread(llmgw_members_view_t *view)
{
    llmgw_members_reader_t  *reader;

    memset(view, 0, sizeof(*view));
    reader = llmgw_members_reader_create(scene.path);
    assert_int_equal(llmgw_members_read(reader, view, scene.error),
                     LLMGW_MEMBERS_DONE);
    llmgw_members_reader_destroy(reader);

    return view->n;
}


static size_t
scene_npublished(void)
{
    size_t                n;
    llmgw_members_view_t  view;

    n = publish_roster(scene.publish).n;
    assert_int_equal(scene_nread(&view), n);
    llmgw_members_view_done(&view);

    return n;
}


static void
first_change_is_due_at_once_and_the_next_after_20_ms(void **state)
{
    assert_int_equal(publish_wait_us(scene.publish, T0_US), 0);

    scene_add("a");
    assert_int_equal(publish_wait_us(scene.publish, T0_US), 0);
    scene_flush(T0_US);
    assert_int_equal(scene_npublished(), 1);

    /* Without changes there is no timer. */
    assert_int_equal(publish_wait_us(scene.publish, T0_US + 1), 0);

    scene_add("b");
    assert_int_equal(publish_wait_us(scene.publish, T0_US + MS), 19 * MS);
    scene_add("c");
    assert_int_equal(publish_wait_us(scene.publish, T0_US + 20 * MS - 1), 1);
    assert_int_equal(scene_npublished(), 1);
    assert_int_equal(publish_wait_us(scene.publish, T0_US + 20 * MS), 0);
    scene_flush(T0_US + 20 * MS);
    assert_int_equal(scene_npublished(), 3);
    assert_int_equal(scene.nnew, 3);

    /* After a quiet time the first change is published at once again. */
    scene_add("d");
    assert_int_equal(publish_wait_us(scene.publish, T0_US + 40 * MS), 0);
}


/* A large table is published less often, to leave time for other work. */
static void
publishing_takes_a_quarter_of_the_time_at_most(void **state)
{
    scene_add("a");
    scene_flush(T0_US);
    publish_took(scene.publish, 5 * MS);
    scene_add("b");
    assert_int_equal(publish_wait_us(scene.publish, T0_US + 5 * MS), 15 * MS);

    scene_flush(T0_US + 20 * MS);
    publish_took(scene.publish, 15 * MS);
    scene_add("c");
    assert_int_equal(publish_wait_us(scene.publish, T0_US + 35 * MS),
                     45 * MS);

    /* A quick publish makes the wait short again. */
    scene_flush(T0_US + 80 * MS);
    publish_took(scene.publish, 1);
    scene_add("d");
    assert_int_equal(publish_wait_us(scene.publish, T0_US + 80 * MS),
                     20 * MS);
}


/* An agent that ends publishes at once. */
static void
flush_publishes_whenever_it_is_called(void **state)
{
    scene_add("a");
    scene_flush(T0_US);
    scene_add("b");
    scene_flush(T0_US + 1);
    assert_int_equal(scene_npublished(), 2);
}


static void
load_is_told_in_place_while_a_change_waits(void **state)
{
    llmgw_member_load_t   *load;
    llmgw_members_view_t   view;

    scene_add("a");
    scene_flush(T0_US);
    scene_add("b");

    load = &scene.members[0].load;
    load->active_requests = 7;
    load->reported_ms = 9;
    publish_load(scene.publish, "a", load);
    publish_load(scene.publish, "b", load);     /* not published yet */

    assert_int_equal(scene_nread(&view), 1);
    assert_int_equal(view.loads[0].active_requests, 7);
    llmgw_members_view_done(&view);
    assert_int_equal(publish_roster(scene.publish).loads[0].active_requests, 7);

    scene_flush(T0_US + 20 * MS);
    assert_int_equal(scene_nread(&view), 2);
    assert_int_equal(view.loads[0].active_requests, 7);
    llmgw_members_view_done(&view);
}


static void
changes_are_told_once_each(void **state)
{
    scene_add("a");
    scene_add("b");
    scene_flush(T0_US);
    assert_int_equal(scene.nnew, 2);

    scene.members[0].member.incarnation++;
    scene.n--;
    scene_add("c");             /* in b's place */
    scene_flush(T0_US + 20 * MS);
    assert_int_equal(scene.nnew, 3);
    assert_int_equal(scene.ngone, 1);
    assert_int_equal(scene.nchanged, 1);

    publish_mark(scene.publish);
    scene_flush(T0_US + 40 * MS);
    assert_int_equal(scene.nnew + scene.ngone + scene.nchanged, 5);
}


static void
next_life_is_told_of_all_that_it_publishes(void **state)
{
    scene_add("a");
    scene_add("b");
    scene_flush(T0_US);

    publish_destroy(scene.publish);
    scene_open();
    assert_int_equal(scene_npublished(), 2);

    publish_mark(scene.publish);
    scene.n--;
    assert_int_equal(publish_wait_us(scene.publish, T0_US + 1), 0);
    scene_flush(T0_US + 1);
    assert_int_equal(scene.nnew, 1);
    assert_int_equal(scene.ngone, 0);
}


static void
refused_table_stays_marked(void **state)
{
    scene_add("a");
    scene_flush(T0_US);
    scene_add("b");
    scene.members[1].member.weight = 0;
    assert_int_equal(scene_try(T0_US + 20 * MS), -1);
    assert_int_equal(scene_npublished(), 1);

    scene.members[1].member.weight = 1;
    scene_flush(T0_US + 21 * MS);
    assert_int_equal(scene_npublished(), 2);
}


static void
scene_serves(size_t i, const char *models)
{
    scene.members[i].models = models;
    scene.members[i].models_bytes = strlen(models) + 1;
    scene.members[i].member.models =
        llmgw_members_list_hash(models, strlen(models) + 1);
    publish_mark(scene.publish);
}


/* What a reader finds of the i-th member's models. */
static void
assert_read_serves(size_t i, const char *models)
{
    char                     names[LLMGW_MEMBERS_LIST_BYTES];
    size_t                   bytes;
    llmgw_members_view_t     view = { 0 };
    llmgw_members_reader_t  *reader;

    reader = llmgw_members_reader_create(scene.path);
    assert_int_equal(llmgw_members_read(reader, &view, scene.error),
                     LLMGW_MEMBERS_DONE);
    assert_int_equal(llmgw_members_read_list(reader, view.members[i].models,
                                             names, &bytes),
                     LLMGW_MEMBERS_DONE);
    assert_string_equal(names, models);
    assert_string_equal(publish_models(scene.publish, view.members[i].models,
                                       &bytes), models);
    llmgw_members_view_done(&view);
    llmgw_members_reader_destroy(reader);
}


/* Each publication must keep the lists that it names, or they would vanish. */
static void
models_stay_as_long_as_members_have_them(void **state)
{
    size_t    i, bytes;
    uint64_t  first;

    scene_add("a");
    scene_add("b");
    scene_add("c");
    scene_serves(0, "one");
    scene_serves(1, "two");
    scene_serves(2, "one");
    first = scene.members[0].member.models;

    for (i = 0; i < 4; i++) {
        scene.members[1].member.incarnation++;
        publish_mark(scene.publish);
        scene_flush(T0_US + i * 20 * MS);
        assert_read_serves(0, "one");
        assert_read_serves(1, "two");
        assert_read_serves(2, "one");
    }

    /* The table before this one still names the list "one". */
    scene_serves(0, "three");
    scene_serves(2, "three");
    scene_flush(T0_US + 200 * MS);
    assert_read_serves(0, "three");
    assert_string_equal(publish_models(scene.publish, first, &bytes), "one");

    /* An agent that starts from this segment has the lists, too. */
    publish_destroy(scene.publish);
    scene_open();
    publish_mark(scene.publish);
    assert_string_equal(publish_models(scene.publish,
                                       scene.members[1].member.models,
                                       &bytes), "two");
    scene_flush(T0_US);
    assert_read_serves(1, "two");
}


#define publish_test(name)  \
    cmocka_unit_test_setup_teardown(name, setup, teardown)

int
main(void)
{
    const struct CMUnitTest  tests[] = {
        publish_test(first_change_is_due_at_once_and_the_next_after_20_ms),
        publish_test(publishing_takes_a_quarter_of_the_time_at_most),
        publish_test(flush_publishes_whenever_it_is_called),
        publish_test(load_is_told_in_place_while_a_change_waits),
        publish_test(changes_are_told_once_each),
        publish_test(next_life_is_told_of_all_that_it_publishes),
        publish_test(refused_table_stays_marked),
        publish_test(models_stay_as_long_as_members_have_them),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
