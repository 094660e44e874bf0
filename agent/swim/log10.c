
/*
 * log10, digit by digit: how often n can be divided by ten is the first one;
 * the rest, raised to the tenth power, gives the next.  The C library's
 * log10() would load libm, a tenth of the agent's resident memory.
 */

#include "swim/swim_inner.h"


double
swim_log10(size_t n)
{
    int     digit, i;
    double  left, unit, log, power;

    left = n;
    log = 0;

    for (unit = 1; unit > 1e-6; unit /= 10) {
        for (digit = 0; left >= 10; digit++) {
            left /= 10;
        }

        log += digit * unit;

        for (power = left, i = 1; i < 10; i++) {
            power *= left;
        }

        left = power;
    }

    return log;
}
