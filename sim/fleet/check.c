
/*
 * Invariants, checked during a run and at its end, with --check. They are those
 * that BLIS states for itself, as far as this simulator has the parts
 * concerned.
 *
 *   clock          never goes back
 *   conservation   each request is in one place; what the gateway, the
 *                  replicas and the outcomes count is the same
 *   in flight      the gateway's count is the replica's number of requests
 *   work           a replica with a queue has a next event
 *   blocks         used and free ones are all (sim/model's own check)
 *   order          arrival, queue, routing, scheduling, first token, end
 *   ranks          finite, and from 0 to 1
 *   halves         of a split: in their order, at replicas of their pools, and
 *                  what was transferred arrived
 *   rounds         of a session arrive after the end of the one before
 */

#include <math.h>
#include <stdarg.h>
#include <stdio.h>

#include "sim/fleet/fleet_inner.h"


#define CHECK_WALK_STEPS  509           /* steps between full block checks */


static void __attribute__((format(printf, 2, 3)))
check_broken(fleet_t *f, const char *format, ...)
{
    va_list  args;

    if (f->failed) {
        return;
    }

    f->failed = FLEET_BROKEN;
    f->loop.is_over = 1;
    va_start(args, format);
    vsnprintf(f->error, f->error_bytes, format, args);
    va_end(args);
}


/* --- during the run */

/*
 * With pools the clock may go back: a decode half can be queued after its
 * deadline has passed, and BLIS then goes back to that time.
 */
void
check_clock(fleet_t *f, int64_t at_us)
{
    if (at_us < f->loop.clock_us && !fleet_has_pools(f->config)) {
        check_broken(f, "check: the clock went back from %lld to %lld us",
                     (long long) f->loop.clock_us, (long long) at_us);
    }
}


void
check_replica(fleet_t *f, uint32_t replica)
{
    char              what[256];
    int64_t           held;
    model_facts_t     facts;
    model_replica_t  *model = f->memory->nodes[replica].model;

    model_replica_facts(model, &facts);
    held = (int64_t) facts.queue_depth + facts.batch_size + facts.pending;

    if (held != f->seen[replica].in_flight) {
        check_broken(f, "check: at %lld us instance_%u holds %lld requests, "
                     "%d are in flight", (long long) f->loop.clock_us, replica,
                     (long long) held, f->seen[replica].in_flight);
    }

    if (facts.queue_depth > 0 && model_replica_next(model) == MODEL_NEVER) {
        check_broken(f, "check: at %lld us instance_%u has a queue and is "
                     "idle", (long long) f->loop.clock_us, replica);
    }

    if (f->loop.turns % CHECK_WALK_STEPS == 0
        && model_replica_check(model, what, sizeof(what)) != 0)
    {
        check_broken(f, "check: instance_%u: %s", replica, what);
    }
}


void
check_ranks(fleet_t *f, const llmgw_ranker_t *ranker, uint32_t n)
{
    uint32_t  i;

    if (ranker->policy != LLMGW_RANK_WEIGHTED) {
        return;
    }

    for (i = 0; i < n; i++) {

        /* Shares add up to 1 except for rounding. */
        if (!(f->ranks[i] >= 0 && f->ranks[i] <= 1 + 1e-12)) {
            check_broken(f, "check: at %lld us a score is %g",
                         (long long) f->loop.clock_us, f->ranks[i]);
        }
    }
}


void
check_follow(fleet_t *f, const work_request_t *last,
    const work_request_t *next, int64_t now_us)
{
    if (next->arrival_us < now_us) {
        check_broken(f, "check: %s comes before %s has ended", next->id,
                     last->id);
    }
}


/* --- at its end */

static void
check_equal(fleet_t *f, const char *what, uint64_t a, uint64_t b)
{
    if (a != b) {
        check_broken(f, "check: %s: %llu and %llu", what,
                     (unsigned long long) a, (unsigned long long) b);
    }
}


static void
check_gateway(fleet_t *f, const uint64_t *of)
{
    fleet_result_t  *r = f->result;

    check_equal(f, "refused by admission", r->rejected_admission,
                of[FLEET_REJECTED_ADMISSION]);
    check_equal(f, "refused at routing", r->rejected_routing,
                of[FLEET_REJECTED_ROUTING]);
    check_equal(f, "refused by the queue", r->gateway_rejected,
                of[FLEET_GATEWAY_REJECTED]);
    check_equal(f, "displaced", r->gateway_shed, of[FLEET_GATEWAY_SHED]);
    check_equal(f, "expired", r->gateway_expired, of[FLEET_GATEWAY_EXPIRED]);
    check_equal(f, "evicted", r->gateway_evicted, of[FLEET_GATEWAY_EVICTED]);
    check_equal(f, "dropped behind a transfer", r->dropped_at_decode_kv,
                of[FLEET_DROPPED_AT_DECODE_KV]);
}


/*
 * A split request counts at two replicas, so with splits only whole-request
 * figures are compared.
 */
static void
check_replicas(fleet_t *f, const uint64_t *of)
{
    uint32_t                 i;
    uint64_t                 completed, capped, timed_out, unservable, held;
    model_counters_t         c;

    completed = capped = timed_out = unservable = held = 0;

    for (i = 0; i < f->result->nreplicas; i++) {
        model_replica_counters(f->result->replicas[i].model, &c);
        completed += c.completed;
        capped += c.length_capped;
        timed_out += c.timed_out;
        unservable += c.unservable;
        held += f->result->replicas[i].in_flight;
        check_replica(f, i);
    }

    if (f->result->nsplits > 0) {
        return;
    }

    check_equal(f, "completed", completed,
                of[FLEET_COMPLETED] + of[FLEET_LENGTH_CAPPED]);
    check_equal(f, "length-capped", capped, of[FLEET_LENGTH_CAPPED]);
    check_equal(f, "timed out", timed_out, of[FLEET_TIMED_OUT]);
    check_equal(f, "unservable", unservable, of[FLEET_UNSERVABLE]);
    check_equal(f, "held by replicas", held, of[FLEET_IN_INSTANCE]);
}


static void
check_order(fleet_t *f, uint32_t index)
{
    size_t                 i;
    int64_t                last;
    const fleet_outcome_t *o = fleet_outcome(f, index);
    const work_request_t  *w = work_at(f->work, index);
    const int64_t          times[] = {
        o->gw_enqueue_us, o->gw_dispatch_us, o->route_us,
        o->sched_delay_us != FLEET_NEVER ? w->arrival_us + o->sched_delay_us
                                         : FLEET_NEVER,
        o->split == FLEET_NONE && o->ttft_us != FLEET_NEVER
        ? w->arrival_us + o->ttft_us : FLEET_NEVER,
        o->e2e_us != FLEET_NEVER ? w->arrival_us + o->e2e_us : FLEET_NEVER
    };

    for (i = 0, last = w->arrival_us; i < sizeof(times) / sizeof(times[0]);
         i++)
    {
        /* A preempted request was last scheduled after its first token. */
        if (times[i] == FLEET_NEVER || (i == 3 && o->preemptions > 0)) {
            continue;
        }

        if (times[i] < last) {
            check_broken(f, "check: %s: time %zu comes before the one before "
                         "it", w->id, i);
        }

        last = times[i];
    }
}


static void
check_split(fleet_t *f, const fleet_split_row_t *row)
{
    int                    in_order;
    const work_request_t  *w = work_at(f->work, row->request);

    in_order = row->prefill_complete_us == FLEET_NEVER
               || (row->prefill_enqueue_us <= row->prefill_complete_us
                   && (row->transfer_start_us == FLEET_NEVER
                       || row->prefill_complete_us <= row->transfer_start_us)
                   && (row->transfer_complete_us == FLEET_NEVER
                       || row->transfer_start_us < row->transfer_complete_us)
                   && (row->decode_enqueue_us == FLEET_NEVER
                       || row->transfer_complete_us
                          <= row->decode_enqueue_us));

    if (!in_order) {
        check_broken(f, "check: the halves of %s are not in their order",
                     w->id);
    }

    if ((row->prefill_replica != FLEET_NONE
         && !(f->roles[row->prefill_replica] & FLEET_PREFILLS))
        || !(f->roles[row->decode_replica] & FLEET_DECODES))
    {
        check_broken(f, "check: a half of %s is at a replica of another pool",
                     w->id);
    }
}


static void
check_classes(fleet_t *f, uint64_t arrived)
{
    size_t    i;
    uint64_t  sum;

    for (i = 0, sum = 0; i < f->result->nclasses; i++) {
        sum += f->result->classes[i].injected;
    }

    check_equal(f, "arrived", sum, arrived);
}


void
check_end(fleet_t *f)
{
    size_t    i;
    uint64_t  of[FLEET_STATUSES] = { 0 };

    check_equal(f, "requests", f->result->n, f->work->n);

    for (i = 0; i < f->result->n; i++) {
        of[fleet_outcome(f, (uint32_t) i)->status]++;
        check_order(f, (uint32_t) i);
    }

    check_classes(f, f->result->n - of[FLEET_NOT_ARRIVED]);
    check_gateway(f, of);
    check_replicas(f, of);

    for (i = 0; i < f->result->nsplits; i++) {
        check_split(f, &f->result->splits[i]);
    }
}
