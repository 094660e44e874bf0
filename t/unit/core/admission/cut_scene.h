
/*
 * A process that is killed in the middle of a change, at each store in turn.
 *
 * A child makes the change (t/unit/core/cut.h).  After each of its stores the
 * test does what the other processes would do if the child died there: mend
 * the memory if it says so, drop the child's row, and serve.
 *
 * Row 1 is the child's.  Row 2 is that of a dead process, where a test says
 * so.
 */

#ifndef CUT_SCENE_H
#define CUT_SCENE_H

#include "t/unit/core/admission/admission_scene.h"
#include "t/unit/core/cut.h"


#define DYING  1
#define DEAD   2

typedef struct world_s  world_t;
typedef void (*change_t)(world_t *world);

struct world_s {
    scene_t        scene;
    change_t       change;
    llmgw_lease_t  lease;               /* the child's own */
    llmgw_claim_t  claim;               /* the child's own */
    uint32_t       slot;                /* the slot to give up */
    uint64_t       tickets[WAITERS];    /* of live rows, in order */
    size_t         ntickets;
    uint64_t       victim;              /* a ticket that may be shed, or 0 */
    uint64_t       seen[LLMGW_FLOW_BANDS / 64];
};


/* Whether entry a is to be served before entry b. */

static inline int
is_before(const llmgw_queue_t *queue, const llmgw_queue_entry_t *a,
    const llmgw_queue_entry_t *b)
{
    if (a->is_urgent != b->is_urgent) {
        return a->is_urgent;
    }

    if (queue->has_flow && !a->is_urgent && a->priority != b->priority) {
        return a->priority > b->priority;
    }

    return a->ticket < b->ticket;
}


/* The tickets of entries of living rows, in the expected order of service. */

static inline size_t
living(const world_t *world, uint64_t *tickets)
{
    size_t                      n, k;
    uint32_t                    i;
    const llmgw_queue_t        *queue;
    const llmgw_queue_entry_t  *entry, *sorted[WAITERS];

    n = 0;
    queue = &world->scene.shared->queue;

    for (i = 0; i < queue->capacity; i++) {
        entry = &queue->entries[i];

        if (!entry->is_used || entry->is_shed || entry->row == DYING
            || entry->row == DEAD || entry->ticket == world->victim)
        {
            continue;
        }

        for (k = n++; k > 0 && is_before(queue, entry, sorted[k - 1]); k--) {
            sorted[k] = sorted[k - 1];
        }

        sorted[k] = entry;
    }

    for (k = 0; k < n; k++) {
        tickets[k] = sorted[k]->ticket;
    }

    return n;
}


/*
 * Returns the length of a list, whose links must be whole, and adds up what
 * the queue counts of its entries.
 */

static inline uint32_t
list_is_whole(const llmgw_queue_t *queue, const llmgw_queue_list_t *list,
    uint32_t *counted, uint32_t *skipped)
{
    uint32_t                    i, prev, n;
    const llmgw_queue_entry_t  *entry;

    n = 0;
    prev = LLMGW_QUEUE_NONE;

    for (i = list->first; i != LLMGW_QUEUE_NONE; i = entry->next) {
        assert_in_range(i, 0, queue->capacity - 1);
        entry = &queue->entries[i];

        assert_true(entry->is_used);
        assert_int_equal(entry->prev, prev);
        assert_int_equal(entry->is_shed, list == &queue->shed);
        assert_int_equal(entry->is_aside, list == &queue->aside);
        assert_true(entry->is_skipped || entry->rests_ms == 0);

        if (prev != LLMGW_QUEUE_NONE && !queue->has_flow
            && queue->entries[prev].is_urgent == entry->is_urgent)
        {
            assert_true(queue->entries[prev].ticket < entry->ticket);
        }

        prev = i;
        *counted += entry->is_counted;
        *skipped += entry->is_skipped;
        assert_in_range(++n, 0, queue->capacity);
    }

    assert_int_equal(list->last, prev);

    return n;
}


/* Counts the requests in the flow, by taking all of them from a copy. */

static inline uint32_t
flow_length(const llmgw_queue_t *queue)
{
    double         ceiling;
    size_t         bytes;
    uint32_t       i, n;
    llmgw_flow_t  *copy;

    bytes = llmgw_flow_bytes(queue->capacity);
    copy = malloc(bytes);
    assert_non_null(copy);
    memcpy(copy, queue->flow, bytes);

    for (n = 0; (i = llmgw_flow_next(copy, &ceiling)) != 0; n++) {
        (void) llmgw_flow_take(copy, i);
    }

    free(copy);

    return n;
}


/* Each entry that could be the head is in the flow, and nothing else. */

static inline void
assert_flow_is_whole(const llmgw_queue_t *queue)
{
    uint32_t                    i, n;
    const llmgw_queue_entry_t  *entry;

    n = 0;

    for (i = queue->waits.first; i != LLMGW_QUEUE_NONE; i = entry->next) {
        entry = &queue->entries[i];

        if (!entry->is_urgent) {
            assert_int_not_equal(entry->flow, 0);
            assert_int_equal(llmgw_flow_request(queue->flow, entry->flow), i);
            n++;
        }
    }

    assert_int_equal(flow_length(queue), n);
}


static inline void
assert_queue_is_whole(const llmgw_queue_t *queue)
{
    uint32_t  i, used, counted, skipped, nfree;

    counted = skipped = nfree = 0;

    used = list_is_whole(queue, &queue->waits, &counted, &skipped)
           + list_is_whole(queue, &queue->aside, &counted, &skipped);

    assert_int_equal(queue->length, used);
    assert_int_equal(queue->counted, counted);
    assert_int_equal(queue->skipped + queue->resting, skipped);

    used += list_is_whole(queue, &queue->shed, &counted, &skipped);

    for (i = queue->free; i != LLMGW_QUEUE_NONE; i = queue->entries[i].next) {
        assert_in_range(i, 0, queue->capacity - 1);
        assert_false(queue->entries[i].is_used);
        assert_in_range(++nfree, 0, queue->capacity - used);
    }

    assert_int_equal(nfree, queue->capacity - used);

    if (queue->has_flow) {
        assert_flow_is_whole(queue);
    }
}


static inline void
assert_totals_are_shares(const llmgw_admission_t *shared)
{
    uint32_t  i, row, sum;

    for (i = 0; i < shared->nslots; i++) {
        sum = 0;

        for (row = 0; row < shared->nrows; row++) {
            sum += *llmgw_share(shared, i, row);
        }

        assert_int_equal(llmgw_slot(shared, i)->counts.in_flight, sum);
        assert_int_equal(*llmgw_share(shared, i, DYING), 0);
        assert_int_equal(*llmgw_share(shared, i, DEAD), 0);
    }
}


/* Used slots are found where they were; the others can all be taken. */

static inline void
assert_slots_are_whole(const scene_t *scene)
{
    uint32_t             i, nfree, taken;
    char                 id[LLMGW_SLOT_ID_BYTES];
    llmgw_admission_t   *shared;
    const llmgw_slot_t  *slot;

    shared = scene->shared;
    nfree = 0;

    for (i = 0; i < shared->nslots; i++) {
        slot = llmgw_slot(shared, i);

        if (slot->id_len == 0) {
            nfree++;

        } else {
            assert_int_equal(llmgw_slots_attach(shared, slot->id,
                                                slot->id_len, scene->now_ms),
                             i);
        }
    }

    for (taken = 0; taken < nfree; taken++) {
        snprintf(id, sizeof(id), "newcomer %u", taken);
        assert_int_not_equal(llmgw_slots_attach(shared, id, strlen(id),
                                                scene->now_ms),
                             LLMGW_NO_SLOT);
    }

    assert_int_equal(llmgw_slots_attach(shared, "none", 4, scene->now_ms),
                     LLMGW_NO_SLOT);
}


/* The leases of live rows. */

static inline void
end_all_leases(scene_t *scene)
{
    uint32_t       i, row;
    llmgw_lease_t  lease;

    for (i = 0; i < scene->shared->nslots; i++) {
        for (row = 0; row < ROWS; row++) {
            while (*llmgw_share(scene->shared, i, row) != 0) {
                lease.place.slot = i;
                lease.place.generation
                    = llmgw_slot(scene->shared, i)->generation;
                lease.is_held = 1;
                lease.is_judged = 1;
                scene_end(scene, row, &lease, LLMGW_VERDICT_NEUTRAL);
            }
        }
    }

    assert_int_equal(scene_in_flight(scene), 0);
}


static inline void
serve_head(scene_t *scene, uint64_t ticket)
{
    uint32_t                  row;
    llmgw_claim_t             claim = scene_claim(ticket);
    llmgw_lease_t             lease;
    llmgw_queue_t            *queue;
    llmgw_admission_self_t    self;
    llmgw_admission_answer_t  answer;

    queue = &scene->shared->queue;

    for (row = 0; row < ROWS; row++) {
        self = scene_self(scene, row);
        llmgw_admission_look(&self, scene->now_ms);
    }

    claim.entry = llmgw_queue_head(queue, scene->now_ms);
    claim.ticket = ticket;
    assert_int_not_equal(claim.entry, LLMGW_QUEUE_NONE);
    assert_int_equal(queue->entries[claim.entry].ticket, ticket);

    row = queue->entries[claim.entry].row;
    assert_int_equal(scene_ask(scene, row, &claim, &lease, &answer),
                     LLMGW_ADMISSION_LEASED);
    scene_end(scene, row, &lease, LLMGW_VERDICT_SUCCESS);
}


/* Removes the victim if it still waits: its worker would take note of that. */

static inline void
drop_victim(world_t *world)
{
    uint32_t        i;
    llmgw_queue_t  *queue;

    queue = &world->scene.shared->queue;

    for (i = 0; world->victim != 0 && i < queue->capacity; i++) {
        if (queue->entries[i].ticket == world->victim) {
            llmgw_queue_remove(queue, i);
        }
    }
}


/* All live waiters are served in their order; once all
   cooldowns are over, the pool then takes exactly its capacity. */

static inline void
assert_serves_all(world_t *world)
{
    size_t                    i;
    scene_t                  *scene;
    llmgw_claim_t             claim;
    llmgw_lease_t             lease;
    llmgw_admission_answer_t  answer;

    scene = &world->scene;
    scene->now_ms += 3600 * 1000;
    end_all_leases(scene);
    drop_victim(world);

    for (i = 0; i < world->ntickets; i++) {
        serve_head(scene, world->tickets[i]);
    }

    assert_int_equal(scene->shared->queue.length, 0);

    for (i = 0; i < 10 * PEERS; i++) {          /* probes, where it is due */
        scene_lease(scene, 0, i, &lease);
        scene_end(scene, 0, &lease, LLMGW_VERDICT_SUCCESS);
    }

    for (i = 0; i < PEERS * CAPACITY; i++) {
        scene_lease(scene, 0, i, &lease);
    }

    claim = scene_claim(i);
    assert_int_equal(scene_ask(scene, 0, &claim, &lease, &answer),
                     LLMGW_ADMISSION_WAITS);
    assert_int_equal(scene_in_flight(scene), PEERS * CAPACITY);
}


/* Does what the others do after the child's death, and checks the result. */

static inline void
assert_others_go_on(world_t world)
{
    size_t              n, k;
    uint64_t            tickets[WAITERS];
    llmgw_admission_t  *shared;

    shared = world.scene.shared;

    if (shared->dirty) {
        llmgw_admission_mend(shared);
    }

    assert_queue_is_whole(&shared->queue);

    llmgw_admission_drop_row(shared, DYING, world.scene.now_ms);
    llmgw_admission_drop_row(shared, DEAD, world.scene.now_ms);

    assert_queue_is_whole(&shared->queue);
    assert_totals_are_shares(shared);

    for (k = 0; k < LLMGW_FLOW_BANDS / 64; k++) {
        assert_true((shared->queue.seen[k] & world.seen[k])
                    == world.seen[k]);
    }

    n = living(&world, tickets);
    assert_int_equal(n, world.ntickets);
    assert_memory_equal(tickets, world.tickets, n * sizeof(uint64_t));

    assert_slots_are_whole(&world.scene);
    assert_serves_all(&world);
}


static inline void
make_change(void *data)
{
    world_t  *world = data;

    world->change(world);
}


static inline void
look(void *data)
{
    assert_others_go_on(*(world_t *) data);
}


/* least: the change makes so many stores or more; fewer fail the test */

static inline void
cut(world_t *world, change_t change, uint32_t least)
{
    world->change = change;
    world->ntickets = living(world, world->tickets);
    memcpy(world->seen, world->scene.shared->queue.seen,
           sizeof(world->seen));

    cut_at_each_store(world->scene.shared, world->scene.bytes, make_change,
                      look, world, least);

    assert_false(world->scene.shared->dirty);
}

#endif /* CUT_SCENE_H */
