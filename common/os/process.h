
/* Facts about a process, from /proc. */

#ifndef PROCESS_H
#define PROCESS_H

#include <stdint.h>
#include <sys/types.h>


/*
 * When the process began, in clock ticks since boot: by its number alone it
 * could be mistaken for a later process.  0: there is no such process, or its
 * file could not be read, for example for want of descriptors.
 */
uint64_t process_start_ticks(pid_t pid);

/* The number of the process's parent; 0: as above. */
pid_t process_parent(pid_t pid);

/*
 * 1: the process that had that number and began then is certainly dead.  A
 * start time that could not be read, now or then, proves nothing.
 */
int process_is_dead(pid_t pid, uint64_t started);

#endif /* PROCESS_H */
