
/*
 * A members segment of any size, without agents.
 *
 *     segment PATH MEMBERS PERIOD_MS still|moving PORT...
 *
 * Publishes MEMBERS replicas, whose addresses are the ports in turns, says
 * "ready", and publishes them again each period.  "moving": one of them,
 * another one each time, has double weight or has it no more, which is a leave
 * and a join to the ring: the generation moves and readers build a new one
 * (for a drain none is built); "still" costs the writer the same and moves
 * nothing.
 */

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "proto/members/members.h"


static volatile sig_atomic_t  segment_is_over;


static void
segment_on_signal(int signo)
{
    segment_is_over = 1;
}


static uint64_t
segment_now_ms(void)
{
    struct timespec  ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);

    return (uint64_t) ts.tv_sec * 1000 + (uint64_t) ts.tv_nsec / 1000000;
}


static llmgw_member_t *
segment_members(size_t n, char **ports, size_t nports)
{
    size_t           i;
    llmgw_member_t  *members;

    members = calloc(n, sizeof(llmgw_member_t));

    if (members == NULL) {
        return NULL;
    }

    for (i = 0; i < n; i++) {
        snprintf(members[i].id, sizeof(members[i].id), "m%05zu", i);
        snprintf(members[i].model_version, sizeof(members[i].model_version),
                 "v1");
        snprintf(members[i].address, sizeof(members[i].address),
                 "127.0.0.1:%zu", 1 + i % 65535);
        snprintf(members[i].grpc, sizeof(members[i].grpc), "127.0.0.1:%s",
                 ports[i % nports]);
        members[i].weight = 1;
        members[i].epoch = 1;
        members[i].role = LLMGW_ROLE_REPLICA;
        members[i].liveness = LLMGW_LIVENESS_ALIVE;
        members[i].service = LLMGW_SERVICE_READY;
    }

    return members;
}


/* Until told to end.  Returns 0, or -1 with the error printed. */
static int
segment_keep(llmgw_members_writer_t *writer, llmgw_member_t *members,
    const llmgw_member_t **published, size_t n, long period_ms, int is_moving)
{
    char             error[LLMGW_MEMBERS_ERROR_BYTES];
    size_t           i, turn;
    struct timespec  nap;

    for (i = 0; i < n; i++) {
        published[i] = &members[i];
    }

    nap.tv_sec = period_ms / 1000;
    nap.tv_nsec = period_ms % 1000 * 1000000;

    for (turn = 0; !segment_is_over; turn++) {
        members[turn / 2 * 7 % n].weight = 1 + (is_moving ? turn & 1 : 0);

        if (llmgw_members_heartbeat(writer, segment_now_ms(), error)
                != LLMGW_MEMBERS_DONE
            || llmgw_members_publish(writer, published, NULL, n, 0)
                != LLMGW_MEMBERS_DONE)
        {
            fprintf(stderr, "segment: cannot be written\n");
            return -1;
        }

        if (turn == 0) {
            puts("ready");
            fflush(stdout);
        }

        nanosleep(&nap, NULL);
    }

    return 0;
}


int
main(int argc, char **argv)
{
    int                      rc;
    char                     error[LLMGW_MEMBERS_ERROR_BYTES];
    size_t                   n;
    llmgw_member_t          *members;
    const llmgw_member_t   **published;
    llmgw_members_writer_t  *writer;

    if (argc < 6 || atoi(argv[2]) < 1 || atoi(argv[3]) < 1) {
        fprintf(stderr, "usage: segment PATH MEMBERS PERIOD_MS still|moving"
                        " PORT...\n");
        return 2;
    }

    n = (size_t) atoi(argv[2]);
    members = segment_members(n, argv + 5, (size_t) argc - 5);
    published = calloc(n, sizeof(llmgw_member_t *));
    signal(SIGTERM, segment_on_signal);

    if (members == NULL || published == NULL
        || llmgw_members_writer_create(&writer, argv[1], (uint32_t) n,
                                       LLMGW_MEMBERS_LAYOUT_2, error)
           != LLMGW_MEMBERS_DONE)
    {
        fprintf(stderr, "segment: %s: %s\n", argv[1],
                members != NULL && published != NULL ? error
                                                     : "out of memory");
        return 1;
    }

    rc = segment_keep(writer, members, published, n, atol(argv[3]),
                      strcmp(argv[4], "moving") == 0);

    llmgw_members_writer_destroy(writer);
    free(members);
    free(published);

    return rc == 0 ? 0 : 1;
}
