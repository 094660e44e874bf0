
/*
 * Limits of an account, as given in a line of the key file and enforced by
 * core/accounts/accounts.h.  Zero is no limit.
 */

#ifndef LLMGW_LIMITS_H
#define LLMGW_LIMITS_H

#include <stdint.h>


/*
 * The name of an account: a key's name, or an identity, for example an e-mail
 * address.
 */
#define LLMGW_KEY_NAME_BYTES  97        /* with the NUL */

/*
 * More than any client uses; sums and products of limits stay within 64 bits.
 */
#define LLMGW_LIMIT_MAX  1000000000000ull
#define LLMGW_STREAMS_MAX  1000000

typedef enum {
    LLMGW_PERIOD_DAY = 0,               /* of UTC, like a month */
    LLMGW_PERIOD_MONTH,
    LLMGW_NPERIODS
} llmgw_period_t;

typedef struct {
    uint64_t        rpm;                /* requests a minute */
    uint64_t        tpm;                /* tokens a minute */
    uint64_t        budget;             /* tokens a period */
    llmgw_period_t  period;             /* the period of the budget */
    uint32_t        streams;            /* requests in flight */
} llmgw_limits_t;


static inline uint64_t
llmgw_limit_part(uint64_t limit, uint32_t gateways)
{
    return limit / gateways + (limit % gateways != 0);
}


/* One gateway's part of each limit, rounded up.  gateways is at least 1. */
static inline void
llmgw_limits_divide(llmgw_limits_t *limits, uint32_t gateways)
{
    limits->rpm = llmgw_limit_part(limits->rpm, gateways);
    limits->tpm = llmgw_limit_part(limits->tpm, gateways);
    limits->budget = llmgw_limit_part(limits->budget, gateways);
    limits->streams = (uint32_t) llmgw_limit_part(limits->streams, gateways);
}

#endif /* LLMGW_LIMITS_H */
