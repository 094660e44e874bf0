
/*
 * Places and checks of the members segment (the format stands in members.h).
 *
 * A record is an llmgw_member_t, byte for byte: the assertions below hold the
 * compiler to the documented offsets, so that neither side copies field by
 * field.  What comes out of a file is untrusted all the same: the *_reason()
 * functions check every field by which a program later branches or indexes, or
 * which it prints.
 */

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <assert.h>
#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "proto/members/layout.h"


#define assert_at(type, field, offset)                                       \
    static_assert(offsetof(type, field) == offset, #type "." #field)

assert_at(llmgw_member_t, model_version, 64);
assert_at(llmgw_member_t, address, 128);
assert_at(llmgw_member_t, grpc, 200);
assert_at(llmgw_member_t, drain_owner, 272);
assert_at(llmgw_member_t, epoch, 344);
assert_at(llmgw_member_t, incarnation, 352);
assert_at(llmgw_member_t, replica_start_ms, 360);
assert_at(llmgw_member_t, weight, 368);
assert_at(llmgw_member_t, max_capacity, 372);
assert_at(llmgw_member_t, role, 376);
assert_at(llmgw_member_t, liveness, 377);
assert_at(llmgw_member_t, service, 378);
assert_at(llmgw_member_t, draining, 379);
assert_at(llmgw_member_t, is_shard, 380);
assert_at(llmgw_member_t, resume_group, 384);
assert_at(llmgw_member_t, shard, 384);
assert_at(llmgw_member_t, shard.memory_bytes, 416);
assert_at(llmgw_member_t, shard.first, 424);
assert_at(llmgw_member_t, shard.last, 426);
assert_at(llmgw_member_t, shard.layers, 428);
assert_at(llmgw_member_t, shard.is_loaded, 430);
static_assert(sizeof(llmgw_shard_t) == LLMGW_MEMBERS_NAME_BYTES,
              "a shard's facts in the place of its resume group");
assert_at(llmgw_member_t, models, 448);
assert_at(llmgw_member_t, models_cut, 456);
assert_at(llmgw_member_t, group_state, 460);
assert_at(llmgw_member_t, group_epoch, 464);
assert_at(llmgw_member_t, group, 472);
assert_at(llmgw_member_t, group_lock, 504);
static_assert(sizeof(llmgw_member_t) == 512, "record");

assert_at(llmgw_members_head_t, layout, 8);
assert_at(llmgw_members_head_t, capacity, 12);
assert_at(llmgw_members_head_t, generation, 16);
assert_at(llmgw_members_head_t, sequence, 24);
assert_at(llmgw_members_head_t, heartbeat_ms, 32);
assert_at(llmgw_members_head_t, record_bytes, 40);
assert_at(llmgw_members_head_t, check, 56);
static_assert(sizeof(llmgw_members_head_t) == 64, "head");

assert_at(llmgw_members_buffer_t, generation, 8);
assert_at(llmgw_members_buffer_t, count, 16);
assert_at(llmgw_members_buffer_t, flags, 20);
assert_at(llmgw_members_buffer_t, records_check, 24);
assert_at(llmgw_members_buffer_t, check, 56);
static_assert(sizeof(llmgw_members_buffer_t) == 64, "buffer's header");

assert_at(llmgw_members_slot_t, active_requests, 8);
assert_at(llmgw_members_slot_t, engine, 12);
assert_at(llmgw_members_slot_t, engine.kv_free_blocks, 24);
assert_at(llmgw_members_slot_t, engine.hit_permille, 28);
assert_at(llmgw_members_slot_t, check, 60);
static_assert(sizeof(llmgw_members_slot_t) == 64, "load record");

assert_at(llmgw_members_entry_t, bytes, 8);
static_assert(sizeof(llmgw_members_directory_t) == 4096, "directory");


void
llmgw_members_head_init(llmgw_members_head_t *head, uint32_t capacity)
{
    memset(head, 0, sizeof(*head));
    memcpy(head->magic, LLMGW_MEMBERS_MAGIC, LLMGW_MEMBERS_MAGIC_BYTES);
    head->layout = LLMGW_MEMBERS_LAYOUT;
    head->capacity = capacity;
    head->record_bytes = sizeof(llmgw_member_t);
}


static off_t
buffer_bytes(const llmgw_members_head_t *head)
{
    off_t  bytes;

    bytes = sizeof(llmgw_members_buffer_t)
            + (off_t) head->capacity
              * (off_t) (head->record_bytes + sizeof(llmgw_members_slot_t));

    return (bytes + LLMGW_MEMBERS_PAGE_BYTES - 1)
           / LLMGW_MEMBERS_PAGE_BYTES * LLMGW_MEMBERS_PAGE_BYTES;
}


off_t
llmgw_members_file_bytes(const llmgw_members_head_t *head)
{
    return llmgw_members_list_at(head, LLMGW_MEMBERS_LISTS);
}


off_t
llmgw_members_buffer_at(const llmgw_members_head_t *head, uint64_t sequence)
{
    return LLMGW_MEMBERS_HEAD_BYTES
           + (off_t) (sequence % 2) * buffer_bytes(head);
}


off_t
llmgw_members_slots_at(const llmgw_members_head_t *head, uint64_t sequence)
{
    return llmgw_members_buffer_at(head, sequence)
           + (off_t) sizeof(llmgw_members_buffer_t)
           + (off_t) head->capacity * (off_t) head->record_bytes;
}


off_t
llmgw_members_directory_at(const llmgw_members_head_t *head)
{
    return LLMGW_MEMBERS_HEAD_BYTES + 2 * buffer_bytes(head);
}


off_t
llmgw_members_list_at(const llmgw_members_head_t *head, size_t place)
{
    return llmgw_members_directory_at(head)
           + (off_t) sizeof(llmgw_members_directory_t)
           + (off_t) (place * LLMGW_MEMBERS_LIST_BYTES);
}


/* The check of a head, or of a buffer's header. */
static uint64_t
check_of(const void *sealed)
{
    return XXH3_64bits(sealed, offsetof(llmgw_members_head_t, check));
}


void
llmgw_members_head_seal(llmgw_members_head_t *head)
{
    head->check = check_of(head);
}


int
llmgw_members_head_is_sealed(const llmgw_members_head_t *head)
{
    return head->check == check_of(head);
}


static uint64_t
records_check(const llmgw_members_buffer_t *buffer, const void *records,
    size_t record_bytes)
{
    return XXH3_64bits(records, buffer->count * record_bytes);
}


void
llmgw_members_buffer_seal(llmgw_members_buffer_t *buffer, const void *records,
    size_t record_bytes)
{
    buffer->records_check = records_check(buffer, records, record_bytes);
    buffer->check = check_of(buffer);
}


int
llmgw_members_buffer_is_sealed(const llmgw_members_buffer_t *buffer)
{
    return buffer->check == check_of(buffer);
}


int
llmgw_members_records_are_sealed(const llmgw_members_buffer_t *buffer,
    const void *records, size_t record_bytes)
{
    return buffer->records_check
           == records_check(buffer, records, record_bytes);
}


static uint32_t
slot_check(const llmgw_members_slot_t *slot, const char *id)
{
    uint64_t  seed;

    seed = XXH3_64bits(id, strlen(id));

    return (uint32_t) XXH3_64bits_withSeed(slot,
                          offsetof(llmgw_members_slot_t, check), seed);
}


void
llmgw_members_slot_encode(llmgw_members_slot_t *slot, const char *id,
    const llmgw_member_load_t *load)
{
    memset(slot, 0, sizeof(*slot));
    slot->reported_ms = load->reported_ms;
    slot->active_requests = load->active_requests;
    slot->engine = load->engine;
    slot->check = slot_check(slot, id);
}


int
llmgw_members_slot_decode(const llmgw_members_slot_t *slot, const char *id,
    llmgw_member_load_t *load)
{
    if (slot->check != slot_check(slot, id)) {
        return 0;
    }

    load->reported_ms = slot->reported_ms;
    load->active_requests = slot->active_requests;
    load->engine = slot->engine;

    if (load->engine.kv_permille > 1000) {
        load->engine.kv_permille = 1000;
    }

    if (load->engine.hit_permille > 1000) {
        load->engine.hit_permille = 1000;
    }

    return 1;
}


/* Records of a later version may be longer than those known here. */
static int
layout_is_known(const llmgw_members_head_t *head)
{
    return head->layout == LLMGW_MEMBERS_LAYOUT
           && head->record_bytes >= sizeof(llmgw_member_t)
           && head->record_bytes <= LLMGW_MEMBERS_RECORD_MAX_BYTES
           && head->record_bytes % sizeof(llmgw_members_slot_t) == 0;
}


const char *
llmgw_members_head_reason(const llmgw_members_head_t *head, off_t file_bytes)
{
    if (memcmp(head->magic, LLMGW_MEMBERS_MAGIC, LLMGW_MEMBERS_MAGIC_BYTES)) {
        return "it has another magic";
    }

    if (head->layout == 1) {
        return "it has layout 1, which is no longer read: upgrade the agent "
               "that writes it";
    }

    if (!layout_is_known(head)) {
        return "it has another layout";
    }

    if (head->capacity == 0 || head->capacity > LLMGW_MEMBERS_MAX) {
        return "its capacity is out of range";
    }

    if (file_bytes < llmgw_members_file_bytes(head)) {
        return "its size does not fit its capacity";
    }

    if (head->generation == 0) {
        return "its generation is 0";
    }

    return NULL;
}


uint64_t
llmgw_members_list_hash(const char *names, size_t bytes)
{
    uint64_t  hash;

    hash = XXH3_64bits(names, bytes);

    return hash ? hash : 1;
}


/*
 * Both tables ascend, so *next moves through the known one in step.  Ids are
 * compared as arrays of bytes, since it is not checked yet that a NUL ends this
 * one.  If *next moves too far, records are checked needlessly, and nothing
 * worse.
 */
static int
is_known(const llmgw_members_view_t *known, size_t *next,
    const llmgw_member_t *m)
{
    int  order;

    for (/* void */; *next < known->n; (*next)++) {
        order = memcmp(known->members[*next].id, m->id, sizeof(m->id));

        if (order >= 0) {
            return order == 0
                   && memcmp(&known->members[*next], m, sizeof(*m)) == 0;
        }
    }

    return 0;
}


const char *
llmgw_members_table_reason(const llmgw_member_t *records, size_t n,
    const llmgw_members_view_t *known, size_t *where)
{
    size_t       i, next;
    const char  *reason;

    next = 0;

    for (i = 0; i < n; i++) {
        *where = i;

        if (known == NULL || !is_known(known, &next, &records[i])) {
            reason = llmgw_member_reason(&records[i]);
            if (reason != NULL) {
                return reason;
            }
        }

        if (i > 0 && strcmp(records[i - 1].id, records[i].id) >= 0) {
            return "an id that is doubled or out of order";
        }
    }

    return NULL;
}


int
llmgw_members_pread(int fd, void *buf, size_t bytes, off_t offset)
{
    char     *p;
    ssize_t   n;

    for (p = buf; bytes > 0; p += n, offset += n, bytes -= (size_t) n) {
        n = pread(fd, p, bytes, offset);

        if (n == 0) {
            return 0;
        }

        if (n < 0) {
            if (errno != EINTR) {
                return -1;
            }

            n = 0;
        }
    }

    return 1;
}


ssize_t
llmgw_members_directory_find(const llmgw_members_directory_t *directory,
    uint64_t list)
{
    ssize_t  i;

    for (i = 0; list != 0 && i < LLMGW_MEMBERS_LISTS; i++) {
        if (directory->entries[i].list == list) {
            return i;
        }
    }

    return -1;
}


void
llmgw_members_system_error(const char *call, const char *path, char *error)
{
    int  saved;

    saved = errno;
    snprintf(error, LLMGW_MEMBERS_ERROR_BYTES, "%s(\"%.150s\") failed (%d: %s)",
             call, path, saved, strerror(saved));
    errno = saved;
}
