
/*
 * The second key: a write lock on GROUP.lock beside the lock service's socket.
 *
 * The service decides which engine is next, and this lock proves that an engine
 * is active.  It belongs to the open file description (F_OFD_SETLK), so it ends
 * with the last process that has the descriptor: workers inherit it.  The file
 * is never removed.  If the file were removed, two engines could hold two
 * files; so the path must continue to lead to the locked file.
 *
 * Each engine that can connect to the service can lock the file: it has the
 * mode 0660 and the group of the socket.
 */

#ifndef KEY_FILE_H
#define KEY_FILE_H

#include <limits.h>
#include <stddef.h>


#define KEY_FILE_ERROR_BYTES  (PATH_MAX + 128)

typedef struct {
    int          fd;            /* -1: not held */
    const char  *socket;
    char         path[PATH_MAX];
} key_file_t;


/* Makes the path, and touches no file.  socket: the service's, which lives as
   long as this.  0, or -1: the path would be too long. */
int key_file_init(key_file_t *file, const char *socket, const char *group);

/*
 * Whether this process may create and lock such a file.  Does not create it: a
 * missing file shows the service that no engine held it.  0, or -1 and a
 * reason.
 */
int key_file_check(key_file_t *file, char *error);

/* Locks the file, without waiting.  0, or -1 and a reason
   (KEY_FILE_ERROR_BYTES). */
int key_file_take(key_file_t *file, char *error);

/* Whether the path still leads to the file that this process has locked. */
int key_file_is_ours(const key_file_t *file);

#endif /* KEY_FILE_H */
