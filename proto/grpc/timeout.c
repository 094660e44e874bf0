
/*
 * grpc-timeout (PROTOCOL-HTTP2.md): at most eight digits and a unit.  Eight
 * digits of milliseconds are 27 hours; a longer timeout takes the next unit
 * that holds it, rounded up, so that it is never shorter than asked.
 */

#include <stdio.h>

#include "proto/grpc/session_inner.h"


#define MAX_DIGITS  8
#define MAX_VALUE   99999999


/* Milliseconds per unit, or units per millisecond. */
typedef struct {
    char      unit;
    uint64_t  ms;
    uint64_t  per_ms;
} unit_t;

/*
 * From fine to coarse, for encoding; the last ones, which are finer, are only
 * decoded.
 */
static const unit_t  units[] = {
    { 'm', 1, 1 },
    { 'S', 1000, 1 },
    { 'M', 60 * 1000, 1 },
    { 'H', 60 * 60 * 1000, 1 },
    { 'u', 1, 1000 },
    { 'n', 1, 1000000 },
};

#define ENCODE_UNITS  4
#define ALL_UNITS     (sizeof(units) / sizeof(units[0]))


uint64_t
llmgw_grpc_timeout_decode(const char *value, size_t len)
{
    size_t    i;
    uint64_t  n, ms;

    if (len < 2 || len > MAX_DIGITS + 1) {
        return 0;
    }

    n = 0;

    for (i = 0; i < len - 1; i++) {
        if (value[i] < '0' || value[i] > '9') {
            return 0;
        }

        n = n * 10 + (uint64_t) (value[i] - '0');
    }

    for (i = 0; i < ALL_UNITS; i++) {
        if (units[i].unit == value[len - 1]) {
            ms = (n * units[i].ms + units[i].per_ms - 1) / units[i].per_ms;
            return ms ? ms : 1;
        }
    }

    return 0;
}


void
llmgw_grpc_timeout_encode(char *buf, uint64_t timeout_ms)
{
    size_t    i;
    uint64_t  n;

    n = timeout_ms;

    for (i = 0; i < ENCODE_UNITS - 1 && n > MAX_VALUE; i++) {
        n = timeout_ms / units[i + 1].ms
            + (timeout_ms % units[i + 1].ms != 0);
    }

    if (n > MAX_VALUE) {
        n = MAX_VALUE;
    }

    (void) snprintf(buf, 16, "%u%c", (unsigned) n, units[i].unit);
}
