
/* A breaker, its configuration and a clock, for the tests of the breaker. */

#ifndef BREAKER_SCENE_H
#define BREAKER_SCENE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/breaker.h"


#define SUCCESS  LLMGW_VERDICT_SUCCESS
#define FAILURE  LLMGW_VERDICT_FAILURE
#define NEUTRAL  LLMGW_VERDICT_NEUTRAL

typedef struct {
    llmgw_breaker_t       b;
    llmgw_breaker_conf_t  conf;
    uint64_t              now_ms;
} scene_t;


static inline void
scene_init(scene_t *s)
{
    memset(s, 0, sizeof(scene_t));

    s->conf.window_ms = 10000;
    s->conf.min_requests = 5;
    s->conf.error_permille = 500;
    s->conf.cooldown_ms = 5000;
    s->conf.max_cooldown_ms = 60000;
    s->conf.probes = 1;
    s->conf.enabled = 1;
    s->now_ms = 1000000;
}


static inline llmgw_breaker_state_t
state_of(const scene_t *s)
{
    return llmgw_breaker_state(&s->b, &s->conf);
}


static inline int
allows(const scene_t *s)
{
    return llmgw_breaker_allows(&s->b, &s->conf, s->now_ms);
}


static inline llmgw_breaker_ticket_t
begin(scene_t *s, llmgw_breaker_change_t change)
{
    llmgw_breaker_ticket_t  ticket;

    assert_int_equal(llmgw_breaker_begin(&s->b, &s->conf, s->now_ms, &ticket),
                     change);
    return ticket;
}


static inline llmgw_breaker_change_t
end(scene_t *s, llmgw_breaker_ticket_t ticket, llmgw_verdict_t verdict)
{
    return llmgw_breaker_end(&s->b, &s->conf, ticket, verdict, s->now_ms);
}


static inline llmgw_breaker_change_t
attempt(scene_t *s, llmgw_verdict_t verdict)
{
    return end(s, begin(s, LLMGW_BREAKER_UNCHANGED), verdict);
}


static inline void
attempts(scene_t *s, int n, llmgw_verdict_t verdict)
{
    while (n-- > 0) {
        assert_int_equal(attempt(s, verdict), LLMGW_BREAKER_UNCHANGED);
    }
}


static inline void
open_circuit(scene_t *s)
{
    attempts(s, (int) s->conf.min_requests - 1, FAILURE);
    assert_int_equal(attempt(s, FAILURE), LLMGW_BREAKER_OPENED);
    assert_int_equal(state_of(s), LLMGW_BREAKER_OPEN);
}


/* An attempt that is the probe of an open circuit. */
static inline llmgw_breaker_ticket_t
begin_probe(scene_t *s)
{
    llmgw_breaker_ticket_t  ticket;

    assert_true(allows(s));
    ticket = begin(s, LLMGW_BREAKER_HALF_OPENED);
    assert_true(llmgw_breaker_is_probe(ticket));
    assert_int_equal(state_of(s), LLMGW_BREAKER_HALF_OPEN);

    return ticket;
}


static inline void
assert_counts(const scene_t *s, uint64_t failed, uint64_t total)
{
    llmgw_breaker_counts_t  counts;

    counts = llmgw_breaker_counts(&s->b, &s->conf, s->now_ms);

    assert_int_equal(counts.failed, failed);
    assert_int_equal(counts.total, total);
}

#endif /* BREAKER_SCENE_H */
