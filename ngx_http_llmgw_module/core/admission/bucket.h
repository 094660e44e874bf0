
/*
 * A token bucket: it fills at a rate up to its capacity, and a request that
 * costs no more than it holds is admitted and takes its cost out.
 *
 * It is refilled at each request, by the time since the last one, in doubles:
 * tokens = min(capacity, tokens + elapsed_us x rate / 1e6).  A plain value that
 * may lie in shared memory under a lock.
 *
 * Taking is as in BLIS, which knows what a request costs.  Where the cost is an
 * estimate, the bucket is settled when the cost is known.
 */

#ifndef LLMGW_BUCKET_H
#define LLMGW_BUCKET_H

#include <stdint.h>


typedef struct {
    double   capacity;          /* finite, above 0 */
    double   rate;              /* per second; finite, above 0 */
    double   tokens;
    int64_t  filled_us;         /* when it was filled last */
} llmgw_bucket_t;


/* Full at now_us.  Returns 0; -1: a number is not finite and above 0. */
int llmgw_bucket_init(llmgw_bucket_t *bucket, double capacity, double rate,
    int64_t now_us);

/* 1: taken; 0: it holds less.  A clock that went back fills nothing. */
int llmgw_bucket_take(llmgw_bucket_t *bucket, double cost, int64_t now_us);

/*
 * The cost was an estimate: `used` is the actual cost, and the difference is
 * returned or taken. So the bucket may become negative, by at most its
 * capacity.  used: finite, at least 0.
 */
void llmgw_bucket_settle(llmgw_bucket_t *bucket, double taken, double used,
    int64_t now_us);

/*
 * How many ms after filled_us the bucket will hold that much, at least 1; -1:
 * that is more than its capacity, so never.
 */
int64_t llmgw_bucket_wait_ms(const llmgw_bucket_t *bucket, double cost);

#endif /* LLMGW_BUCKET_H */
