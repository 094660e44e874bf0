
/*
 * The names area of the members segment, and the facts about a replica's
 * engine in records and load records.
 */

#include "t/unit/proto/members/test_members_support.h"


#define CAPACITY  8


static void
test_resume_group_routes(void **state)
{
    uint64_t        generation;
    fixture_t      *f = *state;
    llmgw_member_t  m;

    fixture_write(f, CAPACITY);
    member_make(&m, 1, 1);
    assert_int_equal(publish_array(f->writer, &m, NULL, 1, 0),
                     LLMGW_MEMBERS_DONE);
    fixture_read(f);
    generation = f->view.generation;

    strcpy(m.resume_group, "llama-8b.v1");
    assert_int_equal(publish_array(f->writer, &m, NULL, 1, 0),
                     LLMGW_MEMBERS_DONE);
    fixture_read(f);

    assert_int_equal(f->view.generation, generation + 1);
    assert_string_equal(f->view.members[0].resume_group, "llama-8b.v1");

    strcpy(m.resume_group, "a b");
    assert_int_equal(publish_array(f->writer, &m, NULL, 1, 0),
                     LLMGW_MEMBERS_REFUSED);
}


/* --- the names area */

/* Makes a name of so many bytes: "n000042" with a tail. */
static size_t
list_make(char *names, size_t number, size_t bytes)
{
    memset(names, 'x', bytes);
    snprintf(names, 8, "n%06zu", number);
    names[7] = 'x';
    names[bytes - 1] = '\0';

    return bytes;
}


static uint64_t
hold(fixture_t *f, size_t number, size_t bytes, llmgw_members_rc_t expected)
{
    char      names[LLMGW_MEMBERS_LIST_BYTES + 1];
    uint64_t  list = 0;

    list_make(names, number, bytes);
    assert_int_equal(llmgw_members_hold_list(f->writer, names, bytes, &list),
                     expected);

    return list;
}


static void
expect_list(fixture_t *f, uint64_t list, size_t number, size_t bytes)
{
    char    names[LLMGW_MEMBERS_LIST_BYTES], read[LLMGW_MEMBERS_LIST_BYTES];
    size_t  n = 0;

    list_make(names, number, bytes);
    assert_int_equal(llmgw_members_read_list(f->reader, list, read, &n),
                     LLMGW_MEMBERS_DONE);
    assert_int_equal(n, bytes);
    assert_memory_equal(read, names, bytes);
}


static void
expect_no_list(fixture_t *f, uint64_t list)
{
    char    read[LLMGW_MEMBERS_LIST_BYTES];
    size_t  n;

    assert_int_equal(llmgw_members_read_list(f->reader, list, read, &n),
                     LLMGW_MEMBERS_ABSENT);
}


static void
test_list_is_read_by_its_hash(void **state)
{
    uint64_t     one, two;
    fixture_t   *f = *state;
    const char  *bad[] = { "a\n", "\x80", "", "a\0\0" };
    const size_t sizes[] = { 3, 2, 1, 3 };
    size_t       i;
    uint64_t     list;

    fixture_write(f, CAPACITY);
    fixture_read(f);
    one = hold(f, 1, 30, LLMGW_MEMBERS_DONE);
    two = hold(f, 2, LLMGW_MEMBERS_LIST_BYTES, LLMGW_MEMBERS_DONE);
    assert_true(one != 0 && two != 0 && one != two);
    assert_int_equal(hold(f, 1, 30, LLMGW_MEMBERS_DONE), one);

    expect_list(f, one, 1, 30);
    expect_list(f, two, 2, LLMGW_MEMBERS_LIST_BYTES);
    expect_no_list(f, one + 1);
    expect_no_list(f, 0);

    hold(f, 3, LLMGW_MEMBERS_LIST_BYTES + 1, LLMGW_MEMBERS_REFUSED);

    for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        assert_int_equal(llmgw_members_hold_list(f->writer, bad[i], sizes[i],
                                                 &list),
                         LLMGW_MEMBERS_REFUSED);
    }

    assert_int_equal(llmgw_members_hold_list(f->writer, "ab", 2, &list),
                     LLMGW_MEMBERS_REFUSED);
    assert_int_equal(llmgw_members_hold_list(f->writer, "a\0b c", 6, &list),
                     LLMGW_MEMBERS_DONE);
}


/* A list moves the generation. */
static void
test_models_route(void **state)
{
    uint64_t        generation, list;
    fixture_t      *f = *state;
    llmgw_member_t  m;

    fixture_write(f, CAPACITY);
    member_make(&m, 1, 1);
    publish_array(f->writer, &m, NULL, 1, 0);
    fixture_read(f);
    generation = f->view.generation;

    m.models = hold(f, 1, 30, LLMGW_MEMBERS_DONE);
    m.models_cut = 3;
    publish_array(f->writer, &m, NULL, 1, 0);
    fixture_read(f);
    assert_int_equal(f->view.generation, generation + 1);
    assert_int_equal(f->view.members[0].models, m.models);
    assert_int_equal(f->view.members[0].models_cut, 3);

    expect_list(f, m.models, 1, 30);
    list = m.models;

    /* The list was not held again, so it may vanish: the record does not name
       it. */
    publish_array(f->writer, &m, NULL, 1, 0);
    fixture_read(f);
    assert_int_equal(f->view.generation, generation + 2);
    assert_int_equal(f->view.members[0].models, 0);
    assert_int_equal(f->view.members[0].models_cut, 0);

    hold(f, 1, 30, LLMGW_MEMBERS_DONE);
    m.models_cut = 4;
    publish_array(f->writer, &m, NULL, 1, 0);
    fixture_read(f);
    assert_int_equal(f->view.generation, generation + 3);
    assert_int_equal(f->view.members[0].models, list);
    assert_int_equal(f->view.members[0].models_cut, 4);
}


/* The writer can return the names of lists in the tables it last published. */
static void
test_writer_tells_the_lists_that_it_holds(void **state)
{
    char         names[LLMGW_MEMBERS_LIST_BYTES];
    size_t       bytes;
    uint64_t     list;
    fixture_t   *f = *state;

    assert_int_equal(llmgw_members_writer_create(&f->writer, NULL, CAPACITY,
                                                 f->error),
                     LLMGW_MEMBERS_DONE);
    list = hold(f, 1, 30, LLMGW_MEMBERS_DONE);
    publish(f, 2, 1);
    publish(f, 2, 2);
    list_make(names, 1, 30);
    assert_memory_equal(llmgw_members_held_list(f->writer, list, &bytes),
                        names, 30);
    assert_int_equal(bytes, 30);
    assert_null(llmgw_members_held_list(f->writer, list + 1, &bytes));
    assert_null(llmgw_members_held_list(f->writer, 0, &bytes));
}


static void
test_engine_load_changes_in_place(void **state)
{
    uint64_t                     generation;
    fixture_t                   *f = *state;
    llmgw_member_load_t          load = load_make(3, 2);
    const llmgw_engine_load_t   *engine;

    fixture_write(f, CAPACITY);
    publish(f, 5, 2);
    fixture_read(f);
    generation = f->view.generation;
    engine = &f->view.loads[3].engine;
    assert_int_equal(engine->reported, 0);

    load.engine = (llmgw_engine_load_t) {
        7, UINT32_MAX, 1001, LLMGW_ENGINE_ALL, UINT32_MAX - 1, 1002, 0
    };
    set_load_of(f->writer, 3, &load);
    assert_int_equal(llmgw_members_read_loads(f->reader, &f->view),
                     LLMGW_MEMBERS_DONE);
    assert_int_equal(f->view.generation, generation);
    assert_int_equal(f->view.loads[3].active_requests, 3002);
    assert_int_equal(engine->reported, LLMGW_ENGINE_ALL);
    assert_int_equal(engine->running, 7);
    assert_int_equal(engine->waiting, UINT32_MAX);

    /* A larger part than the whole counts as the whole. */
    assert_int_equal(engine->kv_permille, 1000);
    assert_int_equal(engine->hit_permille, 1000);
    assert_int_equal(engine->kv_free_blocks, UINT32_MAX - 1);
    assert_int_equal(f->view.loads[2].engine.reported, 0);
}


/* The bytes of a load record as it was before it had free blocks and hits, and
   as it is now. */
static void
test_older_load_records_lack_what_came_later(void **state)
{
    uint8_t               bytes[64];
    llmgw_member_load_t   load = { 0 }, read;
    llmgw_members_slot_t  slot;

    load.engine = (llmgw_engine_load_t) { 1, 2, 3, LLMGW_ENGINE_ALL,
                                          0x01020304, 0x0105, 0 };
    llmgw_members_slot_encode(&slot, "r1", &load);
    memcpy(bytes, &slot, sizeof(bytes));
    assert_int_equal(bytes[12], 1);
    assert_int_equal(bytes[16], 2);
    assert_int_equal(bytes[20], 3);
    assert_int_equal(bytes[22], 31);
    assert_int_equal(*(uint32_t *) (void *) (bytes + 24), 0x01020304);
    assert_int_equal(*(uint16_t *) (void *) (bytes + 28), 0x0105);

    /* An older writer reports three figures, and leaves the others 0. */
    load.engine = (llmgw_engine_load_t) { 1, 2, 3, 7, 0, 0, 0 };
    llmgw_members_slot_encode(&slot, "r1", &load);
    assert_true(llmgw_members_slot_decode(&slot, "r1", &read));
    assert_int_equal(read.engine.reported & LLMGW_ENGINE_FREE_BLOCKS, 0);
    assert_int_equal(read.engine.reported & LLMGW_ENGINE_HITS, 0);
    assert_int_equal(read.engine.kv_permille, 3);
}


static void
test_list_stays_as_long_as_a_table_may_need_it(void **state)
{
    size_t      i;
    uint64_t    lists[LLMGW_MEMBERS_LISTS], late;
    fixture_t  *f = *state;

    fixture_write(f, CAPACITY);
    fixture_read(f);

    for (i = 0; i < LLMGW_MEMBERS_LISTS; i++) {
        lists[i] = hold(f, i, 100, LLMGW_MEMBERS_DONE);
    }

    hold(f, 1000, 100, LLMGW_MEMBERS_EFULL);
    publish(f, 2, 1);

    /* No list can be replaced, since the table in use may name them all. */
    hold(f, 1000, 100, LLMGW_MEMBERS_EFULL);

    for (i = 1; i < LLMGW_MEMBERS_LISTS; i++) {
        hold(f, i, 100, LLMGW_MEMBERS_DONE);
    }

    publish(f, 2, 2);

    /* list 0 can be replaced: this publish did not name it. */
    expect_list(f, lists[0], 0, 100);
    late = hold(f, 1000, 100, LLMGW_MEMBERS_DONE);
    expect_list(f, late, 1000, 100);
    expect_no_list(f, lists[0]);
    hold(f, 1001, 100, LLMGW_MEMBERS_EFULL);

    for (i = 1; i < LLMGW_MEMBERS_LISTS; i++) {
        expect_list(f, lists[i], i, 100);
    }
}


static void
test_lists_outlive_their_writer_and_their_file(void **state)
{
    int         fd;
    uint64_t    list;
    fixture_t  *f = *state;

    fixture_write(f, CAPACITY);
    publish(f, 2, 1);
    list = hold(f, 7, 50, LLMGW_MEMBERS_DONE);
    publish(f, 2, 2);
    fixture_read(f);
    expect_list(f, list, 7, 50);

    fixture_rewrite(f, CAPACITY);
    expect_list(f, list, 7, 50);

    fixture_rewrite(f, CAPACITY * 2);
    assert_int_equal(llmgw_members_reader_check(f->reader, f->error),
                     LLMGW_MEMBERS_DONE);
    expect_list(f, list, 7, 50);

    /* Another process writes into a place: the heartbeat restores it. */
    fd = open(f->path, O_RDWR);
    assert_int_not_equal(fd, -1);
    assert_int_equal(pwrite(fd, "y", 1,
                            (off_t) (fixture_tables_bytes(CAPACITY * 2)
                                     + 4096 * LLMGW_MEMBERS_LISTS)),
                     1);
    close(fd);
    expect_no_list(f, list);
    assert_int_equal(llmgw_members_heartbeat(f->writer, 5, f->error),
                     LLMGW_MEMBERS_DONE);
    assert_non_null(strstr(f->error, "was overwritten"));
    assert_int_equal(llmgw_members_reader_check(f->reader, f->error),
                     LLMGW_MEMBERS_DONE);
    expect_list(f, list, 7, 50);
}


static void
test_writer_without_a_file_keeps_the_table(void **state)
{
    size_t                      n;
    fixture_t                  *f = *state;
    llmgw_member_load_t         load = load_make(1, 5);
    const llmgw_member_t       *members;
    const llmgw_member_load_t  *loads;

    assert_int_equal(llmgw_members_writer_create(&f->writer, NULL, CAPACITY,
                                                 f->error),
                     LLMGW_MEMBERS_DONE);
    publish(f, 3, 1);
    publish(f, 2, 2);
    set_load_of(f->writer, 1, &load);
    assert_int_equal(llmgw_members_heartbeat(f->writer, 1, f->error),
                     LLMGW_MEMBERS_DONE);

    members = llmgw_members_published(f->writer, &loads, &n);
    assert_int_equal(n, 2);
    assert_string_equal(members[1].id, "r001");
    assert_int_equal(members[1].epoch, 2);
    assert_int_equal(loads[1].active_requests, 1005);
    members = llmgw_members_published_before(f->writer, &n);
    assert_int_equal(n, 3);
    assert_int_equal(members[2].epoch, 1);
    assert_int_equal(access(f->path, F_OK), -1);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        fixture_test(test_resume_group_routes),
        fixture_test(test_list_is_read_by_its_hash),
        fixture_test(test_models_route),
        fixture_test(test_writer_tells_the_lists_that_it_holds),
        fixture_test(test_engine_load_changes_in_place),
        cmocka_unit_test(test_older_load_records_lack_what_came_later),
        fixture_test(test_list_stays_as_long_as_a_table_may_need_it),
        fixture_test(test_lists_outlive_their_writer_and_their_file),
        fixture_test(test_writer_without_a_file_keeps_the_table),
    };

    return cmocka_run_group_tests_name("members_lists", tests, NULL, NULL);
}
