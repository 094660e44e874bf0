
/*
 * The state file of the lock service, which survives its restart.
 *
 * Two lines: a JSON object, and the XXH64 of the first line's bytes as 16 hex
 * digits.  A torn or missing file costs no safety: a new epoch is above the
 * wall clock and above every epoch that engines know, and the lock file shows
 * whether a group has an active engine.  Only the processes of the holder are
 * lost, so that the service cannot kill it if it hangs.
 */

#ifndef LOCK_STATE_H
#define LOCK_STATE_H

#include "lock/machine.h"


#define LOCK_STATE_ERROR_BYTES  256

typedef struct {
    uint64_t         epoch;         /* greatest that was granted */
    char             boot_id[64];   /* of the boot in which the pids are
                                       valid */
    size_t           nholders;
    machine_claim_t  holders[MACHINE_GROUPS_MAX];   /* without can_be_killed
                                                       and timeout */
} lock_state_t;

typedef enum {
    LOCK_STATE_OK = 0,
    LOCK_STATE_MISSING,
    LOCK_STATE_TORN         /* unreadable, or its checksum does not match */
} lock_state_rc_t;

/*
 * Locks PATH.owner as long as the returned descriptor is open, since a second
 * service with the same file would take its holders for lost and kill them.
 * -1: another process has it.  -2: the owner file cannot be created, so the
 * state file cannot be written either.
 */
int lock_state_own(const char *path);

/* state is zeroed unless LOCK_STATE_OK.  error: why it is LOCK_STATE_TORN. */
lock_state_rc_t lock_state_read(const char *path, lock_state_t *state,
    char *error);

/* 0, or -1 and errno. */
int lock_state_write(const char *path, const lock_state_t *state);

/* Copies the part of the machine's state that is written. */
void lock_state_of_machine(lock_state_t *state, const machine_t *m,
    const char *boot_id);

#endif /* LOCK_STATE_H */
