
/*
 * The simulated engine's pace and faults: when a token comes, and what goes
 * wrong; the text is common/sim_token.h's.  No sockets, no clock, no random
 * source: times and chances are arguments, so that a test can choose them.
 */

#ifndef FAULTS_H
#define FAULTS_H

#include <stdint.h>


#define FAULTS_CATCH_UP_US  20000       /* lateness that is caught up whatever
                                           the delay */
#define FAULTS_NO_GATE      (-1)

typedef struct {
    int      reject_all;
    double   error_rate;                /* 0.0 .. 1.0 of new requests */
    int32_t  token_delay_ms;
    int32_t  first_token_delay_ms;      /* 0: like the others */
    int      stall;
    int32_t  die_after_tokens;          /* 0: never */
    int32_t  gate;                      /* index of the first token that is
                                           held back; FAULTS_NO_GATE */
} faults_t;


/* Whether a new request fails; chance is evenly distributed in [0, 1). */
int faults_reject(const faults_t *faults, double chance);

/* Time before the first or any further token. */
uint64_t faults_delay_us(const faults_t *faults, int is_first);

/*
 * The time from which the next token's delay counts, after a token that was due
 * at due_us and came at now_us.  It is due_us, so that a long stream does not
 * drift though each token is a little late; but now_us if the token is late by
 * a whole delay (and by FAULTS_CATCH_UP_US), so that a stall is not followed by
 * a burst.
 */
uint64_t faults_pace_us(uint64_t due_us, uint64_t now_us, uint64_t delay_us);

/*
 * Whether the token with this index has to wait until the faults change.  The
 * index counts in the whole stream, so a stream that continues at another
 * replica stops at the same token there.
 */
int faults_hold(const faults_t *faults, int32_t index);

/* Whether a fault ends a stream that has sent this many tokens. */
int faults_kill(const faults_t *faults, int64_t tokens);

/* NULL, or the name of the first field that is out of bounds. */
const char *faults_error(const faults_t *faults);

#endif /* FAULTS_H */
