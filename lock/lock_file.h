
/*
 * Whether a group has an active engine, by the kernel: an open file description
 * lock (fcntl(2), F_OFD_SETLK) on DIR/GROUP.lock.
 *
 * The engine takes a write lock on the whole file and keeps it until death;
 * its workers inherit the descriptor, so the lock ends with the last of them.
 * The service only looks.  The file is never removed.
 */

#ifndef LOCK_LOCK_FILE_H
#define LOCK_LOCK_FILE_H

#include "lock/machine.h"


/* The state of a lock file.  error: 0, or the errno because of which it counts
   as held. */
machine_file_t lock_file_state(const char *dir, const char *group,
    int *error);

#endif /* LOCK_LOCK_FILE_H */
