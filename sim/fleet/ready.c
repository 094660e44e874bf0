
#include <stdlib.h>

#include "sim/fleet/ready.h"


int
ready_init(ready_t *ready, uint32_t n)
{
    uint32_t  i;

    ready->leaves = 2;

    while (ready->leaves < n) {
        ready->leaves *= 2;
    }

    ready->times = malloc(ready->leaves * sizeof(int64_t));
    ready->winners = malloc(2 * ready->leaves * sizeof(uint32_t));

    if (ready->times == NULL || ready->winners == NULL) {
        ready_done(ready);
        return -1;
    }

    for (i = 0; i < ready->leaves; i++) {
        ready->times[i] = INT64_MAX;
        ready->winners[ready->leaves + i] = i;
    }

    for (i = ready->leaves - 1; i > 0; i--) {
        ready->winners[i] = ready->winners[2 * i];
    }

    return 0;
}


void
ready_done(ready_t *ready)
{
    free(ready->times);
    free(ready->winners);
    *ready = (ready_t) { 0 };
}


void
ready_set(ready_t *ready, uint32_t replica, int64_t at_us)
{
    uint32_t  node, left, right, winner;

    if (ready->times[replica] == at_us) {
        return;
    }

    ready->times[replica] = at_us;

    for (node = (ready->leaves + replica) / 2; node > 0; node /= 2) {
        left = ready->winners[2 * node];
        right = ready->winners[2 * node + 1];
        winner = ready->times[right] < ready->times[left] ? right : left;

        /*
         * If the winner of a node is the same, and is not this replica, the
         * nodes above it do not change.
         */
        if (winner == ready->winners[node] && winner != replica) {
            return;
        }

        ready->winners[node] = winner;
    }
}
