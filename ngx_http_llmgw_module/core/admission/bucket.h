
/*
 * A token bucket: it fills at a rate up to its capacity, and a request that
 * costs no more than it holds is admitted and takes its cost out.
 *
 * It fills when it is asked, by the time since it was asked last, in doubles:
 * tokens = min(capacity, tokens + elapsed_us x rate / 1e6).  A plain value
 * that may lie in shared memory under a lock.
 *
 * Taking is BLIS's.  BLIS knows what a request costs; where that is estimated
 * the bucket is settled when the cost is known.
 */

#ifndef LLMGW_BUCKET_H
#define LLMGW_BUCKET_H

#include <stdint.h>


typedef struct {
    double   capacity;          /* finite, above 0 */
    double   rate;              /* a second; finite, above 0 */
    double   tokens;
    int64_t  filled_us;         /* when it was filled last */
} llmgw_bucket_t;


/* Full at now_us.  Returns 0; -1: a number is not finite and above 0. */
int llmgw_bucket_init(llmgw_bucket_t *bucket, double capacity, double rate,
    int64_t now_us);

/* 1: taken; 0: it holds less.  A clock that went back fills nothing. */
int llmgw_bucket_take(llmgw_bucket_t *bucket, double cost, int64_t now_us);

/*
 * What was taken was an estimate: `used` is what the request has cost, and the
 * difference goes back, or is taken as well.  So the bucket may hold less than
 * nothing, but owes no more than its capacity.  used: finite, at least 0.
 */
void llmgw_bucket_settle(llmgw_bucket_t *bucket, double taken, double used,
    int64_t now_us);

/*
 * How long after it was filled last it will hold that much, in ms, at least 1;
 * -1: that is more than its capacity, so never.
 */
int64_t llmgw_bucket_wait_ms(const llmgw_bucket_t *bucket, double cost);

#endif /* LLMGW_BUCKET_H */
