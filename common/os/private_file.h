
/*
 * Files with secrets: a key, a keyring.
 */

#ifndef COMMON_OS_PRIVATE_FILE_H
#define COMMON_OS_PRIVATE_FILE_H

#include <stdio.h>
#include <sys/stat.h>

#define PRIVATE_FILE_WHY_BYTES  128

/*
 * Whether its owner alone may use it.  If another user owns the file, root for
 * example, a group of this process may read it, too: this is how it is given to
 * this user, and how Kubernetes provides a Secret (fsGroup).
 */
int private_file_is_closed(const struct stat *st);

/*
 * Opens such a file to be read.  It must be a regular one (a FIFO is not waited
 * for), and closed to others.  NULL: why says, without the path, what is wrong.
 */
FILE *private_file_open(const char *path, char why[PRIVATE_FILE_WHY_BYTES]);

#endif /* COMMON_OS_PRIVATE_FILE_H */
