
/*
 * Versions of llmgw beside each other: a segment that 0.2.0 wrote, and one
 * that a later version may write, are read with all that this reader knows;
 * and what 0.2.0 knew is still written as 0.2.0 wrote it, byte for byte.
 *
 * segment-0.2.0.hex is the file that scene_write() made with the code of
 * 0.2.0, and never changes.  A line has an offset and the 32 bytes there;
 * bytes that stand in no line are 0.
 */

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <sys/syscall.h>
#include <time.h>

#include "t/unit/proto/members/test_members_support.h"


#define GOLDEN    "t/unit/proto/members/segment-0.2.0.hex"
#define CAPACITY  8
#define APPENDED  5000          /* bytes after the known part of a file */
#define MODELS    0xa06033fe3e861300      /* hash of the list below */
#define LAYERS    0xa0d7ed06a9cb8601


/* A new segment's generation comes from the wall clock, which stands still
   here. */
int
clock_gettime(clockid_t clock, struct timespec *now)
{
    if (clock != CLOCK_REALTIME) {
        return (int) syscall(SYS_clock_gettime, clock, now);
    }

    *now = (struct timespec) { .tv_sec = 1764306438, .tv_nsec = 123456789 };

    return 0;
}


static const char  models[] = "llama-3-8b\0llama-3-8b:chat";
static const char  retired[] = "llama-2-7b";
static const char  layers[] = "toy\0"
    "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef\0n1";

/* Members that together have each field of a record at least once set. */
static const llmgw_member_t  scene[] = {
    { .id = "gw1", .address = "[2001:db8::1]:17946", .epoch = 1, .weight = 1,
      .role = LLMGW_ROLE_GATEWAY },
    { .id = "r1", .model_version = "v1.2-rc_1", .address = "10.0.0.1:17946",
      .grpc = "10.0.0.1:7946", .epoch = 0x0102030405060708,
      .incarnation = 0x1112131415161718, .replica_start_ms = 1764300000000,
      .weight = 100, .max_capacity = 64, .service = LLMGW_SERVICE_READY,
      .resume_group = "llama-8b", .models = MODELS, .models_cut = 2,
      .group = "0123456789012345678901234567890",
      .group_state = LLMGW_GROUP_ACTIVE, .group_epoch = 1764300000000001,
      .group_lock = 0x2122232425262728 },
    { .id = "r2", .address = "10.0.0.2:17946", .grpc = "replica-2:7946",
      .drain_owner = "rolling-update@host.1", .epoch = 2, .weight = 1,
      .liveness = LLMGW_LIVENESS_SUSPECT, .service = LLMGW_SERVICE_STALLED,
      .draining = 1, .models = MODELS, .group = "g",
      .group_state = LLMGW_GROUP_STANDBY },
    { .id = "r3", .address = "10.0.0.3:17946", .grpc = "10.0.0.3:7946",
      .epoch = 3, .weight = 1, .liveness = LLMGW_LIVENESS_DEAD,
      .service = LLMGW_SERVICE_DOWN },
    { .id = "r4", .address = "10.0.0.4:17946", .grpc = "10.0.0.4:7946",
      .epoch = 4, .weight = 1, .liveness = LLMGW_LIVENESS_LEFT,
      .service = LLMGW_SERVICE_STOPPED },
    { .id = "s1", .address = "10.0.0.5:17946", .grpc = "10.0.0.5:7946",
      .epoch = 5, .weight = 1, .max_capacity = 8,
      .role = LLMGW_ROLE_GATEWAY, .is_shard = 1,
      .service = LLMGW_SERVICE_READY, .models = LAYERS,
      .shard = { .zone = "eu-1", .memory_bytes = 5ULL << 32, .first = 4,
                 .last = 11, .layers = 16, .is_loaded = 1 } },
};

#define N  (sizeof(scene) / sizeof(scene[0]))

static const llmgw_member_load_t  scene_loads[N] = {
    [1] = { .active_requests = 7, .reported_ms = 123456000,
            .engine = { .running = 5, .waiting = 2, .kv_permille = 321,
                        .reported = LLMGW_ENGINE_ALL, .kv_free_blocks = 70000,
                        .hit_permille = 450 } },
    [2] = { .active_requests = 1, .reported_ms = 123455000 },
    [5] = { .active_requests = 3, .reported_ms = 123456001,
            .engine = { .waiting = 9, .reported = LLMGW_ENGINE_WAITING } },
};


static void
scene_hold(fixture_t *f)
{
    uint64_t  list;

    assert_int_equal(llmgw_members_hold_list(f->writer, models, sizeof(models),
                                             &list), LLMGW_MEMBERS_DONE);
    assert_int_equal(list, MODELS);
    assert_int_equal(llmgw_members_hold_list(f->writer, layers, sizeof(layers),
                                             &list), LLMGW_MEMBERS_DONE);
    assert_int_equal(list, LAYERS);
}


/* Writes both buffers, lists that are in use and one that is not, loads, and a
   heartbeat. */
static void
scene_write(fixture_t *f)
{
    uint64_t  list;

    fixture_write(f, CAPACITY);
    scene_hold(f);
    assert_int_equal(llmgw_members_hold_list(f->writer, retired,
                                             sizeof(retired), &list),
                     LLMGW_MEMBERS_DONE);
    assert_int_equal(publish_array(f->writer, scene, NULL, 3, 0),
                     LLMGW_MEMBERS_DONE);

    scene_hold(f);
    assert_int_equal(publish_array(f->writer, scene, scene_loads, N, 1),
                     LLMGW_MEMBERS_DONE);
    llmgw_members_set_load(f->writer, "r2", &scene_loads[1]);
    llmgw_members_set_load(f->writer, "r2", &scene_loads[2]);
    assert_int_equal(llmgw_members_heartbeat(f->writer, 123456789, f->error),
                     LLMGW_MEMBERS_DONE);
}


/* The file's bytes; free() them. */
static unsigned char *
golden_load(size_t *bytes)
{
    char                  line[128];
    FILE                 *file;
    size_t                i;
    unsigned              byte;
    unsigned long         at;
    unsigned char        *data;
    llmgw_members_head_t  head;

    llmgw_members_head_init(&head, CAPACITY);
    *bytes = (size_t) llmgw_members_file_bytes(&head);
    data = calloc(1, *bytes);
    file = fopen(GOLDEN, "re");
    assert_non_null(data);
    assert_non_null(file);

    while (fgets(line, sizeof(line), file) != NULL) {
        assert_int_equal(sscanf(line, "%lx:", &at), 1);
        assert_in_range(at, 0, *bytes - 32);

        for (i = 0; i < 32; i++) {
            assert_int_equal(sscanf(line + 9 + 2 * i, "%2x", &byte), 1);
            data[at + i] = (unsigned char) byte;
        }
    }

    fclose(file);

    return data;
}


static void
expect_list(fixture_t *f, uint64_t list, const char *expected, size_t bytes)
{
    char    names[LLMGW_MEMBERS_LIST_BYTES];
    size_t  n = 0;

    assert_int_equal(llmgw_members_read_list(f->reader, list, names, &n),
                     LLMGW_MEMBERS_DONE);
    assert_int_equal(n, bytes);
    assert_memory_equal(names, expected, bytes);
}


/* What is there for later versions, in the view as in the file. */
static void
view_forget_spare(llmgw_members_view_t *view)
{
    size_t           i;
    llmgw_member_t  *m;

    for (i = 0; i < view->n; i++) {
        m = &view->members[i];
        memset(m->reserved, 0, sizeof(m->reserved));
        memset(m->group_reserved, 0, sizeof(m->group_reserved));

        if (m->is_shard) {
            memset(m->shard.reserved, 0, sizeof(m->shard.reserved));
        }

        view->loads[i].engine.reserved = 0;
        view->loads[i].engine.reported &= LLMGW_ENGINE_ALL;
    }
}


/* Checks that the file at the path has what the scene wrote. */
static void
expect_scene(fixture_t *f)
{
    llmgw_members_rc_t  rc;

    rc = llmgw_members_reader_check(f->reader, f->error);
    assert_true(rc == LLMGW_MEMBERS_DONE || rc == LLMGW_MEMBERS_UNCHANGED);
    fixture_read(f);
    view_forget_spare(&f->view);
    assert_int_equal(f->view.n, N);
    assert_int_equal(f->view.isolated, 1);
    assert_int_equal(f->view.heartbeat_ms, 123456789);
    assert_memory_equal(f->view.members, scene, sizeof(scene));
    assert_memory_equal(f->view.loads, scene_loads, sizeof(scene_loads));
    expect_list(f, MODELS, models, sizeof(models));
    expect_list(f, LAYERS, layers, sizeof(layers));
}


static void
test_segment_of_0_2_0_is_read(void **state)
{
    size_t          bytes;
    fixture_t      *f = *state;
    unsigned char  *data;

    data = golden_load(&bytes);
    file_replace(f->path, data, bytes);
    free(data);
    expect_scene(f);
    assert_int_equal(f->view.generation, 1764306438123458);
    expect_list(f, llmgw_members_list_hash(retired, sizeof(retired)), retired,
                sizeof(retired));
}


static void
test_segment_of_0_2_0_is_what_is_written(void **state)
{
    size_t          bytes, written;
    fixture_t      *f = *state;
    unsigned char  *data, *own;

    scene_write(f);
    own = file_load(f->path, &written);
    data = golden_load(&bytes);
    assert_int_equal(written, bytes);
    assert_memory_equal(own, data, bytes);
    free(own);
    free(data);
}


/* An agent that follows one of 0.2.0 continues with its file. */
static void
test_segment_of_0_2_0_is_continued(void **state)
{
    size_t          bytes;
    fixture_t      *f = *state;
    struct stat     before, after;
    unsigned char  *data;

    data = golden_load(&bytes);
    file_replace(f->path, data, bytes);
    free(data);
    assert_int_equal(stat(f->path, &before), 0);

    fixture_write(f, CAPACITY);
    assert_int_equal(llmgw_members_heartbeat(f->writer, 123456789, f->error),
                     LLMGW_MEMBERS_DONE);
    assert_string_equal(f->error, "");
    expect_scene(f);
    scene_hold(f);
    assert_int_equal(publish_array(f->writer, scene, scene_loads, N, 1),
                     LLMGW_MEMBERS_DONE);
    assert_int_equal(stat(f->path, &after), 0);
    assert_int_equal(before.st_ino, after.st_ino);
    expect_scene(f);
    assert_int_equal(f->view.generation, 1764306438123458);
}


/* A file with the layout of llmgw 0.1.0 is refused, and replaced by an empty
   one. */
static void
test_segment_of_layout_1_is_refused_by_name_and_replaced(void **state)
{
    size_t                 bytes;
    fixture_t             *f = *state;
    unsigned char         *data;
    llmgw_members_head_t   head;

    data = golden_load(&bytes);
    memcpy(&head, data, sizeof(head));
    head.layout = 1;
    head.record_bytes = 384;
    llmgw_members_head_seal(&head);
    memcpy(data, &head, sizeof(head));
    file_replace(f->path, data, 12288);
    free(data);
    assert_int_equal(llmgw_members_reader_check(f->reader, f->error),
                     LLMGW_MEMBERS_REFUSED);
    assert_string_equal(f->error, "no members segment: it has layout 1, which "
                        "is no longer read: upgrade the agent that writes it");

    fixture_write(f, CAPACITY);
    fixture_read(f);
    assert_int_equal(f->view.n, 0);
}


/* --- later versions */

/* The spare bytes of a record, all of them used. */
static void
record_fill_spare(llmgw_member_t *m)
{
    memset(m->reserved, 'x', sizeof(m->reserved));
    memset(m->group_reserved, 'x', sizeof(m->group_reserved));

    if (m->is_shard) {
        memset(m->shard.reserved, 'x', sizeof(m->shard.reserved));
    }
}


static void
slot_fill_spare(llmgw_members_slot_t *slot, const char *id)
{
    slot->engine.reported |= (uint16_t) ~LLMGW_ENGINE_ALL;
    slot->engine.reserved = 0x7878;
    memset(slot->reserved, 'x', sizeof(slot->reserved));
    slot->check = (uint32_t) XXH3_64bits_withSeed(slot, 60,
                                 XXH3_64bits(id, strlen(id)));
}


/* Lists of unknown kinds, one of which has no form that this version knows. */
static void
directory_fill_spare(unsigned char *file, const llmgw_members_head_t *head)
{
    size_t                  i;
    llmgw_members_entry_t  *entries;
    const char             *later[] = { "later", "\1\0\2" };

    entries = (void *) (file + llmgw_members_directory_at(head));

    for (i = 0; i < 2; i++) {
        entries[i].list = llmgw_members_list_hash(later[i], 4);
        entries[i].bytes = 4;
        memcpy(file + llmgw_members_list_at(head, i), later[i], 4);
    }

    for (i = 0; i < LLMGW_MEMBERS_LISTS; i++) {
        entries[i].reserved = 0x78787878;
    }
}


/*
 * Writes the scene as a later version may write it: longer records, every
 * spare byte used, further lists, and bytes after the former end of the file.
 */
static unsigned char *
later_make(const unsigned char *data, uint32_t record_bytes, size_t *bytes)
{
    size_t                   i;
    unsigned char           *file, *to;
    const unsigned char     *from;
    llmgw_members_head_t     head, later;
    llmgw_members_buffer_t  *buffer;

    memcpy(&head, data, sizeof(head));
    later = head;
    later.record_bytes = record_bytes;
    memset(later.reserved, 'x', sizeof(later.reserved));
    llmgw_members_head_seal(&later);

    *bytes = (size_t) llmgw_members_file_bytes(&later) + APPENDED;
    file = malloc(*bytes);
    assert_non_null(file);
    memset(file, 'x', *bytes);
    memcpy(file, &later, sizeof(later));

    from = data + llmgw_members_buffer_at(&head, head.sequence);
    buffer = (void *) (file + llmgw_members_buffer_at(&later, head.sequence));
    memcpy(buffer, from, offsetof(llmgw_members_buffer_t, reserved));
    from += sizeof(*buffer);
    to = (unsigned char *) (buffer + 1);

    for (i = 0; i < N; i++) {
        memcpy(to + i * record_bytes, from + i * sizeof(llmgw_member_t),
               sizeof(llmgw_member_t));
        record_fill_spare((void *) (to + i * record_bytes));
    }

    llmgw_members_buffer_seal(buffer, to, record_bytes);
    to = file + llmgw_members_slots_at(&later, head.sequence);
    memcpy(to, data + llmgw_members_slots_at(&head, head.sequence),
           N * sizeof(llmgw_members_slot_t));

    for (i = 0; i < N; i++) {
        slot_fill_spare((llmgw_members_slot_t *) (void *) to + i, scene[i].id);
    }

    memcpy(file + llmgw_members_directory_at(&later),
           data + llmgw_members_directory_at(&head),
           *bytes - APPENDED - (size_t) llmgw_members_directory_at(&later));
    directory_fill_spare(file, &later);

    return file;
}


static void
test_segment_of_a_later_version_is_read_as_far_as_it_is_known(void **state)
{
    size_t                 i, bytes, later_bytes;
    fixture_t             *f = *state;
    const uint32_t         good[] = { 512, 576, 768, 1024 };
    const uint32_t         bad[] = { 384, 448, 513, 520, 1088, 4096 };
    unsigned char         *data, *later;
    llmgw_members_head_t   head;

    data = golden_load(&bytes);

    for (i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
        later = later_make(data, good[i], &later_bytes);
        file_replace(f->path, later, later_bytes);
        free(later);
        expect_scene(f);

        /* If the agent is set back to this version, with a limit below the
           number of members that it finds, it continues from them. */
        fixture_write(f, N - 1);
        assert_int_equal(llmgw_members_heartbeat(f->writer, 123456789,
                                                 f->error),
                         LLMGW_MEMBERS_DONE);
        expect_scene(f);
        llmgw_members_writer_destroy(f->writer);
        f->writer = NULL;
    }

    memcpy(&head, data, sizeof(head));

    for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        head.record_bytes = bad[i];
        llmgw_members_head_seal(&head);
        memcpy(data, &head, sizeof(head));
        file_replace(f->path, data, bytes);
        assert_int_equal(fixture_judge(f, &f->view), LLMGW_MEMBERS_REFUSED);
        assert_non_null(strstr(f->error, "another layout"));
    }

    free(data);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        fixture_test(test_segment_of_0_2_0_is_read),
        fixture_test(test_segment_of_0_2_0_is_what_is_written),
        fixture_test(test_segment_of_0_2_0_is_continued),
        fixture_test(test_segment_of_layout_1_is_refused_by_name_and_replaced),
        fixture_test(
            test_segment_of_a_later_version_is_read_as_far_as_it_is_known),
    };

    return cmocka_run_group_tests_name("members_versions", tests, NULL, NULL);
}
