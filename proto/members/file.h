
/*
 * The writer's files: the lock beside the segment, and the segment itself as
 * something that is opened, made whole, and looked after.
 */

#ifndef LLMGW_MEMBERS_FILE_H
#define LLMGW_MEMBERS_FILE_H

#include "proto/members/lists.h"
#include "proto/members/table.h"


#define LLMGW_MEMBERS_MODE  0644    /* workers run under another user */

/*
 * Takes the writer's lock on PATH.lock: its descriptor, or -1 and the reason,
 * with the pid of the writer that has it.  close() gives it back.
 */
int llmgw_members_lock(const char *path, char *error);

/*
 * Opens what lies at the path, if a segment can be continued in it: a regular
 * file of our own with the right mode.  A descriptor for reading and writing,
 * or -1.
 */
int llmgw_members_file_open(const char *path, off_t *file_bytes);

/*
 * Makes a whole new file of this head, table and lists and renames it to the
 * path.  A descriptor, or -1 and the reason, and the path is as it was.
 */
int llmgw_members_file_make(const char *path,
    const llmgw_members_head_t *head, const llmgw_members_table_t *table,
    const llmgw_members_lists_t *lists, char *error);

/* All the bytes.  0, or -1 with errno. */
int llmgw_members_pwrite(int fd, const void *buf, size_t bytes, off_t at);

/* The head, in one aligned write; header, records and slots, in two. */
int llmgw_members_head_write(int fd, const llmgw_members_head_t *head);
int llmgw_members_table_write(int fd, const llmgw_members_head_t *head,
    const llmgw_members_table_t *table);

/* The k-th load record of the table in use, in one aligned write. */
int llmgw_members_slot_write(int fd, const llmgw_members_head_t *head,
    const llmgw_members_table_t *table, size_t k);

/* These bytes stand at this place. */
int llmgw_members_file_has(int fd, const void *what, size_t bytes, off_t at);

/*
 * NULL if the path is the open file and has all that was written; otherwise a
 * text that says what happened to it.
 */
const char *llmgw_members_file_loss(const char *path, int fd,
    const llmgw_members_head_t *head, const llmgw_members_table_t *table,
    const llmgw_members_lists_t *lists);

#endif /* LLMGW_MEMBERS_FILE_H */
