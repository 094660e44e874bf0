
/*
 * llmgw-segment PATH REPLICAS: a members segment without a cluster.
 *
 * Writes as many replicas, all ready, that nobody listens as, and one gateway;
 * beats the agent's heart once a second, and ends when its standard input
 * does.  Each line read from there publishes the segment anew with the first
 * replica's capacity moved by one, so that the generation moves; it is
 * answered by a line as well.
 */

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "members.h"


static uint64_t
now_ms(void)
{
    struct timespec  ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);

    return (uint64_t) ts.tv_sec * 1000 + (uint64_t) ts.tv_nsec / 1000000;
}


static void
fill(llmgw_member_t *members, llmgw_member_load_t *loads, unsigned n)
{
    unsigned  i;

    for (i = 0; i < n; i++) {
        snprintf(members[i].id, sizeof(members[i].id), "replica-%05u", i);
        snprintf(members[i].address, sizeof(members[i].address),
                 "127.%u.%u.1:7946", i / 256, i % 256);
        snprintf(members[i].grpc, sizeof(members[i].grpc),
                 "127.%u.%u.1:1", i / 256, i % 256);
        strcpy(members[i].model_version, "v1");
        members[i].weight = 1;
        members[i].service = LLMGW_SERVICE_READY;
        loads[i].active_requests = i % 8;
        loads[i].reported_ms = now_ms();
    }

    strcpy(members[n].id, "gateway");
    strcpy(members[n].address, "127.0.0.1:7946");
    members[n].role = LLMGW_ROLE_GATEWAY;
    members[n].weight = 1;
}


static void
fail(const char *what)
{
    fprintf(stderr, "llmgw-segment: %s\n", what);
    exit(1);
}


static void
publish(llmgw_members_writer_t *writer, const llmgw_member_t *members,
    const llmgw_member_load_t *loads, unsigned n)
{
    if (llmgw_members_publish(writer, members, loads, n + 1, 0)
        != LLMGW_MEMBERS_DONE)
    {
        fail("the members are refused");
    }

    puts("published");
    fflush(stdout);
}


static void
serve(llmgw_members_writer_t *writer, llmgw_member_t *members,
    const llmgw_member_load_t *loads, unsigned n)
{
    char           line[64], error[LLMGW_MEMBERS_ERROR_BYTES];
    struct pollfd  in = { .fd = STDIN_FILENO, .events = POLLIN };

    for ( ;; ) {
        if (llmgw_members_heartbeat(writer, now_ms(), error)
            != LLMGW_MEMBERS_DONE)
        {
            fail(error);
        }

        if (poll(&in, 1, 1000) <= 0) {
            continue;
        }

        if (fgets(line, sizeof(line), stdin) == NULL) {
            return;
        }

        members[0].max_capacity++;
        publish(writer, members, loads, n);
    }
}


int
main(int argc, char **argv)
{
    char                     error[LLMGW_MEMBERS_ERROR_BYTES];
    unsigned                 n;
    llmgw_member_t          *members;
    llmgw_member_load_t     *loads;
    llmgw_members_writer_t  *writer;

    n = argc == 3 ? (unsigned) strtoul(argv[2], NULL, 10) : 0;

    if (n == 0 || n >= LLMGW_MEMBERS_MAX) {
        fputs("usage: llmgw-segment PATH REPLICAS\n", stderr);
        return 2;
    }

    setvbuf(stdin, NULL, _IONBF, 0);

    members = calloc(n + 1, sizeof(llmgw_member_t));
    loads = calloc(n + 1, sizeof(llmgw_member_load_t));

    if (members == NULL || loads == NULL) {
        fail("out of memory");
    }

    if (llmgw_members_writer_create(&writer, argv[1], n + 1, error)
        != LLMGW_MEMBERS_DONE)
    {
        fail(error);
    }

    fill(members, loads, n);
    publish(writer, members, loads, n);
    serve(writer, members, loads, n);

    llmgw_members_writer_destroy(writer);
    free(loads);
    free(members);

    return 0;
}
