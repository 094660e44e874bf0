
/*
 * Places, checks and rules of the members segment (the format stands in
 * members.h).
 *
 * A record is an llmgw_member_t, byte for byte: the assertions below hold the
 * compiler to the documented offsets, so that neither side copies field by
 * field.  What comes out of a file is untrusted all the same; *_reason() look
 * at every field that a program later branches, indexes or prints by, and
 * give the first thing wrong in words.
 */

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <assert.h>
#include <errno.h>
#include <stddef.h>
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


static uint64_t
head_check(const llmgw_members_head_t *head)
{
    return XXH3_64bits(head, offsetof(llmgw_members_head_t, check));
}


void
llmgw_members_head_seal(llmgw_members_head_t *head)
{
    head->check = head_check(head);
}


int
llmgw_members_head_is_sealed(const llmgw_members_head_t *head)
{
    return head->check == head_check(head);
}


static uint64_t
buffer_check(const llmgw_members_buffer_t *buffer)
{
    return XXH3_64bits(buffer, offsetof(llmgw_members_buffer_t, check));
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
    buffer->check = buffer_check(buffer);
}


int
llmgw_members_buffer_is_sealed(const llmgw_members_buffer_t *buffer)
{
    return buffer->check == buffer_check(buffer);
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


static int
is_terminated(const char *text, size_t bytes)
{
    return memchr(text, '\0', bytes) != NULL;
}


static int
strings_are_terminated(const llmgw_member_t *m)
{
    return is_terminated(m->id, sizeof(m->id))
           && is_terminated(m->model_version, sizeof(m->model_version))
           && is_terminated(m->address, sizeof(m->address))
           && is_terminated(m->grpc, sizeof(m->grpc))
           && is_terminated(m->drain_owner, sizeof(m->drain_owner))
           && is_terminated(m->resume_group, sizeof(m->resume_group))
           && is_terminated(m->group, sizeof(m->group));
}


static int
is_printable(const char *text)
{
    for (; *text; text++) {
        if (*text < ' ' || *text > '~') {
            return 0;
        }
    }

    return 1;
}


static int
grpc_is_valid(const llmgw_member_t *m)
{
    if (m->grpc[0] == '\0') {
        return llmgw_member_role(m) == LLMGW_ROLE_GATEWAY;
    }

    return llmgw_members_address_is_valid(m->grpc);
}


static int
name_may_be_empty(const char *name)
{
    return name[0] == '\0' || llmgw_name_is_valid(name, strlen(name));
}


static const char *
shard_reason(const llmgw_member_t *m)
{
    if (m->is_shard > 1 || (m->is_shard && m->role != LLMGW_ROLE_GATEWAY)) {
        return "a shard in another role";
    }

    if (m->is_shard && !llmgw_shard_is_valid(&m->shard)) {
        return "invalid layers of a shard";
    }

    return NULL;
}


static const char *
strings_reason(const llmgw_member_t *m)
{
    if (!strings_are_terminated(m)) {
        return "a string without an end";
    }

    if (!llmgw_name_is_valid(m->id, strlen(m->id))) {
        return "an invalid id";
    }

    if (!name_may_be_empty(m->model_version)) {
        return "an invalid model version";
    }

    if (!m->is_shard && !name_may_be_empty(m->resume_group)) {
        return "an invalid resume group";
    }

    if (!llmgw_member_group_is_valid(m)) {
        return "an invalid group";
    }

    if (!llmgw_members_address_is_valid(m->address)) {
        return "an invalid address";
    }

    if (!grpc_is_valid(m)) {
        return "an invalid gRPC address";
    }

    if (!is_printable(m->drain_owner)) {
        return "an invalid owner of its drain";
    }

    return shard_reason(m);
}


const char *
llmgw_members_record_reason(const llmgw_member_t *m)
{
    if (m->role > LLMGW_ROLE_GATEWAY) {
        return "an unknown role";
    }

    if (m->liveness > LLMGW_LIVENESS_LEFT) {
        return "an unknown liveness";
    }

    if (m->service > LLMGW_SERVICE_DOWN) {
        return "an unknown service state";
    }

    if (m->group_state > LLMGW_GROUP_ACTIVE) {
        return "an unknown state in its group";
    }

    if (m->draining > 1) {
        return "a drain flag that is neither 0 nor 1";
    }

    if (m->weight == 0 || m->weight > LLMGW_MEMBERS_WEIGHT_MAX) {
        return "a weight out of range";
    }

    return strings_reason(m);
}


uint64_t
llmgw_members_list_hash(const char *names, size_t bytes)
{
    uint64_t  hash;

    hash = XXH3_64bits(names, bytes);

    return hash ? hash : 1;
}


int
llmgw_members_list_is_valid(const char *names, size_t bytes)
{
    size_t  at;

    if (bytes == 0 || bytes > LLMGW_MEMBERS_LIST_BYTES
        || names[bytes - 1] != '\0')
    {
        return 0;
    }

    for (at = 0; at < bytes; at += strlen(names + at) + 1) {
        if (names[at] == '\0' || !is_printable(names + at)) {
            return 0;
        }
    }

    return 1;
}


/*
 * Both tables ascend, so *next goes through the known one alongside.  Ids are
 * compared as bytes, since it is not checked yet that this one ends; where
 * that goes astray, records are checked needlessly, and nothing worse.
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
            reason = llmgw_members_record_reason(&records[i]);
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
