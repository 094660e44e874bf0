
/*
 * An interface that tests replace: the time, and one alarm.  Two
 * implementations, chosen when linking: net/clock_ev.c for the agent,
 * t/sim/stage/fake_net.c for tests.
 */

#ifndef CLOCK_H
#define CLOCK_H

#include <stdint.h>


typedef struct clock_source_s  clock_source_t;

typedef void (*clock_alarm_pt)(void *data);

/* The monotonic time; never 0. */
uint64_t clock_mono_us(clock_source_t *clock);

/* The time since 1970, as far as this machine knows. */
uint64_t clock_wall_us(clock_source_t *clock);

/*
 * Sets the alarm: on_alarm is called once at that monotonic time.  Replaces an
 * earlier alarm.  UINT64_MAX: no alarm.
 */
void clock_arm(clock_source_t *clock, uint64_t at_us, clock_alarm_pt on_alarm,
    void *data);

#endif /* CLOCK_H */
