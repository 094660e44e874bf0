
/*
 * Counts the datagrams of a run and prints the number at its end;
 * t/fuzz/packets.py adds them up over many runs.
 */

#ifndef FUZZ_COUNT_H
#define FUZZ_COUNT_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>


static uint64_t  fuzz_ndatagrams;


static void
fuzz_say_count(void)
{
    fprintf(stderr, "%llu datagrams\n", (unsigned long long) fuzz_ndatagrams);
}


static inline void
fuzz_count(void)
{
    if (fuzz_ndatagrams++ == 0) {
        atexit(fuzz_say_count);
    }
}

#endif /* FUZZ_COUNT_H */
