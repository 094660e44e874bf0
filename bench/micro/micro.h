
/*
 * What the micro-benchmarks share: a clock, and the least time of several
 * rounds, which is the code's cost without the noise of the machine.
 */

#ifndef MICRO_H
#define MICRO_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>


#define MICRO_ROUNDS  9

/*
 * Runs the code n times.  The result must depend on every run, so that none is
 * optimized away.
 */
typedef uint64_t (*micro_pt)(void *data, size_t n);


static inline double
micro_now_ns(void)
{
    struct timespec  ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);

    return (double) ts.tv_sec * 1e9 + (double) ts.tv_nsec;
}


static inline void *
micro_must(void *p)
{
    if (p == NULL) {
        fprintf(stderr, "failed\n");
        exit(1);
    }

    return p;
}


/* Prints one line: the name, and the ns of one run. */
static inline void
micro_measure(const char *what, micro_pt run, void *data, size_t n)
{
    int                round;
    double             start, took, least;
    static uint64_t    sum;

    least = 0;

    for (round = 0; round < MICRO_ROUNDS; round++) {
        start = micro_now_ns();
        sum += run(data, n);
        took = micro_now_ns() - start;

        if (round == 0 || took < least) {
            least = took;
        }
    }

    __asm__ volatile ("" : : "r" (sum));
    printf("%-44s %10.1f ns\n", what, least / (double) n);
}

#endif /* MICRO_H */
