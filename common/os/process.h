
/* What /proc tells of a process. */

#ifndef PROCESS_H
#define PROCESS_H

#include <stdint.h>
#include <sys/types.h>


/*
 * When it began, in clock ticks since boot: its number alone may have been
 * given to another process meanwhile.  0: there is no such process, or its file
 * could not be read, as descriptors may be used up.
 */
uint64_t process_start_ticks(pid_t pid);

#endif /* PROCESS_H */
