
/*
 * What the doctor checks, and what it reports.
 *
 * A check is a row of one table: its name, the facts that it needs, and a
 * function of these facts.  The function is pure: everything that takes time or
 * may fail was done when the facts were gathered (gather.h).  It reports each
 * fault in one line; if it reports none, the runner reports that all is well,
 * in the words of the row.  If a fact that a check needs is missing, the check
 * is not run, and the line says why: what was not checked is never reported as
 * ok.
 *
 *     ok         as it should be
 *     warning    works now, and will not under load, or soon
 *     wrong      does not work now, or not as it was configured to
 *     unchecked  a fact is missing
 *
 * docs/doctor.md has a section for each check.
 */

#ifndef DOCTOR_CHECK_H
#define DOCTOR_CHECK_H

#include <jansson.h>


typedef enum {
    DOCTOR_OK = 0,
    DOCTOR_UNCHECKED,
    DOCTOR_WARNING,
    DOCTOR_WRONG,
    DOCTOR_NLEVELS
} doctor_level_t;

/* "ok", ... */
const char *doctor_level_name(doctor_level_t level);

typedef struct {
    json_t      *lines;                 /* of {"check", "level", "text",
                                           "do"} */
    unsigned     n[DOCTOR_NLEVELS];
    const char  *check;                 /* name of the check being run */
} doctor_report_t;

/* Runs all checks over these facts; lines must be an empty array. */
void doctor_check(const json_t *facts, doctor_report_t *report);

#endif /* DOCTOR_CHECK_H */
