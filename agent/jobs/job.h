
/*
 * Private to this room: a command that gives an order and waits for its effect.
 */

#ifndef JOB_H
#define JOB_H

#include "jobs/jobs_inner.h"


struct job_s {
    jobs_t          *jobs;
    command_peer_t  *peer;
    job_t     *next;
    char             id[LLMGW_MEMBERS_NAME_BYTES];
    order_verb_t     verb;
    uint64_t         order_id;          /* 0: the order was accepted */
    uint64_t         order_epoch;       /* epoch of the target that it is for */
    uint64_t         order_until_us;
    uint64_t         order_again_us;    /* when to give it again; 0: never */
    uint64_t         began_us;
    uint64_t         accepted_us;
    uint64_t         deadline_us;
    uint64_t         drained_us;        /* last time when the drain was seen */
    uint64_t         started_us;        /* last time when it was not STARTING */
    uint64_t         said_us;
    uint64_t         asked_us;
    int64_t          said_active;
    char             group[LLMGW_GROUP_BYTES];  /* of a SWITCH: the group, */
    uint64_t         group_epoch;               /* and the epoch of its active
                                                   one */
};

/* A client gets a line at least this often. */
#define JOB_SAY_US     1000000ULL


/* job.c */

/* {"ok":false}, with the id of that member or group. */
json_t *job_refusal(const char *id, const char *code,
    const char *text);

/* Makes a job.  NULL: out of memory, which was answered. */
job_t *job_create(jobs_t *jobs, command_peer_t *peer,
    order_verb_t verb, const char *id, uint64_t timeout_us);

/* Gives the order; the job may end within this call. */
void job_order(job_t *job);

/* Ends the job with its last line; the job is freed. */
void job_end(job_t *job, json_t *last);
void job_fail(job_t *job, const char *code, const char *text);


/* For the control socket; data is the jobs_t. */
void job_drain(void *data, command_peer_t *peer, const char *id,
    uint64_t timeout_ms, int is_forced);
void job_undrain(void *data, command_peer_t *peer, const char *id);

/* Checks the job, in each event-loop iteration. */
void job_look(job_t *job);

/* Takes the answer to its order. */
void job_settle(job_t *job, order_rc_t rc);


/* switch.c */

/* For the control socket; data is the jobs_t. */
void switch_begin(void *data, command_peer_t *peer, const char *group,
    uint64_t timeout_ms);

/* Checks a switch, in each event-loop iteration. */
void switch_look(job_t *job);

/* Takes the answer to a switch's order.  1: it was handled, and the job
   continues; 0: job.c handles it. */
int switch_settle(job_t *job, order_rc_t rc);

#endif /* JOB_H */
