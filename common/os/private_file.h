
/*
 * Files with secrets: a key, a keyring.
 */

#ifndef COMMON_OS_PRIVATE_FILE_H
#define COMMON_OS_PRIVATE_FILE_H

#include <sys/stat.h>

/*
 * Whether its owner alone may use it.  Of a file that another user owns, root
 * for example, a group of this process may read it, too: it is given to this
 * user so, and Kubernetes gives a Secret in no other way (fsGroup).
 */
int private_file_is_closed(const struct stat *st);

#endif /* COMMON_OS_PRIVATE_FILE_H */
