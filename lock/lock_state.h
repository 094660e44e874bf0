
/*
 * What a run of the service leaves to the next: the state file.
 *
 * Two lines: a JSON object, and the XXH64 of the first line's bytes, 16 hex
 * digits.  A file that is torn or deleted costs no safety: an epoch is above
 * the wall clock and above what engines know, and the lock file tells whether
 * a group is active.  What is lost is which process to kill if that
 * engine hangs.
 */

#ifndef LOCK_KEPT_H
#define LOCK_KEPT_H

#include "lock/machine.h"


#define KEPT_ERROR_BYTES  256

typedef struct {
    uint64_t         epoch;         /* greatest that was given out */
    char             boot_id[64];   /* of the kernel that the pids are of */
    size_t           nholders;
    machine_claim_t  holders[MACHINE_GROUPS_MAX];   /* can_be_killed, timeout:
                                                       not kept */
} kept_t;

typedef enum {
    KEPT_OK = 0,
    KEPT_MISSING,
    KEPT_TORN           /* no such file, a checksum that does not fit, ... */
} kept_rc_t;

/*
 * The file is one service's: another one would take its holders for lost, and
 * kill them.  Takes PATH.owner for as long as the descriptor is open; -1:
 * another process has it.  -2: not to be had, and neither is the file.
 */
int kept_own(const char *path);

/* kept is zeroed unless KEPT_OK.  error says why it is KEPT_TORN. */
kept_rc_t kept_read(const char *path, kept_t *kept, char *error);

/* 0, or -1 and errno. */
int kept_write(const char *path, const kept_t *kept);

/* What of the machine is kept. */
void kept_of_machine(kept_t *kept, const machine_t *m, const char *boot_id);

#endif /* LOCK_KEPT_H */
