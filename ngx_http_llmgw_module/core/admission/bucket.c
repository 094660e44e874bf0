
/* A token bucket.  bucket.h has the formula. */

#include <math.h>

#include "core/admission/bucket.h"


/* A request that has to wait for longer need not know for how long. */
#define WAIT_MAX_MS  1000000000000000


int
llmgw_bucket_init(llmgw_bucket_t *bucket, double capacity, double rate,
    int64_t now_us)
{
    if (!isfinite(capacity) || capacity <= 0 || !isfinite(rate) || rate <= 0) {
        return -1;
    }

    bucket->capacity = capacity;
    bucket->rate = rate;
    bucket->tokens = capacity;
    bucket->filled_us = now_us;

    return 0;
}


static void
bucket_fill(llmgw_bucket_t *bucket, int64_t now_us)
{
    double  tokens;

    if (now_us <= bucket->filled_us) {
        return;
    }

    tokens = bucket->tokens
             + (double) (now_us - bucket->filled_us) * bucket->rate / 1e6;

    bucket->tokens = tokens < bucket->capacity ? tokens : bucket->capacity;
    bucket->filled_us = now_us;
}


int
llmgw_bucket_take(llmgw_bucket_t *bucket, double cost, int64_t now_us)
{
    bucket_fill(bucket, now_us);

    if (bucket->tokens < cost) {
        return 0;
    }

    bucket->tokens -= cost;

    return 1;
}


void
llmgw_bucket_settle(llmgw_bucket_t *bucket, double taken, double used,
    int64_t now_us)
{
    double  tokens;

    bucket_fill(bucket, now_us);

    tokens = bucket->tokens + (taken - used);

    bucket->tokens = tokens > bucket->capacity ? bucket->capacity
                     : tokens < -bucket->capacity ? -bucket->capacity
                                                  : tokens;
}


int64_t
llmgw_bucket_wait_ms(const llmgw_bucket_t *bucket, double cost)
{
    double   exact;
    int64_t  ms;

    if (cost > bucket->capacity) {
        return -1;
    }

    exact = (cost - bucket->tokens) * 1000 / bucket->rate;

    if (exact > WAIT_MAX_MS) {
        return WAIT_MAX_MS;
    }

    ms = (int64_t) exact;
    ms += ((double) ms < exact);

    return ms < 1 ? 1 : ms;
}
