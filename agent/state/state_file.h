
/*
 * What a run of this agent leaves to the next: small texts, a file each,
 * DIR/ID.NAME in the directory of --state-dir.
 *
 * A file is replaced whole (written beside, synced, renamed, the directory
 * synced), so an agent or a machine that dies at any moment leaves the old
 * text or the new one.
 *
 *   ID.epoch     state/epoch.h
 *   ID.drain     drain_kept() of swim/order/drain.h; empty: not drained
 *   ID.version   what "{version}" was last ordered to be
 */

#ifndef STATE_FILE_H
#define STATE_FILE_H

#include <stddef.h>


/* The longest line that is kept, with a NUL. */
#define STATE_FILE_BYTES  128

/*
 * Reads the first line into text, of STATE_FILE_BYTES.  1; 0: there is no such
 * file, or dir is NULL; -1 and errno: the file cannot be read, or has no such
 * line (EINVAL).
 */
int state_file_read(const char *dir, const char *id, const char *name,
    char *text);

/* Replaces the file.  0, or -1 and errno.  Does nothing if dir is NULL. */
int state_file_write(const char *dir, const char *id, const char *name,
    const char *text);

#endif /* STATE_FILE_H */
