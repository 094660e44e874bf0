
/*
 * Private to job.c and switch.c: a command that gives an order and waits for
 * its effect.
 */

#ifndef AGENT_JOB_H
#define AGENT_JOB_H

#include "agent/agent_inner.h"


struct agent_job_s {
    agent_t         *agent;
    command_peer_t  *peer;
    agent_job_t     *next;
    char             id[LLMGW_MEMBERS_NAME_BYTES];
    order_verb_t     verb;
    uint64_t         order_id;          /* 0: it is accepted */
    uint64_t         order_epoch;       /* the target's, that it is for */
    uint64_t         order_until_us;
    uint64_t         order_again_us;    /* it is given again then; 0: never */
    uint64_t         began_us;
    uint64_t         accepted_us;
    uint64_t         deadline_us;
    uint64_t         drained_us;        /* last time that the drain stood */
    uint64_t         started_us;        /* and that it was not STARTING */
    uint64_t         said_us;
    uint64_t         asked_us;
    int64_t          said_active;
    char             group[LLMGW_GROUP_BYTES];  /* of a SWITCH, */
    uint64_t         group_epoch;               /* and away from which */
};

/* A second without news is too long for those who wait for a job's lines. */
#define AGENT_JOB_SAY_US     1000000ULL


/* job.c */

uint64_t agent_job_now_us(const agent_job_t *job);

/* {"ok":false}, about that member or group. */
json_t *agent_job_refusal(const char *id, const char *code,
    const char *text);

/* NULL: out of memory, which the peer is told. */
agent_job_t *agent_job_create(agent_t *agent, command_peer_t *peer,
    order_verb_t verb, const char *id, uint64_t timeout_us);

/* Gives the order; the job may end within. */
void agent_job_order(agent_job_t *job);

/* The last line; the job is gone. */
void agent_job_end(agent_job_t *job, json_t *last);
void agent_job_fail(agent_job_t *job, const char *code, const char *text);


/* switch.c */

/* In each event-loop iteration. */
void agent_switch_look(agent_job_t *job);

/* What became of the order: it is judged here, and the job goes on; 0: it is
   for job.c to judge. */
int agent_switch_settle(agent_job_t *job, order_rc_t rc);

#endif /* AGENT_JOB_H */
