
/*
 * Shared by the tests of the members segment: a directory on tmpfs, members
 * that can be told apart, and views whose every part carries one stamp.
 */

#ifndef TEST_MEMBERS_SUPPORT_H
#define TEST_MEMBERS_SUPPORT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "proto/members/layout.h"


typedef struct {
    char                     dir[64];
    char                     path[80];
    char                     error[LLMGW_MEMBERS_ERROR_BYTES];
    llmgw_members_writer_t  *writer;
    llmgw_members_reader_t  *reader;
    llmgw_members_view_t     view;
} fixture_t;


static inline int
fixture_setup(void **state)
{
    fixture_t  *f;

    f = calloc(1, sizeof(*f));
    assert_non_null(f);
    strcpy(f->dir, "/dev/shm/llmgw-test-XXXXXX");
    assert_non_null(mkdtemp(f->dir));
    snprintf(f->path, sizeof(f->path), "%s/members", f->dir);

    f->reader = llmgw_members_reader_create(f->path);
    assert_non_null(f->reader);
    *state = f;

    return 0;
}


#define fixture_test(name)                                                   \
    cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)


static inline off_t
fixture_buffer_at(uint32_t capacity, uint64_t sequence)
{
    llmgw_members_head_t  head;

    llmgw_members_head_init(&head, capacity);

    return llmgw_members_buffer_at(&head, sequence);
}


/* The bytes of head and both buffers; behind them is the names area, 1 MiB. */
static inline size_t
fixture_tables_bytes(uint32_t capacity)
{
    llmgw_members_head_t  head;

    llmgw_members_head_init(&head, capacity);

    return (size_t) llmgw_members_directory_at(&head);
}


static inline int
fixture_teardown(void **state)
{
    fixture_t         *f;
    size_t             i;
    char               path[128];
    const char *const  suffixes[] = { "", ".lock", ".tmp", ".other" };

    f = *state;
    llmgw_members_writer_destroy(f->writer);
    llmgw_members_reader_destroy(f->reader);
    llmgw_members_view_done(&f->view);

    for (i = 0; i < sizeof(suffixes) / sizeof(suffixes[0]); i++) {
        snprintf(path, sizeof(path), "%s%s", f->path, suffixes[i]);
        (void) remove(path);
    }

    /* Fails if a test has left a file behind. */
    i = (size_t) rmdir(f->dir);
    free(f);

    return (int) i;
}


static inline void
fixture_write(fixture_t *f, uint32_t capacity)
{
    assert_int_equal(llmgw_members_writer_create(&f->writer, f->path, capacity,
                                                 f->error),
                     LLMGW_MEMBERS_DONE);
}


/* Starts over like a new process: nothing of the old writer is kept. */
static inline void
fixture_rewrite(fixture_t *f, uint32_t capacity)
{
    llmgw_members_writer_destroy(f->writer);
    f->writer = NULL;
    fixture_write(f, capacity);
}


static inline void
fixture_read(fixture_t *f)
{
    assert_int_equal(llmgw_members_read(f->reader, &f->view, f->error),
                     LLMGW_MEMBERS_DONE);
}


/* Reads the file at the path with a new reader. */
static inline llmgw_members_rc_t
fixture_judge(fixture_t *f, llmgw_members_view_t *view)
{
    llmgw_members_rc_t       rc;
    llmgw_members_reader_t  *reader;

    reader = llmgw_members_reader_create(f->path);
    assert_non_null(reader);
    rc = llmgw_members_read(reader, view, f->error);
    llmgw_members_reader_destroy(reader);

    return rc;
}


static inline void
member_make(llmgw_member_t *m, size_t number, uint64_t stamp)
{
    memset(m, 0, sizeof(*m));
    snprintf(m->id, sizeof(m->id), "r%03zu", number);
    snprintf(m->model_version, sizeof(m->model_version), "v%lu",
             (unsigned long) stamp);
    snprintf(m->address, sizeof(m->address), "127.0.0.1:%zu", 20000 + number);
    snprintf(m->grpc, sizeof(m->grpc), "[::1]:%zu", 10000 + number);
    m->epoch = stamp;
    m->incarnation = stamp;
    m->weight = 1 + (uint32_t) (stamp % LLMGW_MEMBERS_WEIGHT_MAX);
    m->max_capacity = 4;
    m->liveness = LLMGW_LIVENESS_ALIVE;
    m->service = LLMGW_SERVICE_READY;
}


static inline void
members_make(llmgw_member_t *members, size_t n, uint64_t stamp)
{
    size_t  i;

    for (i = 0; i < n; i++) {
        member_make(&members[i], i, stamp);
    }
}


static inline size_t
member_number(const llmgw_member_t *m)
{
    return strtoul(m->id + 1, NULL, 10);
}


static inline llmgw_member_load_t
load_make(size_t number, uint64_t stamp)
{
    llmgw_member_load_t  load;

    load.active_requests = (uint32_t) (number * 1000 + stamp % 1000);
    load.reported_ms = 1 + stamp;

    return load;
}


/* The stamp of all members; 0 if there are none, or their stamps differ. */
static inline uint64_t
view_stamp(const llmgw_members_view_t *view)
{
    size_t          i;
    uint64_t        stamp;
    llmgw_member_t  expected;

    stamp = view->n > 0 ? view->members[0].epoch : 0;

    for (i = 0; i < view->n; i++) {
        member_make(&expected, member_number(&view->members[i]), stamp);

        if (memcmp(&expected, &view->members[i], sizeof(expected)) != 0) {
            return 0;
        }
    }

    return stamp;
}


/* Whether every load is of its own member, or "never". */
static inline int
view_loads_are_right(const llmgw_members_view_t *view)
{
    size_t                      i;
    const llmgw_member_load_t  *load;

    for (i = 0; i < view->n; i++) {
        load = &view->loads[i];

        if (load->reported_ms != 0
            && load->active_requests / 1000
               != member_number(&view->members[i]))
        {
            return 0;
        }
    }

    return 1;
}


#define PUBLISH_MAX  64

static inline llmgw_members_rc_t
publish_array(llmgw_members_writer_t *writer, const llmgw_member_t *members,
    const llmgw_member_load_t *loads, size_t n, int isolated)
{
    size_t                      i;
    const llmgw_member_t       *member[PUBLISH_MAX];
    const llmgw_member_load_t  *load[PUBLISH_MAX];

    assert_in_range(n, 0, PUBLISH_MAX);

    for (i = 0; i < n; i++) {
        member[i] = &members[i];
        load[i] = loads != NULL ? &loads[i] : NULL;
    }

    return llmgw_members_publish(writer, member, loads != NULL ? load : NULL,
                                 n, isolated);
}


static inline void
set_load_of(llmgw_members_writer_t *writer, size_t number,
    const llmgw_member_load_t *load)
{
    llmgw_member_t  member;

    member_make(&member, number, 1);
    llmgw_members_set_load(writer, member.id, load);
}


static inline void
publish(fixture_t *f, size_t n, uint64_t stamp)
{
    llmgw_member_t  members[64];

    assert_in_range(n, 0, 64);
    members_make(members, n, stamp);
    assert_int_equal(publish_array(f->writer, members, NULL, n, 0),
                     LLMGW_MEMBERS_DONE);
}


/* The file's bytes; free() them. */
static inline unsigned char *
file_load(const char *path, size_t *bytes)
{
    int             fd;
    struct stat     file;
    unsigned char  *data;

    fd = open(path, O_RDONLY);
    assert_int_not_equal(fd, -1);
    assert_int_equal(fstat(fd, &file), 0);
    *bytes = (size_t) file.st_size;
    data = malloc(*bytes);
    assert_non_null(data);
    assert_int_equal(read(fd, data, *bytes), *bytes);
    close(fd);

    return data;
}


/* Puts another file in the place of the old one, which is not changed. */
static inline void
file_replace(const char *path, const void *data, size_t bytes)
{
    int   fd;
    char  other[128];

    snprintf(other, sizeof(other), "%s.other", path);
    fd = open(other, O_WRONLY | O_CREAT | O_TRUNC, 0644);
    assert_int_not_equal(fd, -1);
    assert_int_equal(fchmod(fd, 0644), 0);
    assert_int_equal(write(fd, data, bytes), bytes);
    close(fd);
    assert_int_equal(rename(other, path), 0);
}

#endif /* TEST_MEMBERS_SUPPORT_H */
