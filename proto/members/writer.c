
/*
 * The writer of the members segment: two tables in memory, the one in use and
 * the next one, as there are two buffers in the file.
 *
 * A publish builds the next table, decides whether it routes otherwise than
 * the one in use, writes it into the buffer not in use, and flips the head
 * (members.h tells why a crash anywhere leaves a whole view).  Only when the
 * head is written do the two tables change roles here, too; a publish that
 * failed has changed nothing, and the next one begins anew.
 *
 * What is in memory is also what the heartbeat holds the file against, and
 * what it makes a new file of when somebody has taken or spoiled the old one.
 */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "proto/members/file.h"


struct llmgw_members_writer_s {
    char                  *path;
    int                    lock;        /* -1: not held */
    int                    fd;          /* -1: none yet */
    llmgw_members_head_t   head;        /* as it stands in the file */
    llmgw_members_table_t  current;     /* as it stands in the buffer in use */
    llmgw_members_table_t  next;
};


/* Greater than the last generation known, or a start that no one has had. */
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


static void
head_init(llmgw_members_head_t *head, uint32_t capacity)
{
    memset(head, 0, sizeof(*head));
    memcpy(head->magic, LLMGW_MEMBERS_MAGIC, LLMGW_MEMBERS_MAGIC_BYTES);
    head->layout = LLMGW_MEMBERS_LAYOUT;
    head->capacity = capacity;
    head->record_bytes = sizeof(llmgw_member_t);
}


static void
table_seal(llmgw_members_table_t *table, const llmgw_members_head_t *head,
    size_t n, uint32_t flags)
{
    memset(table->header, 0, sizeof(*table->header));
    table->header->sequence = head->sequence;
    table->header->generation = head->generation;
    table->header->count = (uint32_t) n;
    table->header->flags = flags;
    llmgw_members_buffer_seal(table->header, table->records);
}


/*
 * The generation of what lies at the path, where that can be told: another
 * writer's segment, or one whose table is damaged and whose head is not.
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


/* A new file of what is known, in the place of whatever is there. */
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
    table_seal(&w->current, &head, table->count, table->flags);

    fd = llmgw_members_file_make(w->path, &head, &w->current, error);
    if (fd == -1) {
        table_seal(&w->current, &w->head, table->count, table->flags);
        return LLMGW_MEMBERS_ESYSTEM;
    }

    if (w->fd != -1) {
        close(w->fd);
    }

    w->fd = fd;
    w->head = head;

    return LLMGW_MEMBERS_DONE;
}


/* What a predecessor left becomes the table in use. */
static void
table_adopt(llmgw_members_writer_t *w, const llmgw_members_head_t *head,
    const llmgw_members_view_t *view)
{
    size_t  i;

    for (i = 0; i < view->n; i++) {
        w->current.records[i] = view->members[i];
        llmgw_members_slot_encode(&w->current.slots[i], view->members[i].id,
                                  &view->loads[i]);
    }

    w->head.generation = head->generation;
    w->head.sequence = head->sequence;
    w->head.heartbeat_ms = head->heartbeat_ms;
    llmgw_members_head_seal(&w->head);

    table_seal(&w->current, &w->head, view->n,
               view->isolated ? LLMGW_MEMBERS_ISOLATED : 0);
}


static int
tables_init(llmgw_members_writer_t *w, uint32_t capacity, char *error)
{
    head_init(&w->head, capacity);

    if (llmgw_members_table_init(&w->current, capacity) == -1
        || llmgw_members_table_init(&w->next, capacity) == -1)
    {
        errno = ENOMEM;
        snprintf(error, LLMGW_MEMBERS_ERROR_BYTES,
                 "no memory for a segment of %u members", capacity);
        return -1;
    }

    return 0;
}


/*
 * Goes on from what lies at the path.  A valid segment that is too small is
 * not continued in its file, but its table and generation are: the fleet does
 * not vanish from the readers' sight because a limit was raised.
 */
static llmgw_members_rc_t
segment_open(llmgw_members_writer_t *w, uint32_t capacity, char *error)
{
    int                   fd, is_valid, is_reusable;
    off_t                 file_bytes;
    llmgw_members_head_t  head;
    llmgw_members_view_t  view = { 0 };

    fd = llmgw_members_file_open(w->path, &file_bytes);
    is_valid = fd != -1
               && llmgw_members_fetch(fd, file_bytes, &head, &view, NULL,
                                      error)
                  == LLMGW_MEMBERS_DONE;
    is_reusable = is_valid && head.capacity >= capacity;

    if (is_reusable) {
        capacity = head.capacity;
        w->fd = fd;

    } else if (fd != -1) {
        close(fd);
    }

    if (tables_init(w, capacity, error) == -1) {
        llmgw_members_view_done(&view);
        return LLMGW_MEMBERS_ESYSTEM;
    }

    if (is_valid) {
        table_adopt(w, &head, &view);
    }

    llmgw_members_view_done(&view);

    return is_reusable ? LLMGW_MEMBERS_DONE : segment_make(w, error);
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
    if (w == NULL || (w->path = strdup(path)) == NULL) {
        free(w);
        errno = ENOMEM;
        snprintf(error, LLMGW_MEMBERS_ERROR_BYTES, "no memory for a writer");
        return LLMGW_MEMBERS_ESYSTEM;
    }

    w->fd = -1;
    w->lock = llmgw_members_lock(path, error);

    rc = w->lock == -1 ? LLMGW_MEMBERS_ESYSTEM
                       : segment_open(w, capacity, error);

    if (rc != LLMGW_MEMBERS_DONE) {
        saved = errno;
        llmgw_members_writer_destroy(w);
        errno = saved;
        return rc;
    }

    error[0] = '\0';
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
    free(w->path);
    free(w);
}


/* So that bytes behind a NUL, the caller's stack perhaps, stay at home. */
static void
string_encode(char *to, const char *from, size_t bytes)
{
    size_t  len;

    len = strnlen(from, bytes);
    memcpy(to, from, len);
    memset(to + len, 0, bytes - len);
}


static void
record_encode(llmgw_member_t *to, const llmgw_member_t *from)
{
    memset(to, 0, sizeof(*to));

    string_encode(to->id, from->id, sizeof(to->id));
    string_encode(to->model_version, from->model_version,
                  sizeof(to->model_version));
    string_encode(to->address, from->address, sizeof(to->address));
    string_encode(to->grpc, from->grpc, sizeof(to->grpc));
    string_encode(to->drain_owner, from->drain_owner,
                  sizeof(to->drain_owner));

    to->epoch = from->epoch;
    to->incarnation = from->incarnation;
    to->replica_start_ms = from->replica_start_ms;
    to->weight = from->weight;
    to->max_capacity = from->max_capacity;
    to->role = from->role;
    to->liveness = from->liveness;
    to->service = from->service;
    to->draining = from->draining;
}


static int
order_by_id(const void *a, const void *b, void *members)
{
    const llmgw_member_t  *m;

    m = members;

    return strncmp(m[*(const uint32_t *) a].id, m[*(const uint32_t *) b].id,
                   LLMGW_MEMBERS_NAME_BYTES);
}


/* Records in the order of ids, whatever the order of the members. */
static void
records_encode(llmgw_members_table_t *table, const llmgw_member_t *members,
    size_t n)
{
    size_t  k;

    for (k = 0; k < n; k++) {
        table->sorted[k] = (uint32_t) k;
    }

    qsort_r(table->sorted, n, sizeof(uint32_t), order_by_id, (void *) members);

    for (k = 0; k < n; k++) {
        record_encode(&table->records[k], &members[table->sorted[k]]);
        table->place[table->sorted[k]] = (uint32_t) k;
    }

    table->published = n;
}


/* What the table in use knows of this id's load, from `*from` upwards. */
static void
load_recall(const llmgw_members_table_t *table, const char *id, size_t *from,
    llmgw_member_load_t *load)
{
    int     order;
    size_t  k;

    memset(load, 0, sizeof(*load));

    for (k = *from; k < table->header->count; k++) {
        order = strcmp(table->records[k].id, id);

        if (order == 0) {
            (void) llmgw_members_slot_decode(&table->slots[k], id, load);
        }

        if (order >= 0) {
            break;
        }
    }

    *from = k;
}


static void
slots_encode(llmgw_members_table_t *table, const llmgw_members_table_t *old,
    const llmgw_member_load_t *loads, size_t n)
{
    size_t               i, k, from;
    llmgw_member_load_t  load;

    if (loads != NULL) {
        for (i = 0; i < n; i++) {
            k = table->place[i];
            llmgw_members_slot_encode(&table->slots[k], table->records[k].id,
                                      &loads[i]);
        }

        return;
    }

    for (k = 0, from = 0; k < n; k++) {
        load_recall(old, table->records[k].id, &from, &load);
        llmgw_members_slot_encode(&table->slots[k], table->records[k].id,
                                  &load);
    }
}


static int
record_routes_alike(const llmgw_member_t *a, const llmgw_member_t *b)
{
    return a->role == b->role
           && a->liveness == b->liveness
           && a->service == b->service
           && a->draining == b->draining
           && a->weight == b->weight
           && a->max_capacity == b->max_capacity
           && strcmp(a->id, b->id) == 0
           && strcmp(a->grpc, b->grpc) == 0;
}


static int
table_routes_alike(const llmgw_members_table_t *a,
    const llmgw_members_table_t *b, size_t n, uint32_t flags)
{
    size_t  k;

    if (a->header->count != n || a->header->flags != flags) {
        return 0;
    }

    for (k = 0; k < n; k++) {
        if (!record_routes_alike(&a->records[k], &b->records[k])) {
            return 0;
        }
    }

    return 1;
}


llmgw_members_rc_t
llmgw_members_publish(llmgw_members_writer_t *w,
    const llmgw_member_t *members, const llmgw_member_load_t *loads, size_t n,
    int isolated)
{
    size_t                 where;
    uint32_t               flags;
    llmgw_members_head_t   head;
    llmgw_members_table_t  table;

    if (n > w->head.capacity) {
        return LLMGW_MEMBERS_EFULL;
    }

    table = w->next;
    flags = isolated ? LLMGW_MEMBERS_ISOLATED : 0;

    records_encode(&table, members, n);

    if (llmgw_members_table_reason(table.records, n, NULL, &where) != NULL) {
        return LLMGW_MEMBERS_REFUSED;
    }

    slots_encode(&table, &w->current, loads, n);

    head = w->head;
    head.sequence++;

    if (!table_routes_alike(&w->current, &table, n, flags)) {
        head.generation = generation_after(head.generation);
    }

    llmgw_members_head_seal(&head);
    table_seal(&table, &head, n, flags);

    if (llmgw_members_table_write(w->fd, head.capacity, &table) == -1
        || llmgw_members_head_write(w->fd, &head) == -1)
    {
        return LLMGW_MEMBERS_ESYSTEM;
    }

    w->head = head;
    w->next = w->current;
    w->current = table;

    return LLMGW_MEMBERS_DONE;
}


/* A write that fails is found by the next heartbeat. */
void
llmgw_members_set_load(llmgw_members_writer_t *w, size_t i,
    const llmgw_member_load_t *load)
{
    off_t                  at;
    uint32_t               k;
    llmgw_members_slot_t  *slot;

    if (i >= w->current.published) {
        return;
    }

    k = w->current.place[i];
    slot = &w->current.slots[k];
    llmgw_members_slot_encode(slot, w->current.records[k].id, load);

    at = llmgw_members_slots_at(w->head.capacity, w->head.sequence)
         + (off_t) (k * sizeof(*slot));
    (void) llmgw_members_pwrite(w->fd, slot, sizeof(*slot), at);
}


llmgw_members_rc_t
llmgw_members_heartbeat(llmgw_members_writer_t *w, uint64_t now_ms, char *error)
{
    const char           *loss;
    llmgw_members_rc_t    rc;
    llmgw_members_head_t  head;

    error[0] = '\0';

    loss = llmgw_members_file_loss(w->path, w->fd, &w->head, &w->current);
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
        llmgw_members_file_error("pwrite", w->path, error);
        return LLMGW_MEMBERS_ESYSTEM;
    }

    w->head = head;

    return LLMGW_MEMBERS_DONE;
}
