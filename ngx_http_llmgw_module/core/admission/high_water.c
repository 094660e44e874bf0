
/*
 * High water.  high_water.h has the purpose, and why counting at releases
 * suffices.
 */

#include <string.h>

#include "core/admission/high_water.h"


#define BUCKETS  LLMGW_HIGH_WATER_BUCKETS


static void
high_water_rotate(llmgw_high_water_t *high, uint64_t number)
{
    if (number >= high->newest + BUCKETS) {
        memset(high->highest, 0, sizeof(high->highest));
        high->newest = number;
        return;
    }

    while (high->newest < number) {
        high->newest++;
        high->highest[high->newest % BUCKETS] = 0;
    }
}


void
llmgw_high_water_note(llmgw_high_water_t *high, uint32_t in_flight,
    uint64_t now_ms)
{
    uint32_t  *highest;

    high_water_rotate(high, now_ms / LLMGW_HIGH_WATER_BUCKET_MS);

    highest = &high->highest[high->newest % BUCKETS];

    if (in_flight > *highest) {
        *highest = in_flight;
    }
}


static uint32_t
high_water_own(const llmgw_high_water_t *high, uint32_t in_flight,
    uint64_t now_ms)
{
    uint32_t  highest;
    uint64_t  i, number;

    number = now_ms / LLMGW_HIGH_WATER_BUCKET_MS;
    highest = in_flight;

    for (i = 0; i < BUCKETS && i <= high->newest; i++) {
        if (number >= high->newest - i + BUCKETS) {
            break;
        }

        if (high->highest[(high->newest - i) % BUCKETS] > highest) {
            highest = high->highest[(high->newest - i) % BUCKETS];
        }
    }

    return highest;
}


uint32_t
llmgw_high_water_foreign(const llmgw_high_water_t *high, uint32_t in_flight,
    uint32_t reported, uint64_t now_ms)
{
    uint32_t  own;

    own = high_water_own(high, in_flight, now_ms);

    return reported > own ? reported - own : 0;
}
