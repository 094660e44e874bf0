
/*
 * All candidates by rank, the best first, drawn one by one.
 *
 * A heap over positions: made in linear time, each draw takes log n.  So the
 * order is prepared while no lock is held, and under the lock as many are
 * drawn as are not eligible, plus one.  Equal ranks come by position, or,
 * where a number is given, by lots drawn from it.
 */

#ifndef LLMGW_ORDER_H
#define LLMGW_ORDER_H

#include <stdint.h>


typedef struct {
    const double    *ranks;
    const uint64_t  *random;    /* NULL: equal ranks by position */
    uint32_t        *heap;      /* the caller's, of n positions */
    uint32_t         n;         /* that are left */
} llmgw_order_t;


/* ranks, heap and *random stay the caller's, and stay as they are. */
void llmgw_order_init(llmgw_order_t *order, const double *ranks, uint32_t n,
    uint32_t *heap, const uint64_t *random);

/* 1: position a comes before b, whether they are left or not. */
int llmgw_order_is_before(const llmgw_order_t *order, uint32_t a, uint32_t b);

/* The best that is left, and takes it out; UINT32_MAX: none is. */
uint32_t llmgw_order_next(llmgw_order_t *order);

#endif /* LLMGW_ORDER_H */
