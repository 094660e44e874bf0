
#include <stdlib.h>
#include <string.h>

#include "proto/members/table.h"


/* calloc: pages of records that never come are never touched. */
int
llmgw_members_table_init(llmgw_members_table_t *table,
    const llmgw_members_head_t *head)
{
    memset(table, 0, sizeof(*table));

    table->record_bytes = head->record_bytes;
    table->slot_bytes = llmgw_members_slot_bytes(head);

    table->header = calloc(1, sizeof(llmgw_members_buffer_t)
                              + head->capacity * table->record_bytes);
    table->loads = calloc(head->capacity, sizeof(llmgw_member_load_t));
    table->slots = calloc(head->capacity, table->slot_bytes);
    table->sorted = calloc(head->capacity, sizeof(uint32_t));
    table->records = table->record_bytes == sizeof(llmgw_member_t)
                     && table->header != NULL
                     ? (llmgw_member_t *) (table->header + 1)
                     : calloc(head->capacity, sizeof(llmgw_member_t));

    if (table->header == NULL || table->records == NULL
        || table->loads == NULL || table->slots == NULL
        || table->sorted == NULL)
    {
        llmgw_members_table_done(table);
        return -1;
    }

    return 0;
}


static int
records_are_apart(const llmgw_members_table_t *table)
{
    return (const void *) table->records != (const void *) (table->header + 1);
}


void
llmgw_members_table_done(llmgw_members_table_t *table)
{
    if (table->header == NULL || records_are_apart(table)) {
        free(table->records);
    }

    free(table->header);
    free(table->loads);
    free(table->slots);
    free(table->sorted);
    memset(table, 0, sizeof(*table));
}


size_t
llmgw_members_table_bytes(const llmgw_members_table_t *table)
{
    return sizeof(llmgw_members_buffer_t)
           + table->header->count * table->record_bytes;
}


size_t
llmgw_members_table_slots_bytes(const llmgw_members_table_t *table)
{
    return table->header->count * table->slot_bytes;
}


/* Bytes after the NUL, perhaps of the caller's stack, must not get out. */
static void
string_encode(char *to, const char *from, size_t bytes)
{
    size_t  len;

    len = strnlen(from, bytes);
    memcpy(to, from, len);
    memset(to + len, 0, bytes - len);
}


static void
shard_encode(llmgw_shard_t *to, const llmgw_shard_t *from)
{
    string_encode(to->zone, from->zone, sizeof(to->zone));
    to->memory_bytes = from->memory_bytes;
    to->first = from->first;
    to->last = from->last;
    to->layers = from->layers;
    to->is_loaded = from->is_loaded;
}


/* What layout 2 has beyond layout 1. */
static void
record_encode_2(llmgw_member_t *to, const llmgw_member_t *from)
{
    if (from->is_shard) {
        shard_encode(&to->shard, &from->shard);

    } else {
        string_encode(to->resume_group, from->resume_group,
                      sizeof(to->resume_group));
    }

    to->models = from->models;
    to->models_cut = from->models_cut;
    to->group_state = from->group_state;
    to->group_epoch = from->group_epoch;
    to->group_lock = from->group_lock;
    string_encode(to->group, from->group, sizeof(to->group));
}


/* What the layout has no place for is left out of the table, too. */
static void
record_encode(llmgw_member_t *to, const llmgw_member_t *from,
    size_t record_bytes)
{
    memset(to, 0, sizeof(*to));

    string_encode(to->id, from->id, sizeof(to->id));
    string_encode(to->model_version, from->model_version,
                  sizeof(to->model_version));
    string_encode(to->address, from->address, sizeof(to->address));
    string_encode(to->grpc, from->grpc, sizeof(to->grpc));
    string_encode(to->drain_owner, from->drain_owner,
                  sizeof(to->drain_owner));

    to->epoch = from->epoch;
    to->incarnation = from->incarnation;
    to->replica_start_ms = from->replica_start_ms;
    to->weight = from->weight;
    to->max_capacity = from->max_capacity;
    to->role = from->role;
    to->liveness = from->liveness;
    to->service = from->service;
    to->draining = from->draining;
    to->is_shard = from->is_shard;

    if (record_bytes > LLMGW_MEMBERS_RECORD_1_BYTES) {
        record_encode_2(to, from);
    }
}


static int
order_by_id(const void *a, const void *b, void *members)
{
    const llmgw_member_t *const  *m;

    m = members;

    return strncmp(m[*(const uint32_t *) a]->id, m[*(const uint32_t *) b]->id,
                   LLMGW_MEMBERS_NAME_BYTES);
}


/* Writes records in the order of ids, whatever the order of the members. */
static void
records_encode(llmgw_members_table_t *table,
    const llmgw_member_t *const *members, size_t n)
{
    size_t  k;

    for (k = 0; k < n; k++) {
        table->sorted[k] = (uint32_t) k;
    }

    qsort_r(table->sorted, n, sizeof(uint32_t), order_by_id, (void *) members);

    for (k = 0; k < n; k++) {
        record_encode(&table->records[k], members[table->sorted[k]],
                      table->record_bytes);
    }
}


/* What the table in use knows of this id's load, from `*from` upwards. */
static void
load_recall(const llmgw_members_table_t *table, const char *id, size_t *from,
    llmgw_member_load_t *load)
{
    int     order;
    size_t  k;

    memset(load, 0, sizeof(*load));

    for (k = *from; k < table->header->count; k++) {
        order = strcmp(table->records[k].id, id);

        if (order == 0) {
            *load = table->loads[k];
        }

        if (order >= 0) {
            break;
        }
    }

    *from = k;
}


static void
loads_encode(llmgw_members_table_t *table,
    const llmgw_members_table_t *before,
    const llmgw_member_load_t *const *loads, size_t n)
{
    size_t               k, from;
    llmgw_member_load_t  load;

    for (k = 0, from = 0; k < n; k++) {
        if (loads != NULL) {
            load = *loads[table->sorted[k]];

        } else {
            load_recall(before, table->records[k].id, &from, &load);
        }

        llmgw_members_table_set_load(table, k, &load);
    }
}


int
llmgw_members_table_build(llmgw_members_table_t *table,
    const llmgw_members_table_t *before, const llmgw_member_t *const *members,
    const llmgw_member_load_t *const *loads, size_t n)
{
    size_t                where;
    llmgw_members_view_t  known = { 0 };

    known.members = before->records;
    known.n = before->header->count;

    records_encode(table, members, n);

    if (llmgw_members_table_reason(table->records, n, &known, &where)
        != NULL)
    {
        return -1;
    }

    loads_encode(table, before, loads, n);

    return 0;
}


void
llmgw_members_table_set_load(llmgw_members_table_t *table, size_t k,
    const llmgw_member_load_t *load)
{
    table->loads[k] = *load;
    llmgw_members_slot_encode((void *) (table->slots + k * table->slot_bytes),
                              table->slot_bytes, table->records[k].id, load);
}


void
llmgw_members_table_seal(llmgw_members_table_t *table,
    const llmgw_members_head_t *head, size_t n, uint32_t flags)
{
    size_t  k;
    char   *image;

    image = (char *) (table->header + 1);

    for (k = 0; records_are_apart(table) && k < n; k++) {
        memcpy(image + k * table->record_bytes, &table->records[k],
               table->record_bytes);
    }

    memset(table->header, 0, sizeof(*table->header));
    table->header->sequence = head->sequence;
    table->header->generation = head->generation;
    table->header->count = (uint32_t) n;
    table->header->flags = flags;
    llmgw_members_buffer_seal(table->header, image, table->record_bytes);
}


static int
record_routes_alike(const llmgw_member_t *a, const llmgw_member_t *b)
{
    return a->role == b->role
           && a->liveness == b->liveness
           && a->service == b->service
           && a->replica_start_ms == b->replica_start_ms
           && a->draining == b->draining
           && a->weight == b->weight
           && a->max_capacity == b->max_capacity
           && a->models == b->models
           && a->models_cut == b->models_cut
           && strcmp(a->id, b->id) == 0
           && strcmp(a->grpc, b->grpc) == 0
           && llmgw_member_shards_are_alike(a, b)
           && llmgw_member_groups_are_alike(a, b);
}


int
llmgw_members_table_routes_alike(const llmgw_members_table_t *a,
    const llmgw_members_table_t *b, size_t n, uint32_t flags)
{
    size_t  k;

    if (a->header->count != n || a->header->flags != flags) {
        return 0;
    }

    for (k = 0; k < n; k++) {
        if (!record_routes_alike(&a->records[k], &b->records[k])) {
            return 0;
        }
    }

    return 1;
}


static int
compare_id(const void *id, const void *record)
{
    return strcmp(id, ((const llmgw_member_t *) record)->id);
}


ssize_t
llmgw_members_table_find(const llmgw_members_table_t *table, const char *id)
{
    const llmgw_member_t  *found;

    found = bsearch(id, table->records, table->header->count,
                    sizeof(llmgw_member_t), compare_id);

    return found ? found - table->records : -1;
}
