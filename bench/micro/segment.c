
/*
 * What the members segment costs its readers: the check of the generation
 * before a pick, the loads, a whole view; and its writer: a publish.
 */

#include <string.h>
#include <unistd.h>

#include "proto/members/members.h"
#include "bench/micro/micro.h"


#define LOOKS  200000

typedef struct {
    char                      path[64];
    size_t                    n;
    llmgw_member_t           *members;
    const llmgw_member_t    **published;
    llmgw_members_writer_t   *writer;
    llmgw_members_reader_t   *reader;
    llmgw_members_view_t      view;
} segment_t;


static void
must_be_done(llmgw_members_rc_t rc, const char *error)
{
    if (rc != LLMGW_MEMBERS_DONE) {
        fprintf(stderr, "segment: %s\n", error);
        exit(1);
    }
}


static void
segment_init(segment_t *s, size_t n)
{
    char    error[LLMGW_MEMBERS_ERROR_BYTES];
    size_t  i;

    memset(s, 0, sizeof(*s));
    s->n = n;
    s->members = micro_must(calloc(n, sizeof(llmgw_member_t)));
    s->published = micro_must(calloc(n, sizeof(llmgw_member_t *)));
    snprintf(s->path, sizeof(s->path), "/dev/shm/llmgw-micro-%d",
             (int) getpid());

    for (i = 0; i < n; i++) {
        snprintf(s->members[i].id, sizeof(s->members[i].id), "m%05zu", i);
        strcpy(s->members[i].model_version, "v1");
        strcpy(s->members[i].address, "10.0.0.1:17946");
        strcpy(s->members[i].grpc, "10.0.0.1:7946");
        s->members[i].weight = 1;
        s->members[i].epoch = 1;
        s->members[i].service = LLMGW_SERVICE_READY;
        s->published[i] = &s->members[i];
    }

    error[0] = '\0';
    must_be_done(llmgw_members_writer_create(&s->writer, s->path,
                                             (uint32_t) n, error), error);
    must_be_done(llmgw_members_publish(s->writer, s->published, NULL, n, 0),
                 "publish");
    s->reader = micro_must(llmgw_members_reader_create(s->path));
    must_be_done(llmgw_members_read(s->reader, &s->view, error), error);
}


static void
segment_done(segment_t *s)
{
    char  lock[80];

    llmgw_members_view_done(&s->view);
    llmgw_members_reader_destroy(s->reader);
    llmgw_members_writer_destroy(s->writer);
    free(s->members);
    free(s->published);
    unlink(s->path);
    snprintf(lock, sizeof(lock), "%s.lock", s->path);
    unlink(lock);
}


static uint64_t
look(void *data, size_t n)
{
    size_t      i;
    uint64_t    sum;
    segment_t  *s = data;

    for (sum = 0, i = 0; i < n; i++) {
        sum += llmgw_members_reader_generation(s->reader);
    }

    return sum;
}


static uint64_t
read_all(void *data, size_t n)
{
    char        error[LLMGW_MEMBERS_ERROR_BYTES];
    size_t      i;
    segment_t  *s = data;

    for (i = 0; i < n; i++) {
        must_be_done(llmgw_members_read(s->reader, &s->view, error), error);
    }

    return s->view.n;
}


static uint64_t
read_loads(void *data, size_t n)
{
    size_t      i;
    segment_t  *s = data;

    for (i = 0; i < n; i++) {
        must_be_done(llmgw_members_read_loads(s->reader, &s->view), "loads");
    }

    return s->view.n;
}


static uint64_t
publish(void *data, size_t n)
{
    size_t      i;
    segment_t  *s = data;

    for (i = 0; i < n; i++) {
        s->members[0].draining ^= 1;
        must_be_done(llmgw_members_publish(s->writer, s->published, NULL,
                                           s->n, 0), "publish");
    }

    return n;
}


int
main(void)
{
    char       what[64];
    size_t     i;
    segment_t  s;

    static const size_t  sizes[] = { 3, 100, 1000, 10000 };

    for (i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        segment_init(&s, sizes[i]);

        if (i == 0) {
            micro_measure("segment: look at the generation", look, &s, LOOKS);
        }

        snprintf(what, sizeof(what), "segment: read %zu members", s.n);
        micro_measure(what, read_all, &s, 20000 / s.n + 1);
        snprintf(what, sizeof(what), "segment: read loads of %zu", s.n);
        micro_measure(what, read_loads, &s, 20000 / s.n + 1);
        snprintf(what, sizeof(what), "segment: publish %zu members", s.n);
        micro_measure(what, publish, &s, 20000 / s.n + 1);

        segment_done(&s);
    }

    return 0;
}
