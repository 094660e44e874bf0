
/*
 * A small file that is replaced whole: written beside, synced, renamed, and
 * the directory synced.  A process or a machine that dies at any moment leaves
 * the old content or the new one.
 */

#ifndef ATOMIC_FILE_H
#define ATOMIC_FILE_H

#include <stddef.h>


/* Replaces the file.  0; or -1 and errno, and the file is unchanged. */
int atomic_file_write(const char *path, const char *content, size_t len);

/*
 * For other ways to replace a file: writes everything, and syncs.  0; -1:
 * errno.
 */
int atomic_file_put(int fd, const char *content, size_t len);

/*
 * To be called after a rename, which a power failure could undo without this.
 */
void atomic_file_sync_dir(const char *path);

#endif /* ATOMIC_FILE_H */
