
/*
 * The boot epoch: a number that is higher at every start of this member than
 * at all starts before.
 *
 * The wall clock in microseconds is such a number as long as it is not set
 * back; with a state directory the last epoch is also kept there, and the next
 * one is above both.
 */

#ifndef EPOCH_H
#define EPOCH_H

#include <stdint.h>


#define EPOCH_FILE         "epoch"      /* DIR/ID.epoch, state_file.h */
#define EPOCH_ERROR_BYTES  256

typedef enum {
    EPOCH_KEPT = 0,
    EPOCH_UNKEPT,       /* errno: the disk does not take it now */
    EPOCH_REFUSED       /* *error has a reason */
} epoch_rc_t;

/*
 * Draws the epoch of this start.  state_dir NULL: by the clock alone.  REFUSED:
 * the directory does not exist or we may not write in it, which is a mistake in
 * the configuration.  UNKEPT: the disk is full or broken; *epoch is valid, and
 * the caller has to write it later.
 *
 * An epoch that was kept and is so far ahead of the clock that other members
 * would refuse it is given up for the clock's time; *ahead_us is how far it was
 * ahead, else 0.
 */
epoch_rc_t epoch_next(const char *state_dir, const char *id, uint64_t wall_us,
    uint64_t *epoch, uint64_t *ahead_us, char *error);

#endif /* EPOCH_H */
