
/*
 * The monotonic clock of the host.  What is measured or awaited is measured by
 * it: an operator or NTP may set the wall clock, which ev_now() is, too.
 */

#ifndef COMMON_OS_MONO_H
#define COMMON_OS_MONO_H

#include <stdint.h>
#include <time.h>


static inline uint64_t
mono_ns(void)
{
    struct timespec  ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);

    return (uint64_t) ts.tv_sec * 1000000000 + (uint64_t) ts.tv_nsec;
}


static inline uint64_t
mono_us(void)
{
    return mono_ns() / 1000;
}


static inline uint64_t
mono_ms(void)
{
    return mono_ns() / 1000000;
}


#endif /* COMMON_OS_MONO_H */
