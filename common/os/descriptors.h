
/*
 * How many descriptors this process may have.
 */

#ifndef COMMON_OS_DESCRIPTORS_H
#define COMMON_OS_DESCRIPTORS_H

/* As many as the system grants: one goes with each connection. */
void descriptors_raise(void);

#endif /* COMMON_OS_DESCRIPTORS_H */
