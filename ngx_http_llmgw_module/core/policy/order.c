
/* All candidates by rank: a binary heap, the best on top. */

#include "core/policy/order.h"


static int
order_is_before(const llmgw_order_t *order, uint32_t a, uint32_t b)
{
    return llmgw_order_is_before(order->ranks, order->random, a, b);
}


static void
order_sink(llmgw_order_t *order, uint32_t i)
{
    uint32_t  child, moved;

    moved = order->heap[i];

    while ((child = 2 * i + 1) < order->n) {
        if (child + 1 < order->n
            && order_is_before(order, order->heap[child + 1],
                               order->heap[child]))
        {
            child++;
        }

        if (order_is_before(order, moved, order->heap[child])) {
            break;
        }

        order->heap[i] = order->heap[child];
        i = child;
    }

    order->heap[i] = moved;
}


void
llmgw_order_init(llmgw_order_t *order, const double *ranks, uint32_t n,
    uint32_t *heap, const uint64_t *random)
{
    uint32_t  i;

    order->ranks = ranks;
    order->random = random;
    order->heap = heap;
    order->n = n;

    for (i = 0; i < n; i++) {
        heap[i] = i;
    }

    for (i = n / 2; i-- > 0; /* void */ ) {
        order_sink(order, i);
    }
}


uint32_t
llmgw_order_next(llmgw_order_t *order)
{
    uint32_t  best;

    if (order->n == 0) {
        return UINT32_MAX;
    }

    best = order->heap[0];
    order->heap[0] = order->heap[--order->n];

    if (order->n != 0) {
        order_sink(order, 0);
    }

    return best;
}
