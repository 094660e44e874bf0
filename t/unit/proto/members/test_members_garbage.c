
/*
 * The members segment's reader with files that none of our writers made, or
 * that were damaged: it refuses a file with a reason or returns exactly what
 * was published, and the caller's view is whole either way.
 *
 * There are three kinds of files: arbitrary bytes, a true segment with damage,
 * and a well-formed segment with right checksums and wrong contents, which are
 * only found if every field is checked.
 */

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <errno.h>
#include <sys/syscall.h>

#include "t/unit/proto/members/test_members_support.h"


#define RECORDS     5
#define CAPACITY    8


/* A seam at link time: pread() stands in for the C library's, and counts. */
static size_t  pread_calls;


ssize_t
pread(int fd, void *buf, size_t bytes, off_t at)
{
    pread_calls++;

    return syscall(SYS_pread64, fd, buf, bytes, at);
}


/* A segment with a table of five, read once; its bytes are in `data`. */
static unsigned char *
segment_make(fixture_t *f, size_t *bytes)
{
    size_t               i;
    llmgw_member_t       members[RECORDS];
    llmgw_member_load_t  loads[RECORDS];

    members_make(members, RECORDS, 2);

    for (i = 0; i < RECORDS; i++) {
        loads[i] = load_make(i, 2);
    }

    fixture_write(f, CAPACITY);
    publish(f, 3, 1);
    assert_int_equal(publish_array(f->writer, members, loads, RECORDS, 0),
                     LLMGW_MEMBERS_DONE);
    fixture_read(f);

    return file_load(f->path, bytes);
}


/* Whatever is at the path now, the old view is unchanged. */
static void
expect_refused(fixture_t *f, const char *why)
{
    llmgw_members_view_t  view = { 0 };

    assert_int_equal(fixture_judge(f, &view), LLMGW_MEMBERS_REFUSED);
    assert_null(view.members);
    assert_int_equal(view.generation, 0);

    if (strstr(f->error, why) == NULL) {
        fail_msg("\"%s\" does not say \"%s\"", f->error, why);
    }

    /* A reader keeps the view that it has, and its generation. */
    assert_int_equal(llmgw_members_reader_check(f->reader, f->error),
                     LLMGW_MEMBERS_REFUSED);
    assert_non_null(strstr(f->error, why));
    assert_int_equal(llmgw_members_reader_generation(f->reader),
                     f->view.generation);
    fixture_read(f);
    assert_int_equal(view_stamp(&f->view), 2);
    assert_int_equal(f->view.n, RECORDS);
}


static void
test_bytes_without_sense_are_refused(void **state)
{
    size_t          i, n, bytes;
    fixture_t      *f = *state;
    unsigned char  *data, noise[20000];

    data = segment_make(f, &bytes);

    file_replace(f->path, "", 0);
    expect_refused(f, "truncated");

    for (i = 0; i < 200; i++) {
        for (n = 0; n < sizeof(noise); n++) {
            noise[n] = (unsigned char) rand();
        }

        n = 64 + (size_t) rand() % (sizeof(noise) - 64);
        file_replace(f->path, noise, n);
        expect_refused(f, "another magic");
    }

    /* A correct head, and behind it noise of the right size. */
    for (n = LLMGW_MEMBERS_HEAD_BYTES; n < bytes; n++) {
        data[n] = (unsigned char) rand();
    }

    file_replace(f->path, data, bytes);
    expect_refused(f, "table is damaged");

    free(data);
}


static void
test_truncated_files_are_refused(void **state)
{
    size_t          n, bytes;
    fixture_t      *f = *state;
    unsigned char  *data;

    data = segment_make(f, &bytes);

    for (n = 0; n < bytes; n += n < fixture_tables_bytes(CAPACITY)
                                ? 512 : 65536)
    {
        file_replace(f->path, data, n);
        expect_refused(f, n == 0 ? "truncated" : "size does not fit");
    }

    free(data);
}


static void
test_file_truncated_while_open_is_refused_and_comes_back(void **state)
{
    size_t      n;
    uint64_t    generation;
    fixture_t  *f = *state;

    free(segment_make(f, &n));

    for (n = 0; n < fixture_tables_bytes(CAPACITY); n += 512) {
        fixture_read(f);
        generation = f->view.generation;
        assert_int_equal(truncate(f->path, (off_t) n), 0);

        /* If the table can still be read, only bytes that are not in use were
           cut. */
        if (llmgw_members_read(f->reader, &f->view, f->error)
            != LLMGW_MEMBERS_REFUSED)
        {
            assert_int_equal(view_stamp(&f->view), 2);
        }

        assert_int_equal(llmgw_members_reader_check(f->reader, f->error),
                         LLMGW_MEMBERS_REFUSED);
        assert_int_equal(llmgw_members_reader_generation(f->reader),
                         generation);
        (void) llmgw_members_read_loads(f->reader, &f->view);
        assert_int_equal(view_stamp(&f->view), 2);
        assert_true(view_loads_are_right(&f->view));

        assert_int_equal(llmgw_members_heartbeat(f->writer, n, f->error),
                         LLMGW_MEMBERS_DONE);
        assert_int_equal(llmgw_members_reader_check(f->reader, f->error),
                         LLMGW_MEMBERS_DONE);
        assert_true(llmgw_members_reader_generation(f->reader) > generation);
    }
}


/* Reads a damaged file once: it is refused, or is exactly what
   was published. */
static int
flip_look(fixture_t *f, const unsigned char *data, size_t bytes,
    llmgw_members_view_t *view)
{
    llmgw_members_rc_t  rc;

    file_replace(f->path, data, bytes);

    rc = fixture_judge(f, view);
    if (rc == LLMGW_MEMBERS_REFUSED) {
        return 0;
    }

    assert_int_equal(rc, LLMGW_MEMBERS_DONE);
    assert_int_equal(view->n, RECORDS);
    assert_int_equal(view->isolated, 0);
    assert_int_equal(view->heartbeat_ms, 0);
    assert_int_equal(view->generation, f->view.generation);
    assert_int_equal(view_stamp(view), 2);
    assert_true(view_loads_are_right(view));

    return 1;
}


static void
test_flipped_bits_never_show(void **state)
{
    int                    done = 0, i, k;
    size_t                 bytes, where[8], bit[8];
    fixture_t             *f = *state;
    unsigned char         *data;
    llmgw_members_view_t   view = { 0 };

    data = segment_make(f, &bytes);

    for (i = 0; i < 4000; i++) {
        for (k = 0; k <= i % 8; k++) {
            where[k] = (size_t) rand() % fixture_tables_bytes(CAPACITY);
            bit[k] = 1u << (rand() % 8);
            data[where[k]] ^= (unsigned char) bit[k];
        }

        done += flip_look(f, data, bytes, &view);

        for (k--; k >= 0; k--) {
            data[where[k]] ^= (unsigned char) bit[k];
        }
    }

    /* Some files are refused and some are read: much of a file is
       not in use. */
    assert_in_range(done, 400, 3600);

    llmgw_members_view_done(&view);
    free(data);
}


static void
test_no_bit_of_head_or_header_may_flip(void **state)
{
    size_t                 bytes, bit, at;
    fixture_t             *f = *state;
    unsigned char         *data;
    llmgw_members_view_t   view = { 0 };

    data = segment_make(f, &bytes);
    at = (size_t) fixture_buffer_at(CAPACITY, 3);

    for (bit = 0; bit < 64 * 8; bit++) {
        data[bit / 8] ^= (unsigned char) (1u << bit % 8);
        assert_false(flip_look(f, data, bytes, &view));
        data[bit / 8] ^= (unsigned char) (1u << bit % 8);

        data[at + bit / 8] ^= (unsigned char) (1u << bit % 8);
        assert_false(flip_look(f, data, bytes, &view));
        data[at + bit / 8] ^= (unsigned char) (1u << bit % 8);
    }

    assert_true(flip_look(f, data, bytes, &view));
    llmgw_members_view_done(&view);
    free(data);
}


/*
 * A lie: bytes at a place in the head, in the header of the buffer in use, or
 * in its records.  Numbers are little-endian.
 */
typedef struct {
    enum { HEAD, BUFFER, TABLE }  part;
    size_t                        at;
    const char                   *why;
    const char                   *bytes;
    size_t                        n;
} lie_t;

#define IN_HEAD(field, why, bytes)                                           \
    { HEAD, offsetof(llmgw_members_head_t, field), why, bytes,               \
      sizeof(bytes) - 1 }

#define IN_BUFFER(field, why, bytes)                                         \
    { BUFFER, offsetof(llmgw_members_buffer_t, field), why, bytes,           \
      sizeof(bytes) - 1 }

/* For a field of record i; the place is computed from the layout later. */
#define IN_RECORD(i, field, why, bytes)                                      \
    { TABLE, i * RECORD_TAG + offsetof(llmgw_member_t, field), why, bytes,   \
      sizeof(bytes) - 1 }

#define RECORD_TAG  10000

#define X8   "xxxxxxxx"
#define X32  X8 X8 X8 X8
#define X64  X8 X8 X8 X8 X8 X8 X8 X8
#define X72  X64 X8

static const lie_t  lies[] = {
    IN_HEAD(magic, "another magic", "x"),
    IN_HEAD(layout, "another layout", "\0"),
    IN_HEAD(layout, "layout 1, which is no longer read: upgrade", "\1"),
    IN_HEAD(layout, "another layout", "\3"),
    IN_HEAD(record_bytes, "another layout", "\1"),
    IN_HEAD(capacity, "capacity is out of range", "\0"),
    IN_HEAD(capacity, "capacity is out of range", "\1\0\1"),
    IN_HEAD(capacity, "capacity is out of range", "\xff\xff\xff\xff"),
    IN_HEAD(capacity, "size does not fit", "\0\1"),
    IN_HEAD(generation, "generation is 0", "\0\0\0\0\0\0\0\0"),
    IN_HEAD(generation, "table is damaged", "\1\1\1\1\1\1\1\1"),
    IN_HEAD(sequence, "table is damaged", "\4"),
    IN_HEAD(sequence, "table is damaged", "\7"),
    IN_BUFFER(sequence, "table is damaged", "\5"),
    IN_BUFFER(generation, "table is damaged", "\1\1\1\1\1\1\1\1"),
    IN_BUFFER(count, "header is out of range", "\11"),
    IN_BUFFER(count, "header is out of range", "\xff\xff\xff\xff"),
    IN_BUFFER(flags, "header is out of range", "\2"),
    IN_RECORD(2, role, "record 2 has an unknown role", "\2"),
    IN_RECORD(2, liveness, "unknown liveness", "\4"),
    IN_RECORD(2, service, "unknown service", "\5"),
    IN_RECORD(2, draining, "drain flag", "\2"),
    IN_RECORD(2, weight, "record 2 has a weight", "\0\0\0\0"),
    IN_RECORD(4, weight, "record 4 has a weight", "\1\0\1\0"),
    IN_RECORD(4, id, "without an end", X64),
    IN_RECORD(4, model_version, "without an end", X64),
    IN_RECORD(4, address, "without an end", X72),
    IN_RECORD(4, grpc, "without an end", X72),
    IN_RECORD(4, drain_owner, "without an end", X72),
    IN_RECORD(0, id, "record 0 has an invalid id", "\0"),
    IN_RECORD(0, id, "record 0 has an invalid id", "r\"0"),
    IN_RECORD(0, id, "record 0 has an invalid id", "-00"),
    IN_RECORD(0, model_version, "invalid model version", "v "),
    IN_RECORD(0, address, "invalid address", "\0"),
    IN_RECORD(0, grpc, "invalid gRPC address", "\0"),
    IN_RECORD(0, grpc, "invalid gRPC address", "[::1]:0\0"),
    IN_RECORD(0, drain_owner, "invalid owner", "a\nb"),
    IN_RECORD(3, id, "record 3 has an id that is doubled", "r002"),
    IN_RECORD(3, id, "record 4 has an id that is doubled", "r9"),

    IN_RECORD(4, resume_group, "without an end", X64),
    IN_RECORD(0, resume_group, "record 0 has an invalid resume", "a/b"),
    IN_RECORD(4, resume_group, "record 4 has an invalid resume", "-a"),
    IN_RECORD(1, group_state, "record 1 has an unknown state in its group",
              "\5"),
    IN_RECORD(1, group_state, "record 1 has an invalid group", "\4"),
    IN_RECORD(1, group_epoch, "record 1 has an invalid group", "\1"),
    IN_RECORD(1, group_lock, "record 1 has an invalid group", "\1"),
    IN_RECORD(1, group, "record 1 has an invalid group", "g"),
    IN_RECORD(1, group, "without an end", X32),
};

#define NLIES  (sizeof(lies) / sizeof(lies[0]))


/* Writes the lie, then makes every check right, as members.h documents them. */
static void
lie_tell(unsigned char *data, const lie_t *lie)
{
    off_t                    at;
    uint64_t                 check;
    unsigned char           *part;
    llmgw_members_head_t     head;
    llmgw_members_buffer_t  *buffer;

    memcpy(&head, data, sizeof(head));
    at = fixture_buffer_at(CAPACITY, head.sequence);
    buffer = (llmgw_members_buffer_t *) (data + at);

    part = lie->part == HEAD ? data
           : lie->part == BUFFER ? (unsigned char *) buffer
           : (unsigned char *) (buffer + 1);
    memcpy(part + lie->at / RECORD_TAG * sizeof(llmgw_member_t)
           + lie->at % RECORD_TAG, lie->bytes, lie->n);

    buffer->records_check = XXH3_64bits(buffer + 1,
                                        RECORDS * sizeof(llmgw_member_t));
    buffer->check = XXH3_64bits(buffer, 56);
    check = XXH3_64bits(data, 56);
    memcpy(data + 56, &check, sizeof(check));
}


/* Writes into the file that is open, not a new one, so that records change
   that a view has. */
static void
file_rewrite(const char *path, const void *data, size_t bytes)
{
    int  fd;

    fd = open(path, O_WRONLY);
    assert_int_not_equal(fd, -1);
    assert_int_equal(pwrite(fd, data, bytes, 0), bytes);
    close(fd);
}


static void
test_lies_among_known_records_are_refused_by_name(void **state)
{
    size_t          i, bytes;
    fixture_t      *f = *state;
    unsigned char  *data, *copy;

    data = segment_make(f, &bytes);
    copy = malloc(bytes);
    assert_non_null(copy);

    for (i = 0; i < NLIES; i++) {
        memcpy(copy, data, bytes);
        lie_tell(copy, &lies[i]);
        file_rewrite(f->path, copy, bytes);

        assert_int_equal(llmgw_members_read(f->reader, &f->view, f->error),
                         LLMGW_MEMBERS_REFUSED);
        assert_non_null(strstr(f->error, lies[i].why));

        assert_int_equal(view_stamp(&f->view), 2);
        assert_int_equal(f->view.n, RECORDS);
    }

    file_rewrite(f->path, data, bytes);
    fixture_read(f);

    free(copy);
    free(data);
}


static void
test_well_formed_lies_are_refused_by_name(void **state)
{
    size_t          i, bytes;
    fixture_t      *f = *state;
    unsigned char  *data, *copy;

    data = segment_make(f, &bytes);
    copy = malloc(bytes);
    assert_non_null(copy);

    for (i = 0; i < NLIES; i++) {
        memcpy(copy, data, bytes);
        lie_tell(copy, &lies[i]);
        file_replace(f->path, copy, bytes);
        expect_refused(f, lies[i].why);
    }

    /* A lie in a place that means nothing is accepted: the checksums are
       right. */
    memcpy(copy, data, bytes);
    lie_tell(copy, &(lie_t) { .part = HEAD, .at = 44, .bytes = "x",
                                 .n = 1 });
    file_replace(f->path, copy, bytes);
    assert_int_equal(llmgw_members_reader_check(f->reader, f->error),
                     LLMGW_MEMBERS_DONE);

    free(copy);
    free(data);
}


static void
test_what_is_no_file_is_refused(void **state)
{
    char          other[128];
    size_t        bytes;
    fixture_t    *f = *state;
    struct stat   file;

    free(segment_make(f, &bytes));

    assert_int_equal(unlink(f->path), 0);
    assert_int_equal(mkfifo(f->path, 0644), 0);
    expect_refused(f, "no regular file");

    assert_int_equal(unlink(f->path), 0);
    assert_int_equal(mkdir(f->path, 0755), 0);
    expect_refused(f, "no regular file");

    /* A directory cannot be replaced; that is reported, and tried again. */
    assert_int_equal(llmgw_members_heartbeat(f->writer, 1, f->error),
                     LLMGW_MEMBERS_ESYSTEM);
    assert_non_null(strstr(f->error, "rename"));
    assert_int_equal(rmdir(f->path), 0);
    assert_int_equal(llmgw_members_heartbeat(f->writer, 1, f->error),
                     LLMGW_MEMBERS_DONE);

    /* No link is followed for writing, not even to a segment. */
    snprintf(other, sizeof(other), "%s.other", f->path);
    assert_int_equal(llmgw_members_reader_check(f->reader, f->error),
                     LLMGW_MEMBERS_DONE);
    assert_int_equal(rename(f->path, other), 0);
    assert_int_equal(symlink(other, f->path), 0);
    fixture_rewrite(f, CAPACITY);
    assert_int_equal(lstat(f->path, &file), 0);
    assert_true(S_ISREG(file.st_mode));
    assert_int_equal(llmgw_members_reader_check(f->reader, f->error),
                     LLMGW_MEMBERS_DONE);
}


static void
test_refused_file_is_not_read_again_before_it_changes(void **state)
{
    size_t          bytes;
    fixture_t      *f = *state;
    unsigned char  *data;

    data = segment_make(f, &bytes);
    data[fixture_buffer_at(CAPACITY, 3) + 100] ^= 1;
    file_replace(f->path, data, bytes);
    data[fixture_buffer_at(CAPACITY, 3) + 100] ^= 1;
    assert_int_equal(llmgw_members_reader_check(f->reader, f->error),
                     LLMGW_MEMBERS_REFUSED);
    assert_non_null(strstr(f->error, "table is damaged"));

    pread_calls = 0;
    f->error[0] = '\0';
    assert_int_equal(llmgw_members_reader_check(f->reader, f->error),
                     LLMGW_MEMBERS_REFUSED);
    assert_int_equal(pread_calls, 0);
    assert_non_null(strstr(f->error, "table is damaged"));

    file_replace(f->path, data, bytes);
    assert_int_equal(llmgw_members_reader_check(f->reader, f->error),
                     LLMGW_MEMBERS_DONE);
    free(data);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        fixture_test(test_bytes_without_sense_are_refused),
        fixture_test(test_truncated_files_are_refused),
        fixture_test(test_file_truncated_while_open_is_refused_and_comes_back),
        fixture_test(test_flipped_bits_never_show),
        fixture_test(test_no_bit_of_head_or_header_may_flip),
        fixture_test(test_well_formed_lies_are_refused_by_name),
        fixture_test(test_lies_among_known_records_are_refused_by_name),
        fixture_test(test_what_is_no_file_is_refused),
        fixture_test(test_refused_file_is_not_read_again_before_it_changes),
    };

    return cmocka_run_group_tests_name("members_garbage", tests, NULL, NULL);
}
