
/*
 * The decision log: a line for each decision about a claim.
 *
 * A policy that reads the fleet has left all that it read in the pool's choice
 * (choice.h).  The ring leaves nothing, nor do the choices made when no ranked
 * candidate is eligible: the least load among the others, a suspect or a
 * replica that was tried before, or an attempt forced through an open circuit.
 * Their inputs change with the next claim of any worker; so for a request in
 * the sample the facts of all peers are copied under the lock, before the pick.
 */

#include "choice/log.h"


/* A line that is being written. */
typedef struct {
    ngx_http_llmgw_log_t             *log;
    const ngx_http_llmgw_decided_t   *decided;
    unsigned                          starts_over:1;    /* the claim dropped
                                                   its exclusions */
    uint32_t                          chosen;           /* position */
    llmgw_scoring_t                   scoring;
} ngx_http_llmgw_log_entry_t;


static void ngx_http_llmgw_log_free(ngx_http_llmgw_log_t *log);
static uint32_t ngx_http_llmgw_log_retry(const llmgw_pick_pool_t *pool,
    const llmgw_pick_peer_t *peer, uint64_t now_ms);
static int64_t ngx_http_llmgw_log_now(void);
static void ngx_http_llmgw_log_outcome(ngx_http_llmgw_log_entry_t *entry,
    llmgw_decision_route_t *route);
static ngx_uint_t ngx_http_llmgw_log_is_ranked(
    const ngx_http_llmgw_log_entry_t *entry);
static void ngx_http_llmgw_log_ranked(ngx_http_llmgw_log_entry_t *entry,
    llmgw_decision_route_t *route);
static void ngx_http_llmgw_log_describe_ranked(const void *data,
    uint32_t position, llmgw_decision_replica_t *replica);
static void ngx_http_llmgw_log_by_pick(ngx_http_llmgw_log_entry_t *entry,
    llmgw_decision_route_t *route);
static void ngx_http_llmgw_log_by_ring(
    const ngx_http_llmgw_log_entry_t *entry, llmgw_decision_route_t *route,
    llmgw_pick_sums_t *sums);
static const llmgw_pick_sums_t *ngx_http_llmgw_log_sums(
    const ngx_http_llmgw_log_entry_t *entry, llmgw_pick_sums_t *sums);
static void ngx_http_llmgw_log_describe_peer(const void *data,
    uint32_t position, llmgw_decision_replica_t *replica);
static void ngx_http_llmgw_log_describe_facts(
    const ngx_http_llmgw_decided_t *decided, uint32_t peer,
    llmgw_decision_replica_t *replica);
static llmgw_line_text_t ngx_http_llmgw_log_model(
    const ngx_http_llmgw_traced_t *traced);
static llmgw_line_text_t ngx_http_llmgw_log_text(const ngx_str_t *text);
static void ngx_http_llmgw_log_top(ngx_http_llmgw_log_t *log,
    llmgw_decision_route_t *route);


static const llmgw_ranker_t  ngx_http_llmgw_log_no_ranks = {
    .policy = LLMGW_RANK_AFFINITY
};


/*
 * Makes memory for as many replicas.  If there is none, the next line has no
 * replicas.
 */

void
ngx_http_llmgw_log_prepare(ngx_http_llmgw_log_t *log,
    const llmgw_pick_pool_t *pool, const llmgw_pick_key_t *key)
{
    u_char      *p;
    size_t       size;
    ngx_uint_t   n, nscores;

    log->nseen = 0;
    log->key = *key;

    if (pool->npeers <= log->npeers) {
        return;
    }

    ngx_http_llmgw_log_free(log);

    n = pool->npeers + pool->npeers / 4 + 1;
    nscores = n * log->conf->weighted.n;

    size = n * (sizeof(ngx_http_llmgw_log_seen_t) + sizeof(llmgw_candidate_t)
                + sizeof(double) + 2 * sizeof(uint32_t))
           + nscores * sizeof(double);

    p = ngx_alloc(size, log->zone->log);
    if (p == NULL) {
        return;
    }

    log->npeers = n - 1;
    log->candidates = (llmgw_candidate_t *) p;
    p += n * sizeof(llmgw_candidate_t);
    log->cold = (double *) p;
    p += n * sizeof(double);
    log->scores = (double *) p;
    p += nscores * sizeof(double);
    log->seen = (ngx_http_llmgw_log_seen_t *) p;
    p += n * sizeof(ngx_http_llmgw_log_seen_t);
    log->heap = (uint32_t *) p;
    p += n * sizeof(uint32_t);
    log->shown = (uint32_t *) p;
}


static void
ngx_http_llmgw_log_free(ngx_http_llmgw_log_t *log)
{
    ngx_free(log->candidates);          /* and the arrays after it */

    log->candidates = NULL;
    log->npeers = 0;
}


void
ngx_http_llmgw_log_look(ngx_http_llmgw_log_t *log,
    const llmgw_pick_pool_t *pool)
{
    uint32_t                    i;
    llmgw_pick_key_t            untried, *key;
    const llmgw_pick_peer_t    *peer;
    ngx_http_llmgw_log_seen_t  *seen;

    key = &log->key;

    if (pool->npeers > log->npeers
        || (pool->ranked && llmgw_ranked_has_eligible(pool, key)))
    {
        return;
    }

    log->nseen = pool->npeers;
    untried = *key;
    untried.nexcluded = 0;

    for (i = 0; i < pool->npeers; i++) {
        peer = &pool->peers[i];
        seen = &log->seen[i];

        seen->in_flight = peer->counts ? peer->counts->in_flight : 0;
        seen->foreign = peer->foreign;
        seen->weight = llmgw_peer_weight(peer);
        seen->state = peer->state;
        seen->is_open = !llmgw_peer_is_admitted(pool, peer, key->now_ms);
        seen->retry_ms = seen->is_open
                         ? ngx_http_llmgw_log_retry(pool, peer, key->now_ms)
                         : 0;
        seen->lacks = seen->untried = LLMGW_LACKS_STATE;

        if (peer->state != LLMGW_PEER_UNUSABLE
            && peer->state != LLMGW_PEER_STANDBY)
        {
            seen->lacks = llmgw_peer_lacks(pool, key, peer->state, i);
            seen->untried = llmgw_peer_lacks(pool, &untried, peer->state, i);
        }
    }
}


/* The time by which the pick compares circuits, of which it may force one. */

static uint32_t
ngx_http_llmgw_log_retry(const llmgw_pick_pool_t *pool,
    const llmgw_pick_peer_t *peer, uint64_t now_ms)
{
    uint64_t  retry_ms;

    if (peer->breaker->state != LLMGW_BREAKER_OPEN) {
        return 0;
    }

    retry_ms = llmgw_breaker_retry_ms(peer->breaker, pool->breaker_conf);

    return ngx_min(retry_ms - now_ms, UINT32_MAX);
}


void
ngx_http_llmgw_log_decided(ngx_http_llmgw_log_t *log,
    const ngx_http_llmgw_decided_t *decided)
{
    llmgw_line_t                out;
    llmgw_pick_sums_t           sums;
    llmgw_decision_route_t      route;
    ngx_http_llmgw_log_entry_t  entry;

    ngx_memzero(&entry, sizeof(ngx_http_llmgw_log_entry_t));
    ngx_memzero(&route, sizeof(llmgw_decision_route_t));

    entry.log = log;
    entry.decided = decided;
    entry.chosen = LLMGW_RANK_NONE;

    route.worker = ngx_pid;
    route.t_us = ngx_http_llmgw_log_now();
    route.request = ngx_http_llmgw_log_text(&decided->traced->request);
    route.pool = ngx_http_llmgw_log_text(&log->conf->name);
    route.model = ngx_http_llmgw_log_model(decided->traced);
    route.random = &log->key.random;
    route.data = &entry;

    ngx_http_llmgw_log_outcome(&entry, &route);

    if (ngx_http_llmgw_log_is_ranked(&entry)) {
        ngx_http_llmgw_log_ranked(&entry, &route);

    } else {
        ngx_http_llmgw_log_by_pick(&entry, &route);
    }

    if (decided->choice == NULL) {
        ngx_http_llmgw_log_by_ring(&entry, &route, &sums);
    }

    ngx_http_llmgw_log_top(log, &route);

    do {
        if (ngx_http_llmgw_log_begin(log, &out) != NGX_OK) {
            return;
        }

        llmgw_decision_route(&out, &route);

    } while (ngx_http_llmgw_log_end(log, &out));
}


static int64_t
ngx_http_llmgw_log_now(void)
{
    struct timeval  tv;

    ngx_gettimeofday(&tv);

    return (int64_t) tv.tv_sec * 1000000 + tv.tv_usec;
}


static void
ngx_http_llmgw_log_outcome(ngx_http_llmgw_log_entry_t *entry,
    llmgw_decision_route_t *route)
{
    const llmgw_ring_node_t         *node;
    const ngx_http_llmgw_decided_t  *decided;

    static const char  *outcomes[] = {
        [LLMGW_ADMISSION_LEASED] = NULL,
        [LLMGW_ADMISSION_WAITS] = "waits",
        [LLMGW_ADMISSION_SHED] = "shed",
        [LLMGW_ADMISSION_STALE] = "stale",
        [LLMGW_ADMISSION_FULL] = "full",
        [LLMGW_ADMISSION_SKIPPABLE] = "skippable",
        [LLMGW_ADMISSION_OPEN] = "open",
        [LLMGW_ADMISSION_EXCLUDED] = "excluded",
        [LLMGW_ADMISSION_NONE] = "none"
    };

    decided = entry->decided;

    route->attempt = decided->traced->attempts + 1;
    route->outcome = outcomes[decided->answer->rc];

    if (decided->answer->rc != LLMGW_ADMISSION_LEASED) {
        return;
    }

    decided->traced->attempts++;
    entry->starts_over = (decided->answer->forget == LLMGW_FORGET_ALL);

    node = &decided->nodes[decided->answer->picked.peer];

    route->replica.text = node->id;
    route->replica.len = node->id_len;
    route->route = decided->is_hedge
                   ? "hedge" : llmgw_route_name(decided->answer->picked.route);
}


/*
 * 1: a rank decided.  With a policy, a replica chosen for its least load has
 * none.
 */

static ngx_uint_t
ngx_http_llmgw_log_is_ranked(const ngx_http_llmgw_log_entry_t *entry)
{
    const ngx_http_llmgw_decided_t  *decided;

    decided = entry->decided;

    return decided->choice
           && (decided->answer->rc != LLMGW_ADMISSION_LEASED
               || decided->answer->picked.route != LLMGW_ROUTE_LEAST_CONN
               || entry->log->nseen == 0);
}


static void
ngx_http_llmgw_log_ranked(ngx_http_llmgw_log_entry_t *entry,
    llmgw_decision_route_t *route)
{
    ngx_http_llmgw_log_t           *log;
    const ngx_http_llmgw_choice_t  *choice;

    log = entry->log;
    choice = entry->decided->choice;
    entry->scoring = choice->scoring;

    if (choice->scoring.n > log->npeers) {
        entry->scoring.n = 0;
    }

    llmgw_decision_prepare(&choice->ranker, &entry->scoring, log->scores,
                           log->cold);

    if (entry->decided->answer->rc == LLMGW_ADMISSION_LEASED
        && entry->scoring.n)
    {
        entry->chosen = choice->chosen;
    }

    route->ranker = &choice->ranker;
    route->scoring = &entry->scoring;
    route->ranks = choice->ranks;
    route->scores = log->scores;
    route->cold = log->cold;
    route->chosen = entry->chosen;
    route->describe = ngx_http_llmgw_log_describe_ranked;
}


/*
 * Candidates ranked before the chosen one were not eligible.  The reason is
 * known for those that were drawn one by one; not if the pick then looked at
 * all peers, or if the claim dropped its exclusions and asked again.
 */

static void
ngx_http_llmgw_log_describe_ranked(const void *data, uint32_t position,
    llmgw_decision_replica_t *replica)
{
    uint32_t                           i;
    const llmgw_ranked_t              *ranked;
    const ngx_http_llmgw_log_entry_t  *entry = data;

    ranked = &entry->decided->choice->ranked;

    ngx_http_llmgw_log_describe_facts(entry->decided, ranked->peers[position],
                                      replica);

    for (i = 0; i < ranked->ndraws && !entry->starts_over; i++) {
        if (ranked->draws[i].position == position) {
            replica->lacks = ranked->draws[i].lacks;
            return;
        }
    }

    replica->was_passed = entry->chosen != LLMGW_RANK_NONE
                          && position != entry->chosen
                          && llmgw_ranked_is_before(ranked, position,
                                                   entry->chosen);
}


/* All peers, as the pick read them. */

static void
ngx_http_llmgw_log_by_pick(ngx_http_llmgw_log_entry_t *entry,
    llmgw_decision_route_t *route)
{
    ngx_uint_t                       i;
    llmgw_candidate_t               *candidate;
    ngx_http_llmgw_log_t            *log;
    const llmgw_facts_t             *facts;
    const ngx_http_llmgw_decided_t  *decided;

    log = entry->log;
    decided = entry->decided;

    for (i = 0; i < log->nseen; i++) {
        facts = &decided->fleet->facts[i];
        candidate = &log->candidates[i];

        ngx_memzero(candidate, sizeof(llmgw_candidate_t));

        candidate->in_flight = ngx_min(log->seen[i].in_flight, INT32_MAX);

        if (llmgw_facts_known(facts, decided->fleet->clock_ms)) {
            candidate->queue_depth = ngx_min(facts->waiting, INT32_MAX);
            candidate->batch_size = ngx_min(facts->running, INT32_MAX);
            candidate->kv_utilization = facts->kv_permille / 1000.0;
        }
    }

    entry->scoring.candidates = log->candidates;
    entry->scoring.n = log->nseen;
    entry->scoring.nblocks = decided->nblocks;

    if (decided->answer->rc == LLMGW_ADMISSION_LEASED
        && decided->answer->picked.peer < log->nseen)
    {
        entry->chosen = decided->answer->picked.peer;
    }

    route->ranker = &ngx_http_llmgw_log_no_ranks;
    route->scoring = &entry->scoring;
    route->chosen = entry->chosen;
    route->describe = ngx_http_llmgw_log_describe_peer;
}


static void
ngx_http_llmgw_log_by_ring(const ngx_http_llmgw_log_entry_t *entry,
    llmgw_decision_route_t *route, llmgw_pick_sums_t *sums)
{
    route->sums = ngx_http_llmgw_log_sums(entry, sums);

    /* the sums have counted a claim that started over more than once */
    if (!entry->starts_over || route->sums == NULL) {
        route->key = &entry->log->key.hash;
    }
}


/* The sums of many peers, without the request that the ring counts in them. */

static const llmgw_pick_sums_t *
ngx_http_llmgw_log_sums(const ngx_http_llmgw_log_entry_t *entry,
    llmgw_pick_sums_t *sums)
{
    const llmgw_pick_sums_t  *kept;

    kept = entry->decided->fleet->pick.sums;

    if (kept->state != LLMGW_PEER_ALIVE
        || kept->now_ms != entry->log->key.now_ms || kept->load == 0)
    {
        return NULL;
    }

    *sums = *kept;
    sums->load--;

    return sums;
}


static void
ngx_http_llmgw_log_describe_peer(const void *data, uint32_t position,
    llmgw_decision_replica_t *replica)
{
    const ngx_http_llmgw_log_seen_t   *seen;
    const ngx_http_llmgw_log_entry_t  *entry = data;

    seen = &entry->log->seen[position];

    ngx_http_llmgw_log_describe_facts(entry->decided, position, replica);

    replica->has_pick = 1;
    replica->is_open = seen->is_open;
    replica->retry_ms = seen->retry_ms;
    replica->state = seen->state;
    replica->weight = seen->weight;
    replica->foreign = seen->foreign;
    replica->lacks = entry->starts_over ? seen->untried : seen->lacks;
}


static void
ngx_http_llmgw_log_describe_facts(const ngx_http_llmgw_decided_t *decided,
    uint32_t peer, llmgw_decision_replica_t *replica)
{
    unsigned              known;
    const llmgw_facts_t  *facts;

    facts = &decided->fleet->facts[peer];
    known = llmgw_facts_known(facts, decided->fleet->clock_ms);

    replica->id.text = decided->nodes[peer].id;
    replica->id.len = decided->nodes[peer].id_len;

    if (facts->reported_ms && facts->reported_ms <= decided->fleet->clock_ms) {
        replica->age_ms = decided->fleet->clock_ms - facts->reported_ms;
    }

    if (!(known & LLMGW_FACT_WAITING)) {
        replica->unknown |= LLMGW_DECISION_QUEUE;
    }

    if (!(known & LLMGW_FACT_RUNNING)) {
        replica->unknown |= LLMGW_DECISION_BATCH;
    }

    if (!(known & LLMGW_FACT_KV)) {
        replica->unknown |= LLMGW_DECISION_KV;
    }
}


static void
ngx_http_llmgw_log_top(ngx_http_llmgw_log_t *log,
    llmgw_decision_route_t *route)
{
    if (log->top < route->scoring->n) {
        route->shown = log->shown;
        route->nshown = llmgw_decision_top(route, log->top, log->heap,
                                           log->shown);
    }
}


void
ngx_http_llmgw_log_entry(ngx_http_llmgw_log_t *log,
    const ngx_http_llmgw_traced_t *traced, int64_t tokens,
    llmgw_outcome_t outcome)
{
    u_char                      hash[2 * sizeof(uint64_t)];
    llmgw_line_t                out;
    llmgw_decision_admission_t  admission;

    ngx_memzero(&admission, sizeof(llmgw_decision_admission_t));

    admission.worker = ngx_pid;
    admission.t_us = ngx_http_llmgw_log_now();
    admission.request = ngx_http_llmgw_log_text(&traced->request);
    admission.pool = ngx_http_llmgw_log_text(&log->conf->name);
    admission.model = ngx_http_llmgw_log_model(traced);
    admission.slo_class = ngx_http_llmgw_log_text(&traced->class);
    admission.tenant = ngx_http_llmgw_log_text(&traced->tenant);
    admission.tokens = tokens;
    admission.reason = llmgw_outcome_reason(outcome);

    if (traced->tenant.len == 0 && traced->tenant_hash) {
        admission.tenant.text = (char *) hash;
        admission.tenant.len = ngx_sprintf(hash, "%016xL",
                                           traced->tenant_hash) - hash;
    }

    do {
        if (ngx_http_llmgw_log_begin(log, &out) != NGX_OK) {
            return;
        }

        llmgw_decision_admission(&out, &admission);

    } while (ngx_http_llmgw_log_end(log, &out));
}


static llmgw_line_text_t
ngx_http_llmgw_log_model(const ngx_http_llmgw_traced_t *traced)
{
    return (llmgw_line_text_t) { traced->model[0] ? traced->model : NULL,
                                 ngx_strlen(traced->model) };
}


static llmgw_line_text_t
ngx_http_llmgw_log_text(const ngx_str_t *text)
{
    return (llmgw_line_text_t) { (char *) text->data, text->len };
}


void
ngx_http_llmgw_log_ended(ngx_http_llmgw_log_t *log,
    const ngx_http_llmgw_traced_t *traced, llmgw_outcome_t outcome)
{
    switch (outcome) {

    case LLMGW_OUTCOME_QUEUE_FULL:
    case LLMGW_OUTCOME_QUEUE_TIMEOUT:
    case LLMGW_OUTCOME_QUEUE_TTL:
    case LLMGW_OUTCOME_QUEUE_SHED:
        ngx_http_llmgw_log_entry(log, traced, -1, outcome);
        return;

    default:
        return;
    }
}
