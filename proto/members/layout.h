
/*
 * The members segment as it lies in the file (see members.h for what it is
 * and why), and the checks that both sides make of it.  Not for users of the
 * segment: those include members.h.
 */

#ifndef LLMGW_MEMBERS_LAYOUT_H
#define LLMGW_MEMBERS_LAYOUT_H

#include <sys/types.h>

#include "proto/members/members.h"


#define LLMGW_MEMBERS_MAGIC         "LLMGWMBR"
#define LLMGW_MEMBERS_MAGIC_BYTES   8

#define LLMGW_MEMBERS_HEAD_BYTES    4096    /* the head's page */
#define LLMGW_MEMBERS_PAGE_BYTES    4096

#define LLMGW_MEMBERS_ISOLATED      1u      /* flags of a buffer */

#define LLMGW_MEMBERS_LAYOUT            2
#define LLMGW_MEMBERS_RECORD_MAX_BYTES  1024

typedef struct {
    char      magic[LLMGW_MEMBERS_MAGIC_BYTES];
    uint32_t  layout;
    uint32_t  capacity;
    uint64_t  generation;
    uint64_t  sequence;
    uint64_t  heartbeat_ms;
    uint32_t  record_bytes;
    uint8_t   reserved[12];
    uint64_t  check;
} llmgw_members_head_t;

typedef struct {
    uint64_t  sequence;
    uint64_t  generation;
    uint32_t  count;
    uint32_t  flags;
    uint64_t  records_check;
    uint8_t   reserved[24];
    uint64_t  check;
} llmgw_members_buffer_t;

/* A load record. */
typedef struct {
    uint64_t             reported_ms;
    uint32_t             active_requests;
    llmgw_engine_load_t  engine;
    uint8_t              reserved[28];
    uint32_t             check;
} llmgw_members_slot_t;

/* An entry of the directory: one place of the names area. */
typedef struct {
    uint64_t  list;
    uint32_t  bytes;
    uint32_t  reserved;
} llmgw_members_entry_t;

typedef struct {
    llmgw_members_entry_t  entries[LLMGW_MEMBERS_LISTS];
} llmgw_members_directory_t;


/* Fills a head of this capacity; generation, sequence and heartbeat are 0. */
void llmgw_members_head_init(llmgw_members_head_t *head, uint32_t capacity);

/*
 * Size of, and places in, a file with this head; the sequence tells which
 * buffer.
 */
off_t llmgw_members_file_bytes(const llmgw_members_head_t *head);
off_t llmgw_members_buffer_at(const llmgw_members_head_t *head,
    uint64_t sequence);
off_t llmgw_members_slots_at(const llmgw_members_head_t *head,
    uint64_t sequence);
off_t llmgw_members_directory_at(const llmgw_members_head_t *head);
off_t llmgw_members_list_at(const llmgw_members_head_t *head, size_t place);

/* Write the checks, or return whether they are right. */
void llmgw_members_head_seal(llmgw_members_head_t *head);
int llmgw_members_head_is_sealed(const llmgw_members_head_t *head);
void llmgw_members_buffer_seal(llmgw_members_buffer_t *buffer,
    const void *records, size_t record_bytes);
int llmgw_members_buffer_is_sealed(const llmgw_members_buffer_t *buffer);
int llmgw_members_records_are_sealed(const llmgw_members_buffer_t *buffer,
    const void *records, size_t record_bytes);

/*
 * Fills a load record.  Its check depends on the member's id, so it is valid
 * for no other member.
 */
void llmgw_members_slot_encode(llmgw_members_slot_t *slot, const char *id,
    const llmgw_member_load_t *load);

/*
 * Reads a load record.  0: it is not a whole one of this id, and *load is
 * unchanged.
 */
int llmgw_members_slot_decode(const llmgw_members_slot_t *slot, const char *id,
    llmgw_member_load_t *load);

/*
 * Checks everything in a head but its check, for a file of this size.  NULL: it
 * is right; otherwise the reason in words.
 */
const char *llmgw_members_head_reason(const llmgw_members_head_t *head,
    off_t file_bytes);

/*
 * The same for a table: every field of each record (llmgw_member_reason()), and
 * ids that strictly ascend.  A record that stands in `known`, an ascending
 * table that was checked before, byte by byte the same, is not checked again;
 * NULL: none is known.
 */
const char *llmgw_members_table_reason(const llmgw_member_t *records,
    size_t n, const llmgw_members_view_t *known, size_t *where);


/*
 * Reads exactly that many bytes, in several calls if need be.  1; 0: the file
 * ends before; -1: errno.
 */
int llmgw_members_pread(int fd, void *buf, size_t bytes, off_t at);

/*
 * Copies a whole checked view of an open file (the reader's algorithm, steps 1
 * to 6).  DONE: *head is the head of that view; REFUSED, BUSY and ESYSTEM leave
 * head alone and the view's arrays in any state.  known: another view, fetched
 * before, or NULL.
 */
llmgw_members_rc_t llmgw_members_fetch(int fd, off_t file_bytes,
    llmgw_members_head_t *head, llmgw_members_view_t *view,
    const llmgw_members_view_t *known, char *error);

/* Step 1 alone, DONE or REFUSED. */
llmgw_members_rc_t llmgw_members_head_read(int fd, off_t file_bytes,
    llmgw_members_head_t *head, char *error);

/*
 * Copies a list out of an open file.  DONE; ABSENT; REFUSED: the bytes with
 * this hash are not a list; ESYSTEM.
 */
llmgw_members_rc_t llmgw_members_list_fetch(int fd,
    const llmgw_members_head_t *head, uint64_t list, char *names,
    size_t *bytes);

/*
 * Step 5 alone, for n records in the buffer (sequence mod 2).  Where a slot
 * stays torn, the load is unchanged.
 */
llmgw_members_rc_t llmgw_members_slots_read(int fd,
    const llmgw_members_head_t *head, const llmgw_member_t *members,
    llmgw_member_load_t *loads, size_t n);

/* The place of a list; -1: it is not in the directory. */
ssize_t llmgw_members_directory_find(
    const llmgw_members_directory_t *directory, uint64_t list);

/* Writes 'CALL("PATH") failed (N: TEXT)' about errno, which is unchanged. */
void llmgw_members_system_error(const char *call, const char *path,
    char *error);

#endif /* LLMGW_MEMBERS_LAYOUT_H */
