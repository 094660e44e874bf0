
/*
 * The folder of an engine, for its user alone: DIR/llmgw-engine-ID.
 *
 *   lock    locked by the adapter and its keepers: as long as it is locked,
 *           processes of the engine may be left, and no other adapter starts
 *           one
 *   took    what the engine took on each device, for the adapter's next run
 *   http    the socket of an engine that listens on one
 *
 * DIR is the first of $RUNTIME_DIRECTORY (a unit's), $XDG_RUNTIME_DIR and /tmp.
 */

#ifndef FOLDER_H
#define FOLDER_H

#include <stdint.h>


#define FOLDER_BYTES        256
#define FOLDER_PATH_BYTES   (FOLDER_BYTES + 16)
#define FOLDER_ERROR_BYTES  384

/* Limit of a unix socket's path, with its NUL. */
#define FOLDER_SOCKET_BYTES  108

typedef struct {
    char  path[FOLDER_BYTES];
    int   lock_fd;                      /* -1: not open */
} folder_t;


/* 0, or -1 and an error in one line. */
int folder_open(folder_t *folder, const char *id,
    char error[FOLDER_ERROR_BYTES]);
void folder_close(folder_t *folder);

/* Locks the folder.  0, or -1: an earlier run's keepers, or another adapter,
   hold the lock. */
int folder_lock(folder_t *folder);

/* Makes the path of the engine's socket, and removes an old one there.  0, or
   -1: the path would be too long. */
int folder_socket(const folder_t *folder, char path[FOLDER_SOCKET_BYTES]);

/*
 * Read and write a number for each device.  They are stored with the command,
 * since another command may take less: read with another one, or unreadable,
 * they are 0.  A failed write is ignored.
 */
void folder_read(const folder_t *folder, const char *command,
    uint64_t *bytes, int count);
void folder_write(const folder_t *folder, const char *command,
    const uint64_t *bytes, int count);

#endif /* FOLDER_H */
