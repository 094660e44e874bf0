
#include <stdlib.h>
#include <string.h>

#include "proto/members/table.h"


/* calloc: pages of records that never come are never touched. */
int
llmgw_members_table_init(llmgw_members_table_t *table, uint32_t capacity)
{
    table->header = calloc(1, sizeof(llmgw_members_buffer_t)
                              + capacity * sizeof(llmgw_member_t));
    table->loads = calloc(capacity, sizeof(llmgw_member_load_t));
    table->slots = calloc(capacity, sizeof(llmgw_members_slot_t));
    table->sorted = calloc(capacity, sizeof(uint32_t));

    if (table->header == NULL || table->loads == NULL || table->slots == NULL
        || table->sorted == NULL)
    {
        llmgw_members_table_done(table);
        return -1;
    }

    table->records = (llmgw_member_t *) (table->header + 1);

    return 0;
}


void
llmgw_members_table_done(llmgw_members_table_t *table)
{
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
           + table->header->count * sizeof(llmgw_member_t);
}


size_t
llmgw_members_table_slots_bytes(const llmgw_members_table_t *table)
{
    return table->header->count * sizeof(llmgw_members_slot_t);
}


/* Bytes after the NUL may be from the caller's stack, and must not get out. */
static void
string_end(char *string, size_t bytes)
{
    size_t  len;

    len = strnlen(string, bytes);
    memset(string + len, 0, bytes - len);
}


static void
record_encode(llmgw_member_t *to, const llmgw_member_t *from)
{
    *to = *from;

    string_end(to->id, sizeof(to->id));
    string_end(to->model_version, sizeof(to->model_version));
    string_end(to->address, sizeof(to->address));
    string_end(to->grpc, sizeof(to->grpc));
    string_end(to->drain_owner, sizeof(to->drain_owner));
    string_end(to->group, sizeof(to->group));

    if (to->is_shard) {
        string_end(to->shard.zone, sizeof(to->shard.zone));
        memset(to->shard.reserved, 0, sizeof(to->shard.reserved));

    } else {
        string_end(to->resume_group, sizeof(to->resume_group));
    }

    memset(to->reserved, 0, sizeof(to->reserved));
    memset(to->group_reserved, 0, sizeof(to->group_reserved));
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
        record_encode(&table->records[k], members[table->sorted[k]]);
    }
}


int
llmgw_members_table_build(llmgw_members_table_t *table,
    const llmgw_members_table_t *before, const llmgw_member_t *const *members,
    const llmgw_member_load_t *const *loads, size_t n)
{
    size_t                     k, where;
    llmgw_members_view_t       known = { 0 };
    const llmgw_member_load_t  never = { 0 };

    known.members = before->records;
    known.n = before->header->count;

    records_encode(table, members, n);

    if (llmgw_members_table_reason(table->records, n, &known, &where)
        != NULL)
    {
        return -1;
    }

    for (k = 0; k < n; k++) {
        llmgw_members_table_set_load(table, k,
                                     loads != NULL ? loads[table->sorted[k]]
                                                   : &never);
    }

    return 0;
}


void
llmgw_members_table_set_load(llmgw_members_table_t *table, size_t k,
    const llmgw_member_load_t *load)
{
    table->loads[k] = *load;
    llmgw_members_slot_encode(&table->slots[k], table->records[k].id, load);
}


void
llmgw_members_table_seal(llmgw_members_table_t *table,
    const llmgw_members_head_t *head, size_t n, uint32_t flags)
{
    memset(table->header, 0, sizeof(*table->header));
    table->header->sequence = head->sequence;
    table->header->generation = head->generation;
    table->header->count = (uint32_t) n;
    table->header->flags = flags;
    llmgw_members_buffer_seal(table->header, table->records,
                              sizeof(llmgw_member_t));
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
