
/*
 * What several keys of a client mean together.
 */

#ifndef WORK_CLIENT_H
#define WORK_CLIENT_H

#include "sim/work/session_plan.h"
#include "sim/work/spec/spec.h"


static inline int
work_client_has_rounds(const work_client_t *c)
{
    return c->reasoning != NULL && c->reasoning->multi_turn != NULL;
}


/* Does a round wait until the one before it has ended? */
static inline int
work_client_is_closed(const work_client_t *c)
{
    return c->has_closed_loop ? c->closed_loop : work_client_has_rounds(c);
}


static inline int
work_client_accumulates(const work_client_t *c)
{
    return work_client_has_rounds(c)
           && c->reasoning->multi_turn->context_growth != NULL
           && c->reasoning->multi_turn->context_growth[0] != '\0';
}


/* The timeout of a client's requests; 0: none. */
static inline int64_t
work_client_timeout_us(const work_client_t *c, int of_session)
{
    if (c->has_timeout) {
        return c->timeout_us;
    }

    return of_session ? WORK_SESSION_TIMEOUT_US : 0;
}

#endif /* WORK_CLIENT_H */
