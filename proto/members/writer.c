
/*
 * The writer of the members segment: two tables in memory, the one in use and
 * the next one, as there are two buffers in the file.  Until the next one is
 * begun, its memory has the table before, so that the changes of a publish can
 * be found.
 *
 * A publish builds the next table, decides whether it routes differently from
 * the one in use, writes it into the buffer not in use, and flips the head
 * (members.h tells why a crash anywhere leaves a whole view).  Only when the
 * head is written do the two tables change roles here, too; a failed publish
 * has changed nothing, and the next one starts again.
 *
 * The heartbeat compares the file with the tables in memory, and creates a new
 * file from them if the old one was removed or damaged.
 */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "proto/members/file.h"


struct llmgw_members_writer_s {
    char                  *path;        /* NULL: no file */
    int                    lock;        /* -1: not held */
    int                    fd;          /* -1: none yet */
    llmgw_members_head_t   head;        /* as it stands in the file */
    llmgw_members_table_t  current;     /* as it stands in the buffer in use */
    llmgw_members_table_t  next;        /* being built, or the one before
                                           `current` */
    llmgw_members_lists_t  lists;
};


/*
 * Greater than the last generation known, or a start that no writer has used.
 */
static uint64_t
generation_after(uint64_t generation)
{
    struct timespec  now;

    if (generation != 0 && generation != UINT64_MAX) {
        return generation + 1;
    }

    clock_gettime(CLOCK_REALTIME, &now);

    return (uint64_t) now.tv_sec * 1000000 + (uint64_t) now.tv_nsec / 1000;
}


/*
 * The generation of the file at the path, if it can be found: the file is
 * another writer's segment, or one whose table is damaged and whose head is
 * not.
 */
static uint64_t
generation_found(const char *path)
{
    int                   fd;
    off_t                 file_bytes;
    char                  error[LLMGW_MEMBERS_ERROR_BYTES];
    llmgw_members_head_t  head = { .generation = 0 };

    fd = llmgw_members_file_open(path, &file_bytes);
    if (fd == -1) {
        return 0;
    }

    (void) llmgw_members_head_read(fd, file_bytes, &head, error);
    close(fd);

    return head.generation;
}


/* Writes a new file from memory, replacing whatever is there. */
static llmgw_members_rc_t
segment_make(llmgw_members_writer_t *w, char *error)
{
    int                      fd;
    uint64_t                 found;
    llmgw_members_head_t     head;
    llmgw_members_buffer_t  *table;

    found = generation_found(w->path);

    head = w->head;
    head.sequence++;
    head.generation = generation_after(found > head.generation
                                       ? found : head.generation);
    llmgw_members_head_seal(&head);

    table = w->current.header;
    llmgw_members_table_seal(&w->current, &head, table->count, table->flags);

    fd = llmgw_members_file_make(w->path, &head, &w->current, &w->lists, error);
    if (fd == -1) {
        llmgw_members_table_seal(&w->current, &w->head, table->count,
                                 table->flags);
        return LLMGW_MEMBERS_ESYSTEM;
    }

    if (w->fd != -1) {
        close(w->fd);
    }

    w->fd = fd;
    w->head = head;

    return LLMGW_MEMBERS_DONE;
}


/* Makes a predecessor's table the one in use. */
static void
table_adopt(llmgw_members_writer_t *w, int fd,
    const llmgw_members_head_t *head, const llmgw_members_view_t *view)
{
    size_t  i;

    for (i = 0; i < view->n; i++) {
        w->current.records[i] = view->members[i];
        llmgw_members_table_set_load(&w->current, i, &view->loads[i]);
    }

    w->head.generation = head->generation;
    w->head.sequence = head->sequence;
    w->head.heartbeat_ms = head->heartbeat_ms;
    llmgw_members_head_seal(&w->head);

    llmgw_members_table_seal(&w->current, &w->head, view->n,
                             view->isolated ? LLMGW_MEMBERS_ISOLATED : 0);
    llmgw_members_lists_adopt(&w->lists, fd, head);
}


static llmgw_members_rc_t
out_of_memory(uint32_t capacity, char *error)
{
    snprintf(error, LLMGW_MEMBERS_ERROR_BYTES,
             "no memory for a segment of %u members", capacity);
    errno = ENOMEM;

    return LLMGW_MEMBERS_ESYSTEM;
}


static llmgw_members_rc_t
tables_init(llmgw_members_writer_t *w, char *error)
{
    if (llmgw_members_table_init(&w->current, w->head.capacity) == -1
        || llmgw_members_table_init(&w->next, w->head.capacity) == -1)
    {
        return out_of_memory(w->head.capacity, error);
    }

    return LLMGW_MEMBERS_DONE;
}


/*
 * Continues from the file at the path.  A valid segment that is too small or
 * has longer records is not continued in its file, but its table and generation
 * are: the fleet must not vanish from the readers' sight because a limit was
 * raised or an agent was downgraded.
 */
static llmgw_members_rc_t
segment_open(llmgw_members_writer_t *w, char *error)
{
    int                   fd, is_valid;
    off_t                 file_bytes;
    llmgw_members_rc_t    rc;
    llmgw_members_head_t  head;
    llmgw_members_view_t  view = { 0 };

    fd = llmgw_members_file_open(w->path, &file_bytes);
    is_valid = fd != -1
               && llmgw_members_fetch(fd, file_bytes, &head, &view, NULL,
                                      error)
                  == LLMGW_MEMBERS_DONE;

    if (is_valid && head.capacity >= w->head.capacity) {
        w->head.capacity = head.capacity;
        w->fd = head.record_bytes == w->head.record_bytes ? fd : -1;
    }

    rc = tables_init(w, error);

    if (rc == LLMGW_MEMBERS_DONE && is_valid) {
        table_adopt(w, fd, &head, &view);
    }

    if (fd != -1 && w->fd != fd) {
        close(fd);
    }

    llmgw_members_view_done(&view);

    if (rc != LLMGW_MEMBERS_DONE) {
        return rc;
    }

    error[0] = '\0';

    /* A full disk is left to the heartbeat; error says so. */
    if (w->fd == -1) {
        rc = segment_make(w, error);
    }

    return rc != LLMGW_MEMBERS_DONE && llmgw_disk_refuses(errno)
           ? LLMGW_MEMBERS_DONE : rc;
}


static llmgw_members_rc_t
writer_open(llmgw_members_writer_t *w, const char *path, char *error)
{
    if (path == NULL) {
        error[0] = '\0';
        return tables_init(w, error);
    }

    w->path = strdup(path);
    if (w->path == NULL) {
        return out_of_memory(w->head.capacity, error);
    }

    w->lock = llmgw_members_lock(path, error);

    return w->lock == -1 ? LLMGW_MEMBERS_ESYSTEM : segment_open(w, error);
}


llmgw_members_rc_t
llmgw_members_writer_create(llmgw_members_writer_t **writer, const char *path,
    uint32_t capacity, char *error)
{
    int                      saved;
    llmgw_members_rc_t       rc;
    llmgw_members_writer_t  *w;

    if (capacity == 0 || capacity > LLMGW_MEMBERS_MAX) {
        errno = EINVAL;
        snprintf(error, LLMGW_MEMBERS_ERROR_BYTES,
                 "a segment holds 1 to %d members, not %u", LLMGW_MEMBERS_MAX,
                 capacity);
        return LLMGW_MEMBERS_ESYSTEM;
    }

    w = calloc(1, sizeof(*w));
    if (w == NULL) {
        return out_of_memory(capacity, error);
    }

    w->fd = -1;
    w->lock = -1;
    llmgw_members_head_init(&w->head, capacity);

    rc = writer_open(w, path, error);

    if (rc != LLMGW_MEMBERS_DONE) {
        saved = errno;
        llmgw_members_writer_destroy(w);
        errno = saved;
        return rc;
    }

    *writer = w;

    return LLMGW_MEMBERS_DONE;
}


void
llmgw_members_writer_destroy(llmgw_members_writer_t *w)
{
    if (w == NULL) {
        return;
    }

    if (w->fd != -1) {
        close(w->fd);
    }

    if (w->lock != -1) {
        close(w->lock);
    }

    llmgw_members_table_done(&w->current);
    llmgw_members_table_done(&w->next);
    llmgw_members_lists_done(&w->lists);
    free(w->path);
    free(w);
}


/* The flip: until the head is written, nothing has changed. */
static int
table_flip(llmgw_members_writer_t *w, const llmgw_members_head_t *head,
    const llmgw_members_table_t *table)
{
    if (w->path == NULL) {
        return 0;
    }

    return llmgw_members_table_write(w->fd, head, table) == -1
           || llmgw_members_head_write(w->fd, head) == -1 ? -1 : 0;
}


/* Removes from records the lists that no reader would find. */
static void
table_drop_lists(const llmgw_members_writer_t *w, llmgw_member_t *records,
    size_t n)
{
    size_t    k;
    uint64_t  held;

    for (k = 0, held = 0; k < n; k++) {
        if (records[k].models == held
            || llmgw_members_lists_holds(&w->lists, records[k].models))
        {
            held = records[k].models;
            continue;
        }

        records[k].models = 0;
        records[k].models_cut = 0;
    }
}


llmgw_members_rc_t
llmgw_members_publish(llmgw_members_writer_t *w,
    const llmgw_member_t *const *members,
    const llmgw_member_load_t *const *loads, size_t n, int isolated)
{
    uint32_t               flags;
    llmgw_members_head_t   head;
    llmgw_members_table_t  table;

    if (n > w->head.capacity) {
        return LLMGW_MEMBERS_EFULL;
    }

    table = w->next;
    flags = isolated ? LLMGW_MEMBERS_ISOLATED : 0;

    if (llmgw_members_table_build(&table, &w->current, members, loads, n)
        == -1)
    {
        return LLMGW_MEMBERS_REFUSED;
    }

    table_drop_lists(w, table.records, n);

    head = w->head;
    head.sequence++;

    if (!llmgw_members_table_routes_alike(&w->current, &table, n, flags)) {
        head.generation = generation_after(head.generation);
    }

    llmgw_members_head_seal(&head);
    llmgw_members_table_seal(&table, &head, n, flags);

    if (table_flip(w, &head, &table) == -1) {
        return LLMGW_MEMBERS_ESYSTEM;
    }

    w->head = head;
    w->next = w->current;
    w->current = table;
    w->lists.publishes++;

    return LLMGW_MEMBERS_DONE;
}


/* If a write fails here, the next heartbeat finds it. */
void
llmgw_members_set_load(llmgw_members_writer_t *w, const char *id,
    const llmgw_member_load_t *load)
{
    ssize_t  k;

    k = llmgw_members_table_find(&w->current, id);
    if (k == -1) {
        return;
    }

    llmgw_members_table_set_load(&w->current, (size_t) k, load);

    if (w->path != NULL) {
        (void) llmgw_members_slot_write(w->fd, &w->head, &w->current,
                                        (size_t) k);
    }
}


llmgw_members_rc_t
llmgw_members_hold_list(llmgw_members_writer_t *w, const char *names,
    size_t bytes, uint64_t *list)
{
    return llmgw_members_lists_hold(&w->lists, w->fd, &w->head, names, bytes,
                                    list);
}


const char *
llmgw_members_held_list(const llmgw_members_writer_t *w, uint64_t list,
    size_t *bytes)
{
    return llmgw_members_lists_names(&w->lists, list, bytes);
}


llmgw_members_rc_t
llmgw_members_heartbeat(llmgw_members_writer_t *w, uint64_t now_ms, char *error)
{
    const char           *loss;
    llmgw_members_rc_t    rc;
    llmgw_members_head_t  head;

    error[0] = '\0';

    if (w->path == NULL) {
        return LLMGW_MEMBERS_DONE;
    }

    loss = llmgw_members_file_loss(w->path, w->fd, &w->head, &w->current,
                                   &w->lists);
    if (loss != NULL) {
        rc = segment_make(w, error);
        if (rc != LLMGW_MEMBERS_DONE) {
            return rc;
        }

        snprintf(error, LLMGW_MEMBERS_ERROR_BYTES,
                 "\"%.150s\" %s, it was made anew", w->path, loss);
    }

    head = w->head;
    head.heartbeat_ms = now_ms;
    llmgw_members_head_seal(&head);

    if (llmgw_members_head_write(w->fd, &head) == -1) {
        llmgw_members_system_error("pwrite", w->path, error);
        return LLMGW_MEMBERS_ESYSTEM;
    }

    w->head = head;

    return LLMGW_MEMBERS_DONE;
}


const llmgw_member_t *
llmgw_members_published(const llmgw_members_writer_t *w,
    const llmgw_member_load_t **loads, size_t *n)
{
    if (loads != NULL) {
        *loads = w->current.loads;
    }

    *n = w->current.header->count;

    return w->current.records;
}


const llmgw_member_t *
llmgw_members_published_before(const llmgw_members_writer_t *w, size_t *n)
{
    *n = w->next.header->count;

    return w->next.records;
}
