
/*
 * One report of a replica to its agent, as it stands on the control socket:
 *
 *   {"cmd":"report","replica_start":1763650000000,"pid":123,
 *    "model_version":"v1","max_capacity":4,"active_requests":0,
 *    "draining":false}
 *
 * and with "goodbye":true as its last word.  docs/control.md has it for
 * those who write an engine.
 */

#ifndef REPORT_H
#define REPORT_H

#include <jansson.h>
#include <stdint.h>

#include "proto/members/members.h"


typedef struct {
    uint64_t  replica_start_ms;     /* wall clock */
    int64_t   pid;
    char      model_version[LLMGW_MEMBERS_NAME_BYTES];
    uint32_t  max_capacity;         /* 0: unlimited */
    uint32_t  active_requests;
    int       draining;
    int       goodbye;
} report_t;


/* 0, or -1 and in *field the name of what is missing or wrong. */
int report_decode(report_t *report, const json_t *json, const char **field);

#endif /* REPORT_H */
