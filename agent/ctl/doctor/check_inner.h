
/* Private to the checks: how they report, and their table. */

#ifndef DOCTOR_CHECK_INNER_H
#define DOCTOR_CHECK_INNER_H

#include <string.h>

#include "ctl/doctor/check.h"
#include "ctl/field.h"


#define DOCTOR_MAX_NEEDS  3

typedef struct {
    const char  *name;
    const char  *needs[DOCTOR_MAX_NEEDS];   /* names of the facts it needs */
    const char  *good;                      /* reported if all is well */
    void       (*run)(const json_t *facts, doctor_report_t *report);
} doctor_check_t;


/*
 * Reports a fault.  remedy: what to do, as a sentence; format: what was found.
 */
void doctor_say(doctor_report_t *report, doctor_level_t level,
    const char *remedy, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* The reason if a fact, or a part of one, is missing: it is {"why": TEXT}. */
const char *doctor_why(const json_t *fact);

/* check_cluster.c */
void doctor_check_agent(const json_t *facts, doctor_report_t *report);
void doctor_check_versions(const json_t *facts, doctor_report_t *report);
void doctor_check_members(const json_t *facts, doctor_report_t *report);
void doctor_check_clock(const json_t *facts, doctor_report_t *report);
void doctor_check_udp(const json_t *facts, doctor_report_t *report);
void doctor_check_keyring(const json_t *facts, doctor_report_t *report);
void doctor_check_segment(const json_t *facts, doctor_report_t *report);

/* check_nginx.c */
void doctor_check_gateway(const json_t *facts, doctor_report_t *report);
void doctor_check_module(const json_t *facts, doctor_report_t *report);
void doctor_check_connections(const json_t *facts, doctor_report_t *report);
void doctor_check_descriptors(const json_t *facts, doctor_report_t *report);
void doctor_check_streams(const json_t *facts, doctor_report_t *report);
void doctor_check_keepalive(const json_t *facts, doctor_report_t *report);
void doctor_check_body(const json_t *facts, doctor_report_t *report);
void doctor_check_zone(const json_t *facts, doctor_report_t *report);
void doctor_check_models(const json_t *facts, doctor_report_t *report);

/* check_files.c */
void doctor_check_certs(const json_t *facts, doctor_report_t *report);
void doctor_check_keys(const json_t *facts, doctor_report_t *report);
void doctor_check_disk(const json_t *facts, doctor_report_t *report);
void doctor_check_memory(const json_t *facts, doctor_report_t *report);

/* check_peers.c */
void doctor_check_tcp(const json_t *facts, doctor_report_t *report);
void doctor_check_replicas(const json_t *facts, doctor_report_t *report);
void doctor_check_engines(const json_t *facts, doctor_report_t *report);
void doctor_check_context(const json_t *facts, doctor_report_t *report);

#endif /* DOCTOR_CHECK_INNER_H */
