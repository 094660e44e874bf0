
/*
 * The members that this agent knows, itself included: found by id, walked by
 * index.
 *
 * The table is an array of pointers (a member never moves, so others may keep a
 * pointer until table_remove()) and beside it a hash of indexes, open
 * addressing, at most half full.  Indexes change when a member is removed: the
 * last takes its place.
 */

#ifndef TABLE_H
#define TABLE_H

#include "swim/table/member.h"


/*
 * More than the 10,000 replicas for which nginx's ring is made.  A stranger
 * that invents ids cannot fill more than this.
 */
#define TABLE_MAX_MEMBERS  16384

typedef struct {
    member_t  **members;
    size_t      n;
    size_t      capacity;
    uint32_t   *slots;              /* index + 1, 0: free */
    size_t      nslots;             /* a power of two */
    size_t      npresent;           /* number of ALIVE and SUSPECT ones */
} table_t;


/* An empty table; allocates nothing. */
void table_init(table_t *table);
void table_done(table_t *table);

member_t *table_find(const table_t *table, const char *id);

/*
 * Adds a member whose id is not known.  NULL: out of memory, or
 * TABLE_MAX_MEMBERS are there.
 */
member_t *table_add(table_t *table, const member_update_t *update,
    uint64_t now_us);

/* Removes a member, and frees it. */
void table_remove(table_t *table, member_t *member);

/* To be called after a change of liveness: updates npresent. */
void table_count(table_t *table, int was_present, const member_t *member);

/* A digest that is the same for equal tables, whatever their order.  Members
   that have been dead for longer than forgotten_us are left out, since each
   agent forgets them in its own time. */
uint64_t table_digest(const table_t *table, uint64_t now_us,
    uint64_t forgotten_us);

#endif /* TABLE_H */
