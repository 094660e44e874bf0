
/*
 * The boot epoch: a number that is higher at every start of this member than
 * at all starts before.
 *
 * The wall clock in microseconds is that by itself while it is not set back;
 * with a state directory the last epoch is kept there too, and the next is
 * above both.
 */

#ifndef EPOCH_H
#define EPOCH_H

#include <stdint.h>


#define EPOCH_FILE         "epoch"      /* DIR/ID.epoch, state_file.h */
#define EPOCH_ERROR_BYTES  256

typedef enum {
    EPOCH_KEPT = 0,
    EPOCH_UNKEPT,       /* errno: the disk does not take it just now */
    EPOCH_REFUSED       /* a reason is in error */
} epoch_rc_t;

/*
 * state_dir NULL: the clock alone.  Refused where the directory is not there
 * or not ours to write in, which is a mistake in the configuration.  A full or
 * broken disk is none: *epoch is good, and the caller sees to it that it is
 * written later.
 *
 * An epoch that was kept and is so far ahead of the clock that other members
 * would refuse it is given up for the clock's time; *ahead_us is by how much
 * it was, else 0.
 */
epoch_rc_t epoch_next(const char *state_dir, const char *id, uint64_t wall_us,
    uint64_t *epoch, uint64_t *ahead_us, char *error);

#endif /* EPOCH_H */
