
/*
 * A token bucket: it fills at a rate up to its capacity, and a request that
 * costs no more than it holds is admitted and takes its cost out.
 *
 * It fills when it is asked, by the time since it was asked last, in doubles:
 * tokens = min(capacity, tokens + elapsed_us x rate / 1e6).  A plain value
 * that may lie in shared memory under a lock.
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

#endif /* LLMGW_BUCKET_H */
