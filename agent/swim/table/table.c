
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "common/data/grow.h"
#include "swim/table/table.h"


/* An array that grows doubles its first size, which must be a power of two. */
_Static_assert((GROW_FIRST & (GROW_FIRST - 1)) == 0, "slots");


void
table_init(table_t *table)
{
    memset(table, 0, sizeof(table_t));
}


void
table_done(table_t *table)
{
    size_t  i;

    for (i = 0; i < table->n; i++) {
        member_done(table->members[i]);
        free(table->members[i]);
    }

    free(table->members);
    free(table->slots);
    table_init(table);
}


/* The slot that holds the id, or the free one where it would be put. */
static size_t
table_slot(const table_t *table, const char *id)
{
    size_t    slot;
    uint32_t  i;

    slot = XXH3_64bits(id, strlen(id)) & (table->nslots - 1);

    for ( ;; ) {
        i = table->slots[slot];

        if (i == 0 || strcmp(table->members[i - 1]->facts.id, id) == 0) {
            return slot;
        }

        slot = (slot + 1) & (table->nslots - 1);
    }
}


static void
table_fill_slots(table_t *table)
{
    size_t  i;

    memset(table->slots, 0, table->nslots * sizeof(uint32_t));

    for (i = 0; i < table->n; i++) {
        table->slots[table_slot(table, table->members[i]->facts.id)] = i + 1;
    }
}


/* Twice as many slots as there is room for members. */
static int
table_grow(table_t *table)
{
    size_t     nslots;
    uint32_t  *slots;

    if (grow(&table->members, &table->capacity, table->n + 1,
             sizeof(member_t *)) != 0)
    {
        return -1;
    }

    nslots = 2 * table->capacity;

    if (table->nslots == nslots) {
        return 0;
    }

    slots = realloc(table->slots, nslots * sizeof(uint32_t));
    if (slots == NULL) {
        return -1;
    }

    table->slots = slots;
    table->nslots = nslots;
    table_fill_slots(table);

    return 0;
}


member_t *
table_find(const table_t *table, const char *id)
{
    uint32_t  i;

    if (table->n == 0) {
        return NULL;
    }

    i = table->slots[table_slot(table, id)];

    return i ? table->members[i - 1] : NULL;
}


member_t *
table_add(table_t *table, const member_update_t *update, uint64_t now_us)
{
    member_t  *member;

    if (table->n == TABLE_MAX_MEMBERS || table_grow(table) != 0) {
        return NULL;
    }

    member = malloc(sizeof(member_t));
    if (member == NULL) {
        return NULL;
    }

    member_init(member, update, now_us);

    assert(table_find(table, member->facts.id) == NULL);

    table->members[table->n++] = member;
    table->slots[table_slot(table, member->facts.id)] = table->n;
    table->npresent += member_is_present(member);

    return member;
}


/* Rare (a tombstone expired), so the whole hash is made anew. */
void
table_remove(table_t *table, member_t *member)
{
    size_t  i;

    for (i = 0; table->members[i] != member; i++) {
        assert(i + 1 < table->n);
    }

    table->npresent -= member_is_present(member);
    table->members[i] = table->members[--table->n];
    member_done(member);
    free(member);
    table_fill_slots(table);
}


void
table_count(table_t *table, int was_present, const member_t *member)
{
    table->npresent += member_is_present(member) - was_present;
}


uint64_t
table_digest(const table_t *table, uint64_t now_us, uint64_t forgotten_us)
{
    size_t     i;
    uint64_t   digest;
    member_t  *member;

    digest = 0;

    for (i = 0; i < table->n; i++) {
        member = table->members[i];

        if (member_age_s(member, now_us) * 1000000ULL < forgotten_us) {
            digest ^= member_digest(member);
        }
    }

    return digest;
}
