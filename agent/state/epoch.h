
/*
 * Which start of this member this is: a number higher than at every start
 * before.
 *
 * The wall clock in microseconds is that by itself while nobody sets it back;
 * with a state directory the last epoch is kept there too, and the next is
 * above both.
 */

#ifndef EPOCH_H
#define EPOCH_H

#include <stdint.h>


#define EPOCH_ERROR_BYTES  256

/*
 * state_dir NULL: the clock alone.  The file is DIR/ID.epoch, replaced whole.
 * 0, or -1 and a reason in error: also where the epoch kept is so far ahead
 * of the clock that other members would refuse it.
 */
int epoch_next(const char *state_dir, const char *id, uint64_t wall_us,
    uint64_t *epoch, char *error);

#endif /* EPOCH_H */
