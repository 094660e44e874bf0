
/*
 * Fuzzes the reader of the members segment.
 *
 * The bytes become a file (memfd, opened anew through /proc/self/fd like any
 * path) and a reader looks at it in every way it has.  Raw bytes never get
 * past the first check, so the input's first byte chooses how true the file
 * is: as it comes; as damage to a valid segment; or as contents of a segment
 * whose sizes and checks are made right afterwards, so that the look at every
 * field is reached.  What is given out must keep every promise of members.h.
 */

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <stdlib.h>
#include <string.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "proto/members/layout.h"


#define CAPACITY    4
#define FILE_BYTES  12288   /* of a segment of four */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);


static void
expect(int truth)
{
    if (!truth) {
        abort();
    }
}


/* A segment with two members, written out by hand. */
static void
segment_build(uint8_t *file)
{
    size_t                   i;
    llmgw_member_t           m;
    llmgw_members_head_t     head = { .layout = LLMGW_MEMBERS_LAYOUT };
    llmgw_members_buffer_t   buffer = { .sequence = 2, .generation = 9 };

    memset(file, 0, FILE_BYTES);
    memcpy(head.magic, LLMGW_MEMBERS_MAGIC, sizeof(head.magic));
    head.capacity = CAPACITY;
    head.generation = 9;
    head.sequence = 2;
    head.record_bytes = sizeof(m);
    memcpy(file, &head, sizeof(head));

    for (i = 0; i < 2; i++) {
        memset(&m, 0, sizeof(m));
        snprintf(m.id, sizeof(m.id), "r%zu", i);
        strcpy(m.address, "127.0.0.1:60000");
        strcpy(m.grpc, "[::1]:50000");
        m.weight = 1;
        memcpy(file + 4096 + 64 + i * sizeof(m), &m, sizeof(m));
    }

    buffer.count = 2;
    memcpy(file + 4096, &buffer, sizeof(buffer));
}


/* Makes all checks right, whatever they stand for. */
static void
segment_seal(uint8_t *file)
{
    uint64_t                check;
    llmgw_members_buffer_t  buffer;

    memcpy(&buffer, file + 4096, sizeof(buffer));
    buffer.records_check = XXH3_64bits(file + 4096 + 64,
        (buffer.count > CAPACITY ? 0 : buffer.count) * sizeof(llmgw_member_t));
    buffer.check = XXH3_64bits(&buffer, 56);
    memcpy(file + 4096, &buffer, sizeof(buffer));

    check = XXH3_64bits(file, 56);
    memcpy(file + 56, &check, sizeof(check));
}


/* Triples of place (two bytes) and value. */
static void
segment_patch(uint8_t *file, const uint8_t *data, size_t size)
{
    for (; size >= 3; data += 3, size -= 3) {
        file[(data[0] * 256u + data[1]) % FILE_BYTES] = data[2];
    }
}


/* Bytes into the head's or the table's places, in a row. */
static void
segment_fill(uint8_t *file, const uint8_t *data, size_t size)
{
    size_t  at;

    if (size < 2) {
        return;
    }

    at = 4096 + (data[0] * 256u + data[1]) % 2048;
    data += 2;
    size -= 2;
    memcpy(file + at, data, size < FILE_BYTES - at ? size : FILE_BYTES - at);
}


static void
view_expect(const llmgw_members_view_t *view)
{
    size_t  i;

    expect(view->generation != 0);
    expect(view->n <= LLMGW_MEMBERS_MAX && view->n <= view->capacity);

    for (i = 0; i < view->n; i++) {
        expect(llmgw_members_record_reason(&view->members[i]) == NULL);
        expect(i == 0 || strcmp(view->members[i - 1].id,
                                view->members[i].id) < 0);
    }
}


static void
reader_try(const char *path)
{
    char                     error[LLMGW_MEMBERS_ERROR_BYTES];
    llmgw_members_rc_t       rc;
    llmgw_members_view_t     view = { 0 };
    llmgw_members_reader_t  *reader;

    reader = llmgw_members_reader_create(path);
    expect(reader != NULL);

    (void) llmgw_members_reader_check(reader, error);
    (void) llmgw_members_reader_generation(reader);
    rc = llmgw_members_read(reader, &view, error);

    if (rc == LLMGW_MEMBERS_DONE) {
        view_expect(&view);
        (void) llmgw_members_read_loads(reader, &view);
        view_expect(&view);

    } else {
        expect(rc == LLMGW_MEMBERS_REFUSED);
        expect(view.members == NULL && view.n == 0);
        expect(error[0] != '\0'
               && strnlen(error, sizeof(error)) < sizeof(error));
    }

    llmgw_members_view_done(&view);
    llmgw_members_reader_destroy(reader);
}


static void
file_try(const uint8_t *file, size_t bytes)
{
    int   fd;
    char  path[64];

    fd = memfd_create("segment", MFD_CLOEXEC);
    expect(fd != -1);
    expect(pwrite(fd, file, bytes, 0) == (ssize_t) bytes);
    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    reader_try(path);
    close(fd);
}


int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint8_t  kind, file[FILE_BYTES];

    if (size == 0) {
        return 0;
    }

    kind = data[0] % 4;
    data++;
    size--;

    if (kind == 0) {
        file_try(data, size);
        return 0;
    }

    segment_build(file);

    if (kind == 1) {
        segment_seal(file);
        segment_patch(file, data, size);

    } else if (kind == 2) {
        segment_patch(file, data, size);
        segment_seal(file);

    } else {
        segment_fill(file, data, size);
        segment_seal(file);
    }

    file_try(file, sizeof(file));

    return 0;
}
