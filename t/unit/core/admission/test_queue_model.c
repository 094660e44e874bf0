
/*
 * Random requests, ends, departures, deaths and mendings, against a model that
 * knows no links, no flows and no grants: it examines all waiting requests, and
 * determines which is next, shed or refused.
 */

#include "t/unit/core/admission/flow_cases.h"


#define CHANGES  20000
#define TENANTS  4
#define CLASSES  5                  /* priorities -2 to 2 */

typedef struct {
    int            waits;
    uint32_t       row;
    llmgw_claim_t  claim;
} waiter_t;

typedef struct {
    scene_t                scene;
    llmgw_flow_fairness_t  fairness;
    uint64_t               seed;
    uint64_t               number;
    waiter_t               waiters[WAITERS];        /* by their entry */
    llmgw_lease_t          leases[PLACES];
    int                    turns[CLASSES];          /* tenant + 1; 0: none */
} model_t;


static uint32_t
draw(model_t *m, uint32_t n)
{
    m->seed = m->seed * 6364136223846793005ull + 1442695040888963407ull;

    return (uint32_t) (m->seed >> 33) % n;
}


static int
is_better(const llmgw_claim_t *a, const llmgw_claim_t *b)
{
    if (a->is_urgent != b->is_urgent) {
        return a->is_urgent;
    }

    if (!a->is_urgent && a->priority != b->priority) {
        return a->priority > b->priority;
    }

    return a->ticket < b->ticket;
}


/* A tenant's first claim in a band, of the waiting claims and *one. */
static const llmgw_claim_t *
first_of(const model_t *m, const llmgw_claim_t *one, int32_t priority,
    uint64_t tenant)
{
    size_t                i;
    const llmgw_claim_t  *claim, *first;

    first = NULL;

    for (i = 0; i <= WAITERS; i++) {
        claim = i == WAITERS ? one
                : m->waiters[i].waits ? &m->waiters[i].claim : NULL;

        if (claim != NULL && !claim->is_urgent && claim->priority == priority
            && claim->tenant == tenant
            && (first == NULL || claim->ticket < first->ticket))
        {
            first = claim;
        }
    }

    return first;
}


/*
 * The first claim of the tenant whose turn it is: the next number after the
 * last tenant's, or the lowest.
 */
static const llmgw_claim_t *
turn_of(const model_t *m, const llmgw_claim_t *one, int32_t priority)
{
    int       last;
    uint64_t  t;

    last = m->turns[priority + 2] - 1;
    t = (uint64_t) (last + 1);

    for ( /* void */ ; t < TENANTS; t++) {
        if (first_of(m, one, priority, t) != NULL) {
            return first_of(m, one, priority, t);
        }
    }

    for (t = 0; first_of(m, one, priority, t) == NULL; t++) { /* void */ }

    return first_of(m, one, priority, t);
}


/* The next request, among the waiting ones and *one; NULL: none. */
static const llmgw_claim_t *
next_of(const model_t *m, const llmgw_claim_t *one)
{
    size_t                i;
    const llmgw_claim_t  *best;

    best = one;

    for (i = 0; i < WAITERS; i++) {
        if (m->waiters[i].waits
            && (best == NULL || is_better(&m->waiters[i].claim, best)))
        {
            best = &m->waiters[i].claim;
        }
    }

    return best == NULL || best->is_urgent
           || m->fairness == LLMGW_FLOW_GLOBAL_STRICT
           ? best : turn_of(m, one, best->priority);
}


static size_t
count_of(const model_t *m, const llmgw_claim_t *one, uint64_t tenant)
{
    size_t    i, n;

    n = one->tenant == tenant;

    for (i = 0; i < WAITERS; i++) {
        n += m->waiters[i].waits && !m->waiters[i].claim.is_urgent
             && m->waiters[i].claim.priority == one->priority
             && m->waiters[i].claim.tenant == tenant;
    }

    return n;
}


/*
 * The newest claim that counts in the queue's size, of a band or of a tenant
 * in it.
 */
static const llmgw_claim_t *
newest_of(const model_t *m, int32_t priority, int64_t tenant)
{
    size_t                i;
    const llmgw_claim_t  *claim, *newest;

    newest = NULL;

    for (i = 0; i < WAITERS; i++) {
        claim = &m->waiters[i].claim;

        if (m->waiters[i].waits && !claim->is_urgent && !claim->was_granted
            && claim->priority == priority
            && (tenant == -1 || claim->tenant == (uint64_t) tenant)
            && (newest == NULL || claim->ticket > newest->ticket))
        {
            newest = claim;
        }
    }

    return newest;
}


/* The request that is shed so that *one may stay; NULL: none. */
static const llmgw_claim_t *
victim_for(const model_t *m, const llmgw_claim_t *one)
{
    int32_t   priority;
    uint64_t  t, most;

    for (priority = -2; priority < 0 && priority < one->priority; priority++) {
        if (newest_of(m, priority, -1) != NULL) {
            return newest_of(m, priority, -1);
        }
    }

    if (m->fairness == LLMGW_FLOW_GLOBAL_STRICT) {
        return NULL;
    }

    most = 0;

    for (t = 1; t < TENANTS; t++) {
        if (count_of(m, one, t) > count_of(m, one, most)) {
            most = t;
        }
    }

    return count_of(m, one, most) > count_of(m, one, one->tenant)
           ? newest_of(m, one->priority, (int64_t) most) : NULL;
}


static size_t
counted(const model_t *m)
{
    size_t  i, n;

    n = 0;

    for (i = 0; i < WAITERS; i++) {
        n += m->waiters[i].waits && !m->waiters[i].claim.is_urgent
             && !m->waiters[i].claim.was_granted;
    }

    return n;
}


static void
keep_lease(model_t *m, const llmgw_claim_t *claim, llmgw_lease_t *lease,
    uint32_t row)
{
    size_t  i;

    for (i = 0; m->leases[i].is_held; i++) { /* void */ }

    m->leases[i] = *lease;
    (*llmgw_share(m->scene.shared, lease->place.slot, row))--;
    (*llmgw_share(m->scene.shared, lease->place.slot, 0))++;

    if (!claim->is_urgent) {
        m->turns[claim->priority + 2] = (int) claim->tenant + 1;
    }
}


static void
victim_takes_note(model_t *m, const llmgw_claim_t *expected)
{
    uint32_t                  entry;
    waiter_t                 *waiter;
    llmgw_lease_t             lease;
    llmgw_admission_answer_t  answer;

    entry = m->scene.shared->queue.shed.first;
    waiter = &m->waiters[entry];
    assert_ptr_equal(&waiter->claim, expected);

    assert_int_equal(scene_ask(&m->scene, waiter->row, &waiter->claim, &lease,
                               &answer), LLMGW_ADMISSION_SHED);
    waiter->waits = 0;
}


static int
has_room(const model_t *m)
{
    return scene_in_flight(&m->scene) < PLACES;
}


static void
one_comes(model_t *m)
{
    int                       is_next;
    uint32_t                  row;
    llmgw_claim_t             claim;
    llmgw_lease_t             lease;
    const llmgw_claim_t      *victim;
    llmgw_admission_answer_t  answer;

    row = 1 + draw(m, 3);
    claim = flow_claim(++m->number, (int32_t) draw(m, CLASSES) - 2,
                       draw(m, TENANTS));
    claim.is_urgent = draw(m, 20) == 0;
    claim.was_granted = draw(m, 20) == 0;
    claim.ticket = llmgw_queue_ticket(&m->scene.shared->queue);

    is_next = next_of(m, &claim) == &claim;
    victim = counted(m) < QUEUE || claim.is_urgent || claim.was_granted
             || m->scene.shared->queue.length == WAITERS
             ? NULL : victim_for(m, &claim);

    scene_ask(&m->scene, row, &claim, &lease, &answer);

    assert_true(answer.rc == LLMGW_ADMISSION_LEASED || !is_next
                || !has_room(m));

    switch (answer.rc) {

    case LLMGW_ADMISSION_LEASED:
        assert_true(is_next);
        keep_lease(m, &claim, &lease, row);
        return;

    case LLMGW_ADMISSION_WAITS:
        assert_false(m->waiters[claim.entry].waits);
        assert_int_equal(answer.shed.row != LLMGW_NO_ROW, victim != NULL);

        if (victim != NULL) {
            victim_takes_note(m, victim);
        }

        m->waiters[claim.entry] = (waiter_t) { 1, row, claim };
        assert_true(counted(m) <= QUEUE);
        return;

    default:
        assert_int_equal(answer.rc, LLMGW_ADMISSION_FULL);
        assert_null(victim);
        return;
    }
}


/* Gives free places to the next requests until there are none of either. */
static void
serve(model_t *m)
{
    uint32_t                  entry;
    llmgw_lease_t             lease;
    llmgw_claim_t             claim;
    const llmgw_claim_t      *next;
    llmgw_admission_answer_t  answer;

    while (has_room(m) && (next = next_of(m, NULL)) != NULL) {
        entry = llmgw_queue_head(&m->scene.shared->queue, m->scene.now_ms);
        assert_int_not_equal(entry, LLMGW_QUEUE_NONE);
        assert_ptr_equal(next, &m->waiters[entry].claim);

        claim = *next;
        assert_int_equal(scene_ask(&m->scene, m->waiters[entry].row, &claim,
                                   &lease, &answer), LLMGW_ADMISSION_LEASED);
        m->waiters[entry].waits = 0;
        keep_lease(m, next, &lease, m->waiters[entry].row);
    }
}


static void
one_ends(model_t *m)
{
    size_t  i;

    i = draw(m, PLACES);

    if (m->leases[i].is_held) {
        scene_end(&m->scene, 0, &m->leases[i], LLMGW_VERDICT_SUCCESS);
        m->leases[i].is_held = 0;
        serve(m);
    }
}


static void
one_leaves(model_t *m)
{
    waiter_t                *waiter;
    llmgw_wake_t             wake;
    llmgw_admission_self_t   self;

    waiter = &m->waiters[draw(m, WAITERS)];

    if (waiter->waits) {
        self = scene_self(&m->scene, waiter->row);
        llmgw_admission_leave(&self, &waiter->claim, m->scene.now_ms, &wake);
        waiter->waits = 0;
    }
}


static void
row_dies(model_t *m)
{
    size_t    i;
    uint32_t  row;

    row = 1 + draw(m, 3);
    llmgw_admission_drop_row(m->scene.shared, row, m->scene.now_ms);

    for (i = 0; i < WAITERS; i++) {
        m->waiters[i].waits &= m->waiters[i].row != row;
    }
}


static void
hold_against_model(llmgw_flow_fairness_t fairness)
{
    uint32_t        i;
    static model_t  m;

    memset(&m, 0, sizeof(m));
    scene_init(&m.scene);
    m.fairness = fairness;
    m.seed = 7;
    flow_on(&m.scene, LLMGW_FLOW_PRIORITY, fairness, 1, 1);

    for (i = 0; i < CHANGES; i++) {
        switch (draw(&m, 32)) {

        case 0:
            row_dies(&m);
            break;

        case 1:
            llmgw_admission_mend(m.scene.shared);
            memset(m.turns, 0, sizeof(m.turns));
            break;

        case 2: case 3:
            one_leaves(&m);
            break;

        case 4: case 5: case 6: case 7: case 8: case 9: case 10:
            one_ends(&m);
            break;

        default:
            one_comes(&m);
        }
    }

    scene_done(&m.scene);
}


static void
strict_order_is_the_models(void **state)
{
    hold_against_model(LLMGW_FLOW_GLOBAL_STRICT);
}


static void
round_robin_is_the_models(void **state)
{
    hold_against_model(LLMGW_FLOW_ROUND_ROBIN);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(strict_order_is_the_models),
        cmocka_unit_test(round_robin_is_the_models)
    };

    return cmocka_run_group_tests_name("queue_model", tests, NULL, NULL);
}
