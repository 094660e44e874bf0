
/* Slots: in which one a replica counts.  shared.h has the rules. */

#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "core/admission/shared.h"


/* Every process stamps the slots of its replicas once a second. */
#define UNUSED_MS  30000


static void slots_make_free(llmgw_admission_t *shared, uint32_t i);


static uint32_t *
slots_bucket(const llmgw_admission_t *shared, const char *id, size_t len)
{
    return &shared->buckets[XXH3_64bits(id, len) & (shared->nbuckets - 1)];
}


static size_t
slots_round_up(size_t bytes)
{
    return (bytes + 63) & ~(size_t) 63;
}


static uint32_t
slots_nbuckets(uint32_t nslots)
{
    uint32_t  n;

    for (n = 1; n < nslots; n *= 2) { /* void */ }

    return n;
}


static size_t
slots_flow_bytes(const llmgw_admission_size_t *size)
{
    return size->queue_capacity == 0 || size->without_flow
           ? 0 : slots_round_up(llmgw_flow_bytes(size->queue_capacity));
}


size_t
llmgw_admission_bytes(const llmgw_admission_size_t *size)
{
    return slots_round_up(sizeof(llmgw_admission_t))
           + slots_round_up(size->queue_capacity
                            * sizeof(llmgw_queue_entry_t))
           + slots_flow_bytes(size)
           + slots_round_up((size_t) size->nslots * size->slot_bytes)
           + slots_round_up((size_t) size->nslots * size->nrows
                            * sizeof(uint32_t))
           + slots_round_up(slots_nbuckets(size->nslots) * sizeof(uint32_t));
}


llmgw_admission_t *
llmgw_admission_init(void *memory, const llmgw_admission_size_t *size)
{
    char                 *p;
    size_t                bytes;
    llmgw_admission_t    *shared;
    llmgw_queue_entry_t  *entries;

    p = memory;
    shared = memory;
    p += slots_round_up(sizeof(llmgw_admission_t));

    shared->nrows = size->nrows;
    shared->nslots = size->nslots;
    shared->slot_bytes = size->slot_bytes;
    shared->nbuckets = slots_nbuckets(size->nslots);

    entries = (llmgw_queue_entry_t *) p;
    p += slots_round_up(size->queue_capacity * sizeof(llmgw_queue_entry_t));

    bytes = slots_flow_bytes(size);
    llmgw_queue_init(&shared->queue, entries, bytes == 0 ? NULL : p,
                     size->queue_capacity);
    p += bytes;

    shared->slots = p;
    p += slots_round_up((size_t) size->nslots * size->slot_bytes);

    shared->shares = (uint32_t *) p;
    p += slots_round_up((size_t) size->nslots * size->nrows
                        * sizeof(uint32_t));

    shared->buckets = (uint32_t *) p;

    llmgw_admission_mend(shared);

    return shared;
}


int
llmgw_admission_order(llmgw_admission_t *shared, const llmgw_flow_conf_t *conf)
{
    int  has_changed;

    llmgw_admission_begin(shared);
    has_changed = llmgw_queue_order(&shared->queue, conf);
    llmgw_admission_commit(shared);

    return has_changed;
}


uint32_t
llmgw_slots_attach(llmgw_admission_t *shared, const char *id, size_t len,
    uint64_t now_ms)
{
    uint32_t       i, *bucket;
    llmgw_slot_t  *slot;

    bucket = slots_bucket(shared, id, len);

    for (i = *bucket; i != LLMGW_NO_SLOT; i = slot->next) {
        slot = llmgw_slot(shared, i);

        if (slot->id_len == len && memcmp(slot->id, id, len) == 0) {
            slot->stamp_ms = now_ms;
            return i;
        }
    }

    i = shared->free_slot;

    if (i == LLMGW_NO_SLOT) {
        return LLMGW_NO_SLOT;
    }

    llmgw_admission_begin(shared);

    slot = llmgw_slot(shared, i);
    shared->free_slot = slot->next;

    memset(&slot->full, 0, sizeof(slot->full));
    memset(&slot->breaker, 0, sizeof(slot->breaker));
    memset(&slot->high, 0, sizeof(slot->high));
    slot->process_ms = 0;
    slot->stamp_ms = now_ms;
    memcpy(slot->id, id, len);

    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    slot->id_len = (uint32_t) len;

    slot->next = *bucket;
    *bucket = i;

    llmgw_admission_commit(shared);

    return i;
}


/* Clocks of processes may differ: a stamp may be in the future. */

uint32_t
llmgw_slots_unused(const llmgw_admission_t *shared, uint32_t from,
    uint64_t now_ms)
{
    uint32_t       i;
    llmgw_slot_t  *slot;

    for (i = from; i < shared->nslots; i++) {
        slot = llmgw_slot(shared, i);

        if (slot->id_len != 0 && slot->counts.in_flight == 0
            && (int64_t) (now_ms - slot->stamp_ms) > UNUSED_MS)
        {
            return i;
        }
    }

    return LLMGW_NO_SLOT;
}


void
llmgw_slots_free(llmgw_admission_t *shared, uint32_t i)
{
    uint32_t      *link;
    llmgw_slot_t  *slot;

    slot = llmgw_slot(shared, i);
    link = slots_bucket(shared, slot->id, slot->id_len);

    while (*link != i) {
        link = &llmgw_slot(shared, *link)->next;
    }

    llmgw_admission_begin(shared);

    *link = slot->next;
    slot->generation++;

    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    slot->id_len = 0;

    slots_make_free(shared, i);

    llmgw_admission_commit(shared);
}


static void
slots_make_free(llmgw_admission_t *shared, uint32_t i)
{
    llmgw_slot(shared, i)->next = shared->free_slot;
    shared->free_slot = i;
}


void
llmgw_slots_renew(llmgw_admission_t *shared, llmgw_place_t place,
    uint64_t process_ms)
{
    llmgw_slot_t  *slot;

    slot = llmgw_slot(shared, place.slot);

    if (slot->generation != place.generation
        || slot->process_ms == process_ms)
    {
        return;
    }

    llmgw_admission_begin(shared);

    slot->process_ms = process_ms;
    memset(&slot->full, 0, sizeof(slot->full));
    memset(&slot->breaker, 0, sizeof(slot->breaker));

    llmgw_admission_commit(shared);
}


/* Rebuilds a slot's chain and total from its id and its shares. */

static void
slots_mend(llmgw_admission_t *shared, uint32_t i)
{
    uint32_t       row, total, *bucket;
    llmgw_slot_t  *slot;

    slot = llmgw_slot(shared, i);
    total = 0;

    for (row = 0; row < shared->nrows; row++) {
        total += *llmgw_share(shared, i, row);
    }

    slot->counts.in_flight = total;

    if (slot->id_len == 0) {
        slots_make_free(shared, i);
        return;
    }

    bucket = slots_bucket(shared, slot->id, slot->id_len);
    slot->next = *bucket;
    *bucket = i;
}


void
llmgw_admission_mend(llmgw_admission_t *shared)
{
    uint32_t  i;

    llmgw_admission_begin(shared);

    shared->free_slot = LLMGW_NO_SLOT;

    for (i = 0; i < shared->nbuckets; i++) {
        shared->buckets[i] = LLMGW_NO_SLOT;
    }

    for (i = shared->nslots; i-- > 0; /* void */ ) {
        slots_mend(shared, i);
    }

    llmgw_queue_mend(&shared->queue);

    llmgw_admission_commit(shared);
}


void
llmgw_admission_drop_row(llmgw_admission_t *shared, uint32_t row,
    uint64_t now_ms)
{
    uint32_t       i, *share;
    llmgw_slot_t  *slot;

    llmgw_admission_begin(shared);

    for (i = 0; i < shared->nslots; i++) {
        share = llmgw_share(shared, i, row);

        if (*share != 0) {
            slot = llmgw_slot(shared, i);
            llmgw_high_water_note(&slot->high, slot->counts.in_flight,
                                  now_ms);

            slot->counts.in_flight -= *share;
            *share = 0;
        }
    }

    (void) llmgw_queue_drop_row(&shared->queue, row);

    llmgw_admission_commit(shared);
}


const char *
llmgw_waits_name(llmgw_waits_t waits_for)
{
    static const char *const  names[] = {
        [LLMGW_WAITS_ROOM] = "room",
        [LLMGW_WAITS_CIRCUIT] = "circuit",
        [LLMGW_WAITS_STANDBY] = "standby",
        [LLMGW_WAITS_REPLICA] = "replica"
    };

    return names[waits_for];
}
