
/*
 * The reader of the members segment: which file is open, and when to change.
 *
 * How a view comes out of an open file is in fetch.c; here is what
 * surrounds it.  The path may be absent, be replaced, or hold anything, at any
 * time, and none of that may remove the last valid view:
 *
 *   - a file is opened beside the one in use, and takes its place only after
 *     a whole view has been fetched from it;
 *   - a file that is gone or was refused leaves the one in use open, so that
 *     its last view and generation stay readable (fail static);
 *   - a view is fetched into arrays of the reader's own, then exchanged with
 *     the caller's, so the caller's view changes as a whole or not at all.
 *
 * A refused file is remembered by its stat() data and not opened again before
 * these change: a worker that checks every 100 ms must not read 50 MB of
 * garbage each time.
 */

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "proto/members/layout.h"


#define GENERATION_TRIES  4     /* of 0.3 us each; else the last known one */

struct llmgw_members_reader_s {
    char                 *path;
    int                   fd;               /* -1: none */
    struct stat           file;             /* of the file that is open */
    uint64_t              generation;       /* last one seen; 0: none open */
    llmgw_members_view_t  spare;            /* arrays to fetch into */
    int                   has_refused;
    struct stat           refused;
    char                  refusal[LLMGW_MEMBERS_ERROR_BYTES];
};


llmgw_members_reader_t *
llmgw_members_reader_create(const char *path)
{
    llmgw_members_reader_t  *r;

    r = calloc(1, sizeof(*r));
    if (r == NULL) {
        return NULL;
    }

    r->fd = -1;
    r->path = strdup(path);

    if (r->path == NULL) {
        free(r);
        return NULL;
    }

    return r;
}


void
llmgw_members_reader_destroy(llmgw_members_reader_t *r)
{
    if (r == NULL) {
        return;
    }

    if (r->fd != -1) {
        close(r->fd);
    }

    llmgw_members_view_done(&r->spare);
    free(r->path);
    free(r);
}


void
llmgw_members_view_done(llmgw_members_view_t *view)
{
    free(view->members);
    free(view->loads);
    memset(view, 0, sizeof(*view));
}


static int
is_same_file(const struct stat *a, const struct stat *b)
{
    return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}


static int
is_unchanged_file(const struct stat *a, const struct stat *b)
{
    return is_same_file(a, b)
           && a->st_size == b->st_size
           && a->st_mode == b->st_mode
           && a->st_mtim.tv_sec == b->st_mtim.tv_sec
           && a->st_mtim.tv_nsec == b->st_mtim.tv_nsec
           && a->st_ctim.tv_sec == b->st_ctim.tv_sec
           && a->st_ctim.tv_nsec == b->st_ctim.tv_nsec;
}


static llmgw_members_rc_t
system_error(const char *call, const char *path, char *error)
{
    llmgw_members_system_error(call, path, error);

    return errno == ENOENT || errno == ENOTDIR ? LLMGW_MEMBERS_ABSENT
                                               : LLMGW_MEMBERS_ESYSTEM;
}


/* Fetches into the spare arrays; remembers a refusal. */
static llmgw_members_rc_t
candidate_fetch(llmgw_members_reader_t *r, int fd, const struct stat *file,
    char *error)
{
    llmgw_members_rc_t    rc;
    llmgw_members_head_t  head;

    if (S_ISREG(file->st_mode)) {
        rc = llmgw_members_fetch(fd, file->st_size, &head, &r->spare, NULL,
                                 error);

    } else {
        rc = LLMGW_MEMBERS_REFUSED;
        snprintf(error, LLMGW_MEMBERS_ERROR_BYTES,
                 "no members segment: it is no regular file");
    }

    if (rc == LLMGW_MEMBERS_DONE) {
        r->generation = head.generation;
    }

    if (rc == LLMGW_MEMBERS_REFUSED) {
        r->has_refused = 1;
        r->refused = *file;
        memcpy(r->refusal, error, LLMGW_MEMBERS_ERROR_BYTES);
    }

    return rc;
}


static llmgw_members_rc_t
candidate_open(llmgw_members_reader_t *r, char *error)
{
    int                 fd;
    struct stat         file;
    llmgw_members_rc_t  rc;

    /* O_NONBLOCK: a fifo in that place must not block us. */
    fd = open(r->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd == -1) {
        return system_error("open", r->path, error);
    }

    if (fstat(fd, &file) == -1) {
        rc = system_error("fstat", r->path, error);
        close(fd);
        return rc;
    }

    rc = candidate_fetch(r, fd, &file, error);
    if (rc != LLMGW_MEMBERS_DONE) {
        close(fd);
        return rc;
    }

    if (r->fd != -1) {
        close(r->fd);
    }

    r->fd = fd;
    r->file = file;
    r->has_refused = 0;

    return LLMGW_MEMBERS_DONE;
}


llmgw_members_rc_t
llmgw_members_reader_check(llmgw_members_reader_t *r, char *error)
{
    struct stat           file;
    llmgw_members_rc_t    rc;
    llmgw_members_head_t  head;

    error[0] = '\0';

    if (stat(r->path, &file) == -1) {
        return system_error("stat", r->path, error);
    }

    if (r->has_refused && is_unchanged_file(&r->refused, &file)) {
        memcpy(error, r->refusal, LLMGW_MEMBERS_ERROR_BYTES);
        return LLMGW_MEMBERS_REFUSED;
    }

    if (r->fd == -1 || !is_same_file(&r->file, &file)) {
        return candidate_open(r, error);
    }

    rc = llmgw_members_head_read(r->fd, file.st_size, &head, error);

    return rc == LLMGW_MEMBERS_DONE ? LLMGW_MEMBERS_UNCHANGED : rc;
}


uint64_t
llmgw_members_reader_generation(llmgw_members_reader_t *r)
{
    int                   tries;
    llmgw_members_head_t  head;

    if (r->fd == -1) {
        return 0;
    }

    for (tries = 0; tries < GENERATION_TRIES; tries++) {
        if (llmgw_members_pread(r->fd, &head, sizeof(head), 0) != 1) {
            break;
        }

        if (llmgw_members_head_is_sealed(&head) && head.generation != 0) {
            r->generation = head.generation;
            break;
        }
    }

    return r->generation;
}


/* The spare arrays become the caller's, and the caller's the spare ones. */
static void
view_exchange(llmgw_members_view_t *a, llmgw_members_view_t *b)
{
    llmgw_members_view_t  t;

    t = *a;
    *a = *b;
    *b = t;
}


llmgw_members_rc_t
llmgw_members_read(llmgw_members_reader_t *r, llmgw_members_view_t *view,
    char *error)
{
    llmgw_members_rc_t    rc;
    llmgw_members_head_t  head;

    error[0] = '\0';

    if (r->fd == -1) {
        rc = llmgw_members_reader_check(r, error);
        if (rc != LLMGW_MEMBERS_DONE) {
            return rc;
        }

    } else {
        rc = llmgw_members_fetch(r->fd, r->file.st_size, &head, &r->spare,
                                 view, error);
        if (rc != LLMGW_MEMBERS_DONE) {
            return rc;
        }

        r->generation = head.generation;
    }

    view_exchange(view, &r->spare);

    return LLMGW_MEMBERS_DONE;
}


llmgw_members_rc_t
llmgw_members_read_loads(llmgw_members_reader_t *r, llmgw_members_view_t *view)
{
    llmgw_members_rc_t    rc;
    llmgw_members_head_t  head;
    char                  error[LLMGW_MEMBERS_ERROR_BYTES];

    if (r->fd == -1) {
        return LLMGW_MEMBERS_ABSENT;
    }

    rc = llmgw_members_head_read(r->fd, r->file.st_size, &head, error);
    if (rc != LLMGW_MEMBERS_DONE) {
        return rc;
    }

    if (head.generation != view->generation) {
        return LLMGW_MEMBERS_UNCHANGED;
    }

    rc = llmgw_members_slots_read(r->fd, &head, view->members, view->loads,
                                  view->n);
    if (rc == LLMGW_MEMBERS_DONE) {
        view->heartbeat_ms = head.heartbeat_ms;
    }

    return rc;
}


llmgw_members_rc_t
llmgw_members_read_list(llmgw_members_reader_t *r, uint64_t list, char *names,
    size_t *bytes)
{
    llmgw_members_rc_t    rc;
    llmgw_members_head_t  head;
    char                  error[LLMGW_MEMBERS_ERROR_BYTES];

    if (r->fd == -1) {
        return LLMGW_MEMBERS_ABSENT;
    }

    rc = llmgw_members_head_read(r->fd, r->file.st_size, &head, error);
    if (rc != LLMGW_MEMBERS_DONE) {
        return rc;
    }

    return llmgw_members_list_fetch(r->fd, &head, list, names, bytes);
}
