
/*
 * The writer's files: the lock beside the segment, and the segment itself,
 * which is opened or made here, written, and checked for damage.
 */

#ifndef LLMGW_MEMBERS_FILE_H
#define LLMGW_MEMBERS_FILE_H

#include "proto/members/lists.h"
#include "proto/members/table.h"


#define LLMGW_MEMBERS_MODE  0644    /* workers run under another user */

/*
 * Takes the writer's lock on PATH.lock.  Returns its descriptor, whose close()
 * releases the lock; or -1 and the reason, with the pid of the writer that
 * holds it.
 */
int llmgw_members_lock(const char *path, char *error);

/*
 * Opens the file at the path if a segment can be continued in it: it is a
 * regular file of our own with the right mode.  Returns a descriptor for
 * reading and writing, or -1.
 */
int llmgw_members_file_open(const char *path, off_t *file_bytes);

/*
 * Makes a whole new file from this head, table and lists, and renames it to the
 * path.  Returns its descriptor, or -1 and the reason; the path is then as it
 * was.
 */
int llmgw_members_file_make(const char *path,
    const llmgw_members_head_t *head, const llmgw_members_table_t *table,
    const llmgw_members_lists_t *lists, char *error);

/* Writes all bytes.  0, or -1 with errno. */
int llmgw_members_pwrite(int fd, const void *buf, size_t bytes, off_t at);

/* Write the head by one aligned write; and header, records and slots by two. */
int llmgw_members_head_write(int fd, const llmgw_members_head_t *head);
int llmgw_members_table_write(int fd, const llmgw_members_head_t *head,
    const llmgw_members_table_t *table);

/* Writes the k-th load record of the table in use, by one aligned write. */
int llmgw_members_slot_write(int fd, const llmgw_members_head_t *head,
    const llmgw_members_table_t *table, size_t k);

/* 1: the file has these bytes at this place. */
int llmgw_members_file_has(int fd, const void *what, size_t bytes, off_t at);

/*
 * Checks that the path still leads to the open file fd, and that this file has
 * all that was written.  NULL: both hold; otherwise a text that says what
 * happened to the file.
 */
const char *llmgw_members_file_loss(const char *path, int fd,
    const llmgw_members_head_t *head, const llmgw_members_table_t *table,
    const llmgw_members_lists_t *lists);

#endif /* LLMGW_MEMBERS_FILE_H */
