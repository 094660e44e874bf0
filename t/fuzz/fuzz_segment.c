
/*
 * Fuzzes the reader of the members segment.
 *
 * The bytes become a file (memfd, opened again through /proc/self/fd like any
 * path), and a reader reads it in every way it has.  Raw bytes never get past
 * the first check, so the input's first byte chooses how valid the file is: raw
 * bytes; damage to a valid segment; or contents of a segment whose sizes and
 * checksums are set right afterwards, so that the checks of every field are
 * reached.  What the reader returns must keep every promise of members.h.
 */

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <stdlib.h>
#include <string.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "proto/members/layout.h"
#include "proto/members/shards.h"


#define CAPACITY     4
#define TABLES_AT    4096
#define TABLES_BYTES 12288      /* head and buffers of a segment of four */
#define NAMES_AT     (TABLES_BYTES + 4096)      /* where the names begin */
#define PATCH_BYTES  (NAMES_AT + 4096)          /* the part that is damaged */
#define FILE_BYTES   (TABLES_BYTES + 4096 + 256 * 4096)

/* A list that says what a shard computes. */
static const char  names[] = "llama\0"
    "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef\0n1";

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
    llmgw_members_head_t     head;
    llmgw_members_entry_t    entry = { .bytes = sizeof(names) };
    llmgw_members_buffer_t   buffer = { .sequence = 2, .generation = 9 };

    memset(file, 0, FILE_BYTES);
    llmgw_members_head_init(&head, CAPACITY);
    head.generation = 9;
    head.sequence = 2;
    memcpy(file, &head, sizeof(head));

    for (i = 0; i < 2; i++) {
        memset(&m, 0, sizeof(m));
        snprintf(m.id, sizeof(m.id), "r%zu", i);
        strcpy(m.address, "127.0.0.1:60000");
        strcpy(m.grpc, "[::1]:50000");
        m.weight = 1;

        if (i == 0) {
            m.role = LLMGW_ROLE_GATEWAY;
            m.is_shard = 1;
            m.shard.last = 3;
            m.shard.layers = 8;
        }

        if (i == 1) {
            strcpy(m.group, "g");
            m.group_state = LLMGW_GROUP_ACTIVE;
            m.group_epoch = 7;
        }

        memcpy(file + TABLES_AT + 64 + i * sizeof(m), &m, sizeof(m));
    }

    buffer.count = 2;
    memcpy(file + TABLES_AT, &buffer, sizeof(buffer));

    entry.list = llmgw_members_list_hash(names, sizeof(names));
    memcpy(file + TABLES_BYTES, &entry, sizeof(entry));
    memcpy(file + NAMES_AT, names, sizeof(names));
}


/* Sets all checksums right, whatever is in the parts that they cover. */
static void
segment_seal(uint8_t *file)
{
    uint64_t                check;
    llmgw_members_head_t    head;
    llmgw_members_entry_t   entry;
    llmgw_members_buffer_t  buffer;

    memcpy(&head, file, sizeof(head));
    memcpy(&buffer, file + TABLES_AT, sizeof(buffer));
    buffer.records_check = XXH3_64bits(file + TABLES_AT + 64,
        (buffer.count > CAPACITY ? 0 : buffer.count)
        * (head.record_bytes > LLMGW_MEMBERS_RECORD_MAX_BYTES
           ? 0 : head.record_bytes));
    buffer.check = XXH3_64bits(&buffer, 56);
    memcpy(file + TABLES_AT, &buffer, sizeof(buffer));

    memcpy(&entry, file + TABLES_BYTES, sizeof(entry));

    if (entry.bytes <= LLMGW_MEMBERS_LIST_BYTES) {
        entry.list = llmgw_members_list_hash((const char *) file + NAMES_AT,
                                             entry.bytes);
        memcpy(file + TABLES_BYTES, &entry, sizeof(entry));
    }

    check = XXH3_64bits(file, 56);
    memcpy(file + 56, &check, sizeof(check));
}


/* Writes values into the file: each triple is a place (two bytes)
   and a value. */
static void
segment_patch(uint8_t *file, const uint8_t *data, size_t size)
{
    for (; size >= 3; data += 3, size -= 3) {
        file[(data[0] * 256u + data[1]) % PATCH_BYTES] = data[2];
    }
}


/* Writes consecutive bytes into the head or the table. */
static void
segment_fill(uint8_t *file, const uint8_t *data, size_t size)
{
    size_t  at;

    if (size < 2) {
        return;
    }

    at = (data[0] & 0x80 ? TABLES_BYTES : TABLES_AT)
         + (data[0] * 256u + data[1]) % 8192;
    data += 2;
    size -= 2;
    memcpy(file + at, data, size < PATCH_BYTES - at ? size : PATCH_BYTES - at);
}


static void
view_expect(const llmgw_members_view_t *view)
{
    size_t  i;

    expect(view->generation != 0);
    expect(view->n <= LLMGW_MEMBERS_MAX && view->n <= view->capacity);

    for (i = 0; i < view->n; i++) {
        expect(llmgw_member_reason(&view->members[i]) == NULL);
        expect(i == 0 || strcmp(view->members[i - 1].id,
                                view->members[i].id) < 0);
        expect(!llmgw_shard_is_usable(&view->members[i])
               || llmgw_shard_is_valid(&view->members[i].shard));
    }
}


/* If a list is returned, it is a well-formed one, and the one asked for. */
static void
list_try(llmgw_members_reader_t *reader, uint64_t list)
{
    char                 found[LLMGW_MEMBERS_LIST_BYTES];
    size_t               bytes;
    llmgw_shard_model_t  model;

    if (llmgw_members_read_list(reader, list, found, &bytes)
        == LLMGW_MEMBERS_DONE)
    {
        expect(llmgw_members_list_is_valid(found, bytes));
        expect(llmgw_members_list_hash(found, bytes) == list);
        expect(llmgw_shard_model_read(&model, found, bytes) != 0
               || llmgw_shard_model_write(&model, found) == bytes);
    }
}


static void
reader_try(const char *path, uint64_t list)
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
        list_try(reader, list);

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
    int                    fd;
    char                   path[64];
    llmgw_members_entry_t  entry = { .list = 0 };

    if (bytes >= PATCH_BYTES) {
        memcpy(&entry, file + TABLES_BYTES, sizeof(entry));
    }

    fd = memfd_create("segment", MFD_CLOEXEC);
    expect(fd != -1);
    expect(pwrite(fd, file, bytes, 0) == (ssize_t) bytes);
    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    reader_try(path, entry.list);
    close(fd);
}


int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint8_t         kind;
    static uint8_t  file[FILE_BYTES];

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

    file_try(file, FILE_BYTES);

    return 0;
}
