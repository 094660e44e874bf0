
/*
 * A members segment of any size, without agents.
 *
 *     segment PATH MEMBERS PERIOD_MS still|moving PORT...
 *
 * Publishes MEMBERS replicas, whose addresses cycle through the ports, prints
 * "ready", and publishes them again each period.  "moving": each time, another
 * one of them gets double weight or loses it, which is a leave and a join for
 * the ring: the generation changes and readers build a new ring (a drain would
 * not need one).  "still" costs the writer the same, but changes nothing for
 * readers.
 *
 * SIGHUP switches between "still" and "moving".  SIGUSR1 lists some newcomers,
 * "n00000" and on, with a large weight, which answer at the last port.
 * SIGUSR2 moves each member to the next port.
 */

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "proto/members/members.h"


#define NEWCOMERS        4
#define NEWCOMER_WEIGHT  100

static volatile sig_atomic_t  segment_is_over;
static volatile sig_atomic_t  segment_is_moving;
static volatile sig_atomic_t  segment_newcomers;
static volatile sig_atomic_t  segment_moves;    /* members go to the next
                                                   port */


static void
segment_on_signal(int signo)
{
    switch (signo) {

    case SIGHUP:
        segment_is_moving = !segment_is_moving;
        break;

    case SIGUSR1:
        segment_newcomers = NEWCOMERS;
        break;

    case SIGUSR2:
        segment_moves++;
        break;

    default:
        segment_is_over = 1;
        break;
    }
}


static uint64_t
segment_now_ms(void)
{
    struct timespec  ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);

    return (uint64_t) ts.tv_sec * 1000 + (uint64_t) ts.tv_nsec / 1000000;
}


static void
segment_set_port(llmgw_member_t *member, const char *port)
{
    snprintf(member->grpc, sizeof(member->grpc), "127.0.0.1:%s", port);
}


/* The n members, followed by the newcomers. */
static llmgw_member_t *
segment_members(size_t n, char **ports, size_t nports)
{
    size_t           i;
    llmgw_member_t  *members;

    members = calloc(n + NEWCOMERS, sizeof(llmgw_member_t));

    if (members == NULL) {
        return NULL;
    }

    for (i = 0; i < n + NEWCOMERS; i++) {
        snprintf(members[i].id, sizeof(members[i].id), "%c%05zu",
                 i < n ? 'm' : 'n', i < n ? i : i - n);
        snprintf(members[i].model_version, sizeof(members[i].model_version),
                 "v1");
        snprintf(members[i].address, sizeof(members[i].address),
                 "127.0.0.1:%zu", 1 + i % 65535);
        segment_set_port(&members[i], ports[i < n ? i % nports : nports - 1]);
        members[i].weight = i < n ? 1 : NEWCOMER_WEIGHT;
        members[i].epoch = 1;
        members[i].role = LLMGW_ROLE_REPLICA;
        members[i].liveness = LLMGW_LIVENESS_ALIVE;
        members[i].service = LLMGW_SERVICE_READY;
    }

    return members;
}


/* Runs until SIGTERM.  Returns 0, or -1 with the error printed. */
static int
segment_keep(llmgw_members_writer_t *writer, llmgw_member_t *members,
    const llmgw_member_t **published, size_t n, long period_ms, char **ports,
    size_t nports)
{
    int              moves;
    char             error[LLMGW_MEMBERS_ERROR_BYTES];
    size_t           i, turn;
    struct timespec  nap;

    for (i = 0; i < n + NEWCOMERS; i++) {
        published[i] = &members[i];
    }

    moves = 0;
    nap.tv_sec = period_ms / 1000;
    nap.tv_nsec = period_ms % 1000 * 1000000;

    for (turn = 0; !segment_is_over; turn++) {
        members[turn / 2 * 7 % n].weight = 1 + (segment_is_moving ? turn & 1
                                                                  : 0);

        for ( /* void */ ; moves != segment_moves; moves++) {
            for (i = 0; i < n; i++) {
                segment_set_port(&members[i],
                                 ports[(i + (size_t) moves + 1) % nports]);
            }
        }

        if (llmgw_members_heartbeat(writer, segment_now_ms(), error)
                != LLMGW_MEMBERS_DONE
            || llmgw_members_publish(writer, published, NULL,
                                     n + (size_t) segment_newcomers, 0)
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
    published = calloc(n + NEWCOMERS, sizeof(llmgw_member_t *));
    segment_is_moving = strcmp(argv[4], "moving") == 0;

    signal(SIGTERM, segment_on_signal);
    signal(SIGHUP, segment_on_signal);
    signal(SIGUSR1, segment_on_signal);
    signal(SIGUSR2, segment_on_signal);

    if (members == NULL || published == NULL
        || llmgw_members_writer_create(&writer, argv[1],
                                       (uint32_t) n + NEWCOMERS, error)
           != LLMGW_MEMBERS_DONE)
    {
        fprintf(stderr, "segment: %s: %s\n", argv[1],
                members != NULL && published != NULL ? error
                                                     : "out of memory");
        return 1;
    }

    rc = segment_keep(writer, members, published, n, atol(argv[3]), argv + 5,
                      (size_t) argc - 5);

    llmgw_members_writer_destroy(writer);
    free(members);
    free(published);

    return rc == 0 ? 0 : 1;
}
