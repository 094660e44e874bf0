
/*
 * The reader's algorithm: a whole, checked copy of the segment out of an open
 * file (steps 1 to 6 in members.h).
 *
 * It is apart from the reader because the writer needs it too: it continues a
 * predecessor's segment, and checks it like a reader does. Nothing here depends
 * on timing.  A copy whose checks are right is a view that was once published;
 * anything else is fetched again or refused.
 */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "proto/members/layout.h"


/*
 * Each bound is far above what a living writer causes (a head is torn for some
 * ns, a buffer is overtaken by two publishes within one copy), and small
 * enough that a worker of nginx never stays here: 16 heads are some 5 us.
 */
#define HEAD_TRIES    16
#define VIEW_TRIES    8
#define DAMAGE_TRIES  2
#define SLOT_TRIES    4
#define LIST_TRIES    4

#define SLOTS_AT_ONCE  256      /* 16 KiB of stack */


static llmgw_members_rc_t
refuse(char *error, const char *reason)
{
    snprintf(error, LLMGW_MEMBERS_ERROR_BYTES, "no members segment: %s",
             reason);
    return LLMGW_MEMBERS_REFUSED;
}


/* Explains why pread() gave less than everything. */
static llmgw_members_rc_t
short_read(int rc, char *error)
{
    if (rc == 0) {
        return refuse(error, "it is truncated");
    }

    snprintf(error, LLMGW_MEMBERS_ERROR_BYTES,
             "reading the members segment failed (%d: %s)", errno,
             strerror(errno));
    return LLMGW_MEMBERS_ESYSTEM;
}


llmgw_members_rc_t
llmgw_members_head_read(int fd, off_t file_bytes, llmgw_members_head_t *head,
    char *error)
{
    int                   rc, tries;
    const char           *reason;
    llmgw_members_head_t  copy;

    for (tries = 0; tries < HEAD_TRIES; tries++) {
        rc = llmgw_members_pread(fd, &copy, sizeof(copy), 0);
        if (rc != 1) {
            return short_read(rc, error);
        }

        /* before the check, which another layout may have elsewhere */
        reason = llmgw_members_head_reason(&copy, file_bytes);

        if (reason == NULL && llmgw_members_head_is_sealed(&copy)) {
            *head = copy;
            return LLMGW_MEMBERS_DONE;
        }
    }

    return refuse(error, reason ? reason : "its head is damaged");
}


static llmgw_members_rc_t
slot_read_again(int fd, off_t at, const char *id, llmgw_member_load_t *load)
{
    int                   tries;
    llmgw_members_slot_t  slot;

    for (tries = 0; tries < SLOT_TRIES; tries++) {
        if (llmgw_members_pread(fd, &slot, sizeof(slot), at) != 1) {
            return LLMGW_MEMBERS_REFUSED;
        }

        if (llmgw_members_slot_decode(&slot, id, load)) {
            break;
        }
    }

    return LLMGW_MEMBERS_DONE;
}


llmgw_members_rc_t
llmgw_members_slots_read(int fd, const llmgw_members_head_t *head,
    const llmgw_member_t *members, llmgw_member_load_t *loads, size_t n)
{
    off_t                 at;
    size_t                i, k, some;
    llmgw_members_slot_t  slots[SLOTS_AT_ONCE];

    at = llmgw_members_slots_at(head, head->sequence);

    for (i = 0; i < n; i += some) {
        some = n - i < SLOTS_AT_ONCE ? n - i : SLOTS_AT_ONCE;

        if (llmgw_members_pread(fd, slots, some * sizeof(slots[0]), at) != 1) {
            return LLMGW_MEMBERS_REFUSED;
        }

        for (k = 0; k < some; k++, at += (off_t) sizeof(slots[0])) {
            if (!llmgw_members_slot_decode(&slots[k], members[i + k].id,
                                           &loads[i + k])
                && slot_read_again(fd, at, members[i + k].id, &loads[i + k])
                   != LLMGW_MEMBERS_DONE)
            {
                return LLMGW_MEMBERS_REFUSED;
            }
        }
    }

    return LLMGW_MEMBERS_DONE;
}


/* Makes room in both arrays, or in neither; their old contents may be lost. */
static llmgw_members_rc_t
view_reserve(llmgw_members_view_t *view, size_t n, char *error)
{
    llmgw_member_t       *members;
    llmgw_member_load_t  *loads;

    if (n <= view->capacity) {
        return LLMGW_MEMBERS_DONE;
    }

    members = malloc(n * sizeof(llmgw_member_t));
    loads = malloc(n * sizeof(llmgw_member_load_t));

    if (members == NULL || loads == NULL) {
        free(members);
        free(loads);
        snprintf(error, LLMGW_MEMBERS_ERROR_BYTES,
                 "no memory for %zu members", n);
        errno = ENOMEM;
        return LLMGW_MEMBERS_ESYSTEM;
    }

    free(view->members);
    free(view->loads);
    view->members = members;
    view->loads = loads;
    view->capacity = n;

    return LLMGW_MEMBERS_DONE;
}


/* Step 6: the writer was faster, or the file is damaged. */
static llmgw_members_rc_t
busy_or_damaged(int fd, off_t file_bytes, const llmgw_members_head_t *head,
    char *error)
{
    llmgw_members_rc_t    rc;
    llmgw_members_head_t  now;

    rc = llmgw_members_head_read(fd, file_bytes, &now, error);
    if (rc != LLMGW_MEMBERS_DONE) {
        return rc;
    }

    if (now.sequence != head->sequence) {
        snprintf(error, LLMGW_MEMBERS_ERROR_BYTES,
                 "the members segment changes faster than it can be read");
        return LLMGW_MEMBERS_BUSY;
    }

    return refuse(error, "its table is damaged");
}


static llmgw_members_rc_t
table_check(const llmgw_members_buffer_t *buffer,
    const llmgw_member_t *records, const llmgw_members_view_t *known,
    char *error)
{
    size_t       where;
    const char  *reason;

    reason = llmgw_members_table_reason(records, buffer->count, known,
                                        &where);
    if (reason == NULL) {
        return LLMGW_MEMBERS_DONE;
    }

    snprintf(error, LLMGW_MEMBERS_ERROR_BYTES,
             "no members segment: record %zu has %s", where, reason);
    return LLMGW_MEMBERS_REFUSED;
}


/*
 * Step 3.  If the file's records are longer, their unknown fields are cut off.
 */
static llmgw_members_rc_t
records_read(int fd, off_t at, const llmgw_members_head_t *head,
    const llmgw_members_buffer_t *buffer, llmgw_members_view_t *view,
    char *error)
{
    int                 rc;
    size_t              i, bytes, one;
    llmgw_members_rc_t  reserved;

    one = head->record_bytes;
    bytes = buffer->count * one;

    reserved = view_reserve(view, (bytes + sizeof(llmgw_member_t) - 1)
                                  / sizeof(llmgw_member_t), error);
    if (reserved != LLMGW_MEMBERS_DONE) {
        return reserved;
    }

    rc = llmgw_members_pread(fd, view->members, bytes, at);
    if (rc != 1) {
        return short_read(rc, error);
    }

    if (!llmgw_members_records_are_sealed(buffer, view->members, one)) {
        return LLMGW_MEMBERS_BUSY;
    }

    for (i = 1; one > sizeof(llmgw_member_t) && i < buffer->count; i++) {
        memmove(&view->members[i], (char *) view->members + i * one,
                sizeof(llmgw_member_t));
    }

    return LLMGW_MEMBERS_DONE;
}


/* Steps 2 and 3. */
static llmgw_members_rc_t
table_read(int fd, off_t file_bytes, const llmgw_members_head_t *head,
    llmgw_members_buffer_t *buffer, llmgw_members_view_t *view, char *error)
{
    int                 rc;
    off_t               at;
    llmgw_members_rc_t  read;

    at = llmgw_members_buffer_at(head, head->sequence);

    rc = llmgw_members_pread(fd, buffer, sizeof(*buffer), at);
    if (rc != 1) {
        return short_read(rc, error);
    }

    if (!llmgw_members_buffer_is_sealed(buffer)
        || buffer->sequence != head->sequence
        || buffer->generation != head->generation)
    {
        return busy_or_damaged(fd, file_bytes, head, error);
    }

    if (buffer->count > head->capacity
        || (buffer->flags & ~LLMGW_MEMBERS_ISOLATED) != 0)
    {
        return refuse(error, "its table's header is out of range");
    }

    read = records_read(fd, at + (off_t) sizeof(*buffer), head, buffer, view,
                        error);

    return read == LLMGW_MEMBERS_BUSY
           ? busy_or_damaged(fd, file_bytes, head, error) : read;
}


static llmgw_members_rc_t
fetch_once(int fd, off_t file_bytes, llmgw_members_head_t *head,
    llmgw_members_view_t *view, const llmgw_members_view_t *known, char *error)
{
    llmgw_members_rc_t      rc;
    llmgw_members_buffer_t  buffer;

    rc = llmgw_members_head_read(fd, file_bytes, head, error);
    if (rc != LLMGW_MEMBERS_DONE) {
        return rc;
    }

    rc = table_read(fd, file_bytes, head, &buffer, view, error);
    if (rc != LLMGW_MEMBERS_DONE) {
        return rc;
    }

    rc = table_check(&buffer, view->members, known, error);
    if (rc != LLMGW_MEMBERS_DONE) {
        return rc;
    }

    if (buffer.count > 0) {
        memset(view->loads, 0, buffer.count * sizeof(llmgw_member_load_t));
    }

    if (llmgw_members_slots_read(fd, head, view->members, view->loads,
                                 buffer.count)
        != LLMGW_MEMBERS_DONE)
    {
        return refuse(error, "its load slots are truncated");
    }

    view->generation = head->generation;
    view->heartbeat_ms = head->heartbeat_ms;
    view->n = buffer.count;
    view->isolated = (buffer.flags & LLMGW_MEMBERS_ISOLATED) != 0;

    return LLMGW_MEMBERS_DONE;
}


llmgw_members_rc_t
llmgw_members_fetch(int fd, off_t file_bytes, llmgw_members_head_t *head,
    llmgw_members_view_t *view, const llmgw_members_view_t *known, char *error)
{
    int                   tries, refused;
    llmgw_members_rc_t    rc;
    llmgw_members_head_t  copy;

    refused = 0;
    rc = LLMGW_MEMBERS_BUSY;

    for (tries = 0; tries < VIEW_TRIES && refused < DAMAGE_TRIES; tries++) {
        rc = fetch_once(fd, file_bytes, &copy, view, known, error);

        if (rc == LLMGW_MEMBERS_DONE) {
            *head = copy;
            return rc;
        }

        if (rc == LLMGW_MEMBERS_ESYSTEM) {
            return rc;
        }

        refused += rc == LLMGW_MEMBERS_REFUSED;
    }

    return rc;
}


llmgw_members_rc_t
llmgw_members_list_fetch(int fd, const llmgw_members_head_t *head,
    uint64_t list, char *names, size_t *bytes)
{
    int                        tries;
    size_t                     n;
    ssize_t                    i;
    llmgw_members_directory_t  directory;

    for (tries = 0; tries < LIST_TRIES; tries++) {
        if (llmgw_members_pread(fd, &directory, sizeof(directory),
                                llmgw_members_directory_at(head))
            != 1)
        {
            return LLMGW_MEMBERS_REFUSED;
        }

        i = llmgw_members_directory_find(&directory, list);
        if (i == -1) {
            break;
        }

        n = directory.entries[i].bytes;

        if (n > LLMGW_MEMBERS_LIST_BYTES
            || llmgw_members_pread(fd, names, n,
                                   llmgw_members_list_at(head, i)) != 1)
        {
            return LLMGW_MEMBERS_REFUSED;
        }

        if (llmgw_members_list_hash(names, n) == list) {
            *bytes = n;
            return llmgw_members_list_is_valid(names, n)
                   ? LLMGW_MEMBERS_DONE : LLMGW_MEMBERS_REFUSED;
        }
    }

    return LLMGW_MEMBERS_ABSENT;
}
