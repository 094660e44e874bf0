
/* The number of descriptors that this process may have. */

#ifndef COMMON_OS_DESCRIPTORS_H
#define COMMON_OS_DESCRIPTORS_H

/* Raises it as far as the system allows: each connection takes one. */
void descriptors_raise(void);

#endif /* COMMON_OS_DESCRIPTORS_H */
