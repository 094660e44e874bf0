
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

#include <stddef.h>
#include <stdint.h>

#include "core/policy/draw.h"


typedef struct {
    const double    *ranks;
    const uint64_t  *random;    /* NULL: equal ranks by position */
    uint32_t        *heap;      /* the caller's, of n positions */
    uint32_t         n;         /* that are left */
} llmgw_order_t;


/* 1: position a comes before b; random: NULL, or for equal ranks. */
static inline int
llmgw_order_is_before(const double *ranks, const uint64_t *random, uint32_t a,
    uint32_t b)
{
    uint64_t  draw_a, draw_b;

    if (ranks[a] != ranks[b]) {
        return ranks[a] > ranks[b];
    }

    if (random != NULL) {
        draw_a = llmgw_draw(*random, a);
        draw_b = llmgw_draw(*random, b);

        if (draw_a != draw_b) {
            return draw_a < draw_b;
        }
    }

    return a < b;
}


/* ranks, heap and *random stay the caller's, and stay as they are. */
void llmgw_order_init(llmgw_order_t *order, const double *ranks, uint32_t n,
    uint32_t *heap, const uint64_t *random);

/* Takes out the best that is left; UINT32_MAX: none. */
uint32_t llmgw_order_next(llmgw_order_t *order);

#endif /* LLMGW_ORDER_H */
