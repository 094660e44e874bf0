
/*
 * What a circuit breaker costs a request: the check by the pick, and the
 * beginning and end of an attempt.  Time advances by a millisecond every 64
 * requests, so that the window's buckets rotate.
 */

#include "core/breaker.h"
#include "bench/micro/micro.h"


#define REQUESTS  2000000

typedef struct {
    llmgw_breaker_t       breaker;
    llmgw_breaker_conf_t  conf;
    uint64_t              n;
} circuit_t;


static uint64_t
request(circuit_t *c, llmgw_verdict_t verdict)
{
    uint64_t                now_ms;
    llmgw_breaker_ticket_t  ticket;

    now_ms = 1 + c->n++ / 64;

    if (!llmgw_breaker_allows(&c->breaker, &c->conf, now_ms)) {
        return 0;
    }

    (void) llmgw_breaker_begin(&c->breaker, &c->conf, now_ms, &ticket);
    (void) llmgw_breaker_end(&c->breaker, &c->conf, ticket, verdict, now_ms);

    return 1;
}


static uint64_t
succeed(void *data, size_t n)
{
    size_t    i;
    uint64_t  allowed;

    for (allowed = 0, i = 0; i < n; i++) {
        allowed += request(data, LLMGW_VERDICT_SUCCESS);
    }

    return allowed;
}


/*
 * A tenth of the attempts fail, which is below the rate that opens the circuit.
 */
static uint64_t
fail_some(void *data, size_t n)
{
    size_t    i;
    uint64_t  allowed;

    for (allowed = 0, i = 0; i < n; i++) {
        allowed += request(data, i % 10 == 0 ? LLMGW_VERDICT_FAILURE
                                             : LLMGW_VERDICT_SUCCESS);
    }

    return allowed;
}


static uint64_t
ask_open(void *data, size_t n)
{
    size_t      i;
    uint64_t    allowed;
    circuit_t  *c = data;

    for (allowed = 0, i = 0; i < n; i++) {
        allowed += (uint64_t) llmgw_breaker_allows(&c->breaker, &c->conf,
                                                   1 + (i & 1023));
    }

    return allowed;
}


int
main(void)
{
    circuit_t  c = { .conf = {
        .window_ms = 10000, .cooldown_ms = 5000, .max_cooldown_ms = 60000,
        .min_requests = 5, .error_permille = 500, .probes = 1, .enabled = 1
    } };

    micro_measure("breaker: a request, closed", succeed, &c, REQUESTS);
    micro_measure("breaker: a request, a tenth fails", fail_some, &c,
                  REQUESTS);

    c.breaker.state = LLMGW_BREAKER_OPEN;
    c.breaker.since_ms = 1;
    c.breaker.cooldown_ms = 5000;
    micro_measure("breaker: asked while open", ask_open, &c, REQUESTS);

    c.conf.enabled = 0;
    micro_measure("breaker: off", succeed, &c, REQUESTS);

    return 0;
}
