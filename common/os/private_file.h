
/*
 * Files with secrets: a key, a keyring.
 */

#ifndef COMMON_OS_PRIVATE_FILE_H
#define COMMON_OS_PRIVATE_FILE_H

#include <stdio.h>
#include <sys/stat.h>

#define PRIVATE_FILE_WHY_BYTES  128

/*
 * Whether only its owner may use the file.  If another user owns it, root for
 * example, a group of this process may read it, too: so a file can be given to
 * this user, and so Kubernetes provides a Secret (fsGroup).
 */
int private_file_is_closed(const struct stat *st);

/*
 * Opens a private file for reading.  It must be a regular file (a FIFO is not
 * waited for), and closed to others.  NULL: why says what is wrong, without the
 * path.
 */
FILE *private_file_open(const char *path, char why[PRIVATE_FILE_WHY_BYTES]);

#endif /* COMMON_OS_PRIVATE_FILE_H */
