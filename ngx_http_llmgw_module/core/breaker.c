
/* The breaker.  breaker.h has the states and the reasons. */

#include <string.h>

#include "core/breaker.h"


_Static_assert(sizeof(llmgw_breaker_t) <= 128, "one per replica, two lines");


static uint32_t
conf_probes(const llmgw_breaker_conf_t *conf)
{
    return conf->probes == 0 ? 1 : conf->probes;
}


static uint64_t
conf_lease_ms(const llmgw_breaker_conf_t *conf)
{
    return conf->max_cooldown_ms < conf->cooldown_ms ? conf->cooldown_ms
                                                     : conf->max_cooldown_ms;
}


static uint64_t
conf_bucket(const llmgw_breaker_conf_t *conf, uint64_t now_ms)
{
    uint64_t  bucket_ms;

    bucket_ms = conf->window_ms / LLMGW_BREAKER_BUCKETS;

    return now_ms / (bucket_ms == 0 ? 1 : bucket_ms);
}


static llmgw_breaker_ticket_t
breaker_ticket(const llmgw_breaker_t *breaker, int is_probe)
{
    return breaker->changes << 1 | (is_probe ? 1 : 0);
}


static int
breaker_knows(const llmgw_breaker_t *breaker, llmgw_breaker_ticket_t ticket)
{
    return ticket == breaker_ticket(breaker, llmgw_breaker_is_probe(ticket));
}


static void
breaker_enter(llmgw_breaker_t *breaker, llmgw_breaker_state_t state,
    uint64_t now_ms)
{
    breaker->state = (uint8_t) state;
    breaker->since_ms = now_ms;
    breaker->changes++;
    breaker->probing = 0;
    breaker->succeeded = 0;
    breaker->forced = 0;
}


/*
 * A cooldown kept from an earlier configuration is brought within the limits of
 * this one.
 */
static void
breaker_open(llmgw_breaker_t *breaker, const llmgw_breaker_conf_t *conf,
    uint64_t cooldown_ms, uint64_t now_ms)
{
    breaker_enter(breaker, LLMGW_BREAKER_OPEN, now_ms);

    if (cooldown_ms > conf_lease_ms(conf)) {
        cooldown_ms = conf_lease_ms(conf);
    }

    if (cooldown_ms < conf->cooldown_ms) {
        cooldown_ms = conf->cooldown_ms;
    }

    breaker->cooldown_ms = cooldown_ms;
}


/*
 * A clock that lags a little behind counts in the newest bucket.  A number that
 * is a whole window behind shows that the buckets had another width before a
 * reload: the window is emptied.
 */
static void
breaker_rotate(llmgw_breaker_t *breaker, const llmgw_breaker_conf_t *conf,
    uint64_t now_ms)
{
    uint64_t  number;

    number = conf_bucket(conf, now_ms);

    if (number >= breaker->newest + LLMGW_BREAKER_BUCKETS
        || number + LLMGW_BREAKER_BUCKETS <= breaker->newest)
    {
        memset(breaker->buckets, 0, sizeof(breaker->buckets));
        breaker->newest = number;
        return;
    }

    while (breaker->newest < number) {
        breaker->newest++;
        breaker->buckets[breaker->newest % LLMGW_BREAKER_BUCKETS]
            = (llmgw_breaker_bucket_t) { 0, 0 };
    }
}


static llmgw_breaker_change_t
breaker_count(llmgw_breaker_t *breaker, const llmgw_breaker_conf_t *conf,
    llmgw_verdict_t verdict, uint64_t now_ms)
{
    llmgw_breaker_counts_t   counts;
    llmgw_breaker_bucket_t  *bucket;

    breaker_rotate(breaker, conf, now_ms);

    bucket = &breaker->buckets[breaker->newest % LLMGW_BREAKER_BUCKETS];
    bucket->total++;

    if (verdict == LLMGW_VERDICT_SUCCESS) {
        return LLMGW_BREAKER_UNCHANGED;
    }

    bucket->failed++;
    counts = llmgw_breaker_counts(breaker, conf, now_ms);

    if (counts.total < conf->min_requests
        || counts.failed * 1000 < counts.total * conf->error_permille)
    {
        return LLMGW_BREAKER_UNCHANGED;
    }

    breaker_open(breaker, conf, conf->cooldown_ms, now_ms);

    return LLMGW_BREAKER_OPENED;
}


static llmgw_breaker_change_t
breaker_begin_probe(llmgw_breaker_t *breaker,
    const llmgw_breaker_conf_t *conf, int forced, uint64_t now_ms,
    llmgw_breaker_ticket_t *ticket)
{
    llmgw_breaker_change_t  change;

    change = LLMGW_BREAKER_UNCHANGED;

    if (breaker->state == LLMGW_BREAKER_OPEN) {
        breaker_enter(breaker, LLMGW_BREAKER_HALF_OPEN, now_ms);
        breaker->forced = (uint8_t) forced;
        change = LLMGW_BREAKER_HALF_OPENED;
    }

    /* else it takes over the place of a lost probe */
    if (breaker->probing < conf_probes(conf)) {
        breaker->probing++;
    }

    breaker->since_ms = now_ms;
    *ticket = breaker_ticket(breaker, 1);

    return change;
}


static llmgw_breaker_change_t
breaker_end_probe(llmgw_breaker_t *breaker, const llmgw_breaker_conf_t *conf,
    llmgw_verdict_t verdict, uint64_t now_ms)
{
    if (verdict == LLMGW_VERDICT_FAILURE) {
        breaker_open(breaker, conf,
                     breaker->cooldown_ms * (breaker->forced ? 1 : 2), now_ms);
        return LLMGW_BREAKER_REOPENED;
    }

    /* 0: this probe's place was taken over */
    if (breaker->probing > 0) {
        breaker->probing--;
    }

    if (verdict == LLMGW_VERDICT_NEUTRAL
        || ++breaker->succeeded < conf_probes(conf))
    {
        return LLMGW_BREAKER_UNCHANGED;
    }

    breaker_enter(breaker, LLMGW_BREAKER_CLOSED, now_ms);
    memset(breaker->buckets, 0, sizeof(breaker->buckets));

    return LLMGW_BREAKER_RECLOSED;
}


int
llmgw_breaker_allows(const llmgw_breaker_t *breaker,
    const llmgw_breaker_conf_t *conf, uint64_t now_ms)
{
    return now_ms >= llmgw_breaker_retry_ms(breaker, conf);
}


llmgw_breaker_change_t
llmgw_breaker_begin(llmgw_breaker_t *breaker,
    const llmgw_breaker_conf_t *conf, uint64_t now_ms,
    llmgw_breaker_ticket_t *ticket)
{
    if (llmgw_breaker_state(breaker, conf) == LLMGW_BREAKER_CLOSED
        || !llmgw_breaker_allows(breaker, conf, now_ms))
    {
        *ticket = breaker_ticket(breaker, 0);
        return LLMGW_BREAKER_UNCHANGED;
    }

    return breaker_begin_probe(breaker, conf, 0, now_ms, ticket);
}


int
llmgw_breaker_may_force(const llmgw_breaker_t *breaker,
    const llmgw_breaker_conf_t *conf, uint64_t now_ms)
{
    uint64_t  gap_ms;

    if (llmgw_breaker_allows(breaker, conf, now_ms)) {
        return 1;
    }

    gap_ms = breaker->cooldown_ms;

    if (breaker->state == LLMGW_BREAKER_OPEN
        && gap_ms > LLMGW_BREAKER_FORCE_GAP_MS)
    {
        gap_ms = LLMGW_BREAKER_FORCE_GAP_MS;
    }

    return now_ms >= breaker->since_ms + gap_ms;
}


llmgw_breaker_change_t
llmgw_breaker_force(llmgw_breaker_t *breaker,
    const llmgw_breaker_conf_t *conf, uint64_t now_ms,
    llmgw_breaker_ticket_t *ticket)
{
    if (llmgw_breaker_allows(breaker, conf, now_ms)
        || !llmgw_breaker_may_force(breaker, conf, now_ms))
    {
        return llmgw_breaker_begin(breaker, conf, now_ms, ticket);
    }

    return breaker_begin_probe(breaker, conf, 1, now_ms, ticket);
}


llmgw_breaker_change_t
llmgw_breaker_end(llmgw_breaker_t *breaker, const llmgw_breaker_conf_t *conf,
    llmgw_breaker_ticket_t ticket, llmgw_verdict_t verdict, uint64_t now_ms)
{
    if (!conf->enabled || !breaker_knows(breaker, ticket)) {
        return LLMGW_BREAKER_UNCHANGED;
    }

    if (llmgw_breaker_is_probe(ticket)) {
        return breaker_end_probe(breaker, conf, verdict, now_ms);
    }

    if (breaker->state != LLMGW_BREAKER_CLOSED
        || verdict == LLMGW_VERDICT_NEUTRAL)
    {
        return LLMGW_BREAKER_UNCHANGED;
    }

    return breaker_count(breaker, conf, verdict, now_ms);
}


uint64_t
llmgw_breaker_retry_ms(const llmgw_breaker_t *breaker,
    const llmgw_breaker_conf_t *conf)
{
    switch (llmgw_breaker_state(breaker, conf)) {

    case LLMGW_BREAKER_OPEN:
        return breaker->since_ms + breaker->cooldown_ms;

    case LLMGW_BREAKER_HALF_OPEN:
        return breaker->probing < conf_probes(conf)
               ? 0 : breaker->since_ms + conf_lease_ms(conf);

    default:
        return 0;
    }
}


llmgw_breaker_counts_t
llmgw_breaker_counts(const llmgw_breaker_t *breaker,
    const llmgw_breaker_conf_t *conf, uint64_t now_ms)
{
    uint64_t                       i, number;
    llmgw_breaker_counts_t         counts = { 0, 0 };
    const llmgw_breaker_bucket_t  *bucket;

    number = conf_bucket(conf, now_ms);

    for (i = 0; i < LLMGW_BREAKER_BUCKETS && i <= breaker->newest; i++) {
        if (number >= breaker->newest - i + LLMGW_BREAKER_BUCKETS) {
            break;
        }

        bucket = &breaker->buckets[(breaker->newest - i)
                                   % LLMGW_BREAKER_BUCKETS];
        counts.failed += bucket->failed;
        counts.total += bucket->total;
    }

    return counts;
}


llmgw_breaker_state_t
llmgw_breaker_state(const llmgw_breaker_t *breaker,
    const llmgw_breaker_conf_t *conf)
{
    return conf->enabled ? (llmgw_breaker_state_t) breaker->state
                         : LLMGW_BREAKER_CLOSED;
}


const char *
llmgw_breaker_state_name(llmgw_breaker_state_t state)
{
    switch (state) {

    case LLMGW_BREAKER_OPEN:
        return "open";

    case LLMGW_BREAKER_HALF_OPEN:
        return "half_open";

    default:
        return "closed";
    }
}


const char *
llmgw_breaker_change_name(llmgw_breaker_change_t change)
{
    static const char *const  names[] = {
        [LLMGW_BREAKER_OPENED] = "opened",
        [LLMGW_BREAKER_REOPENED] = "reopened",
        [LLMGW_BREAKER_HALF_OPENED] = "half_opened",
        [LLMGW_BREAKER_RECLOSED] = "closed"
    };

    return names[change];
}
