
/*
 * Writes JSON to a file, member by member, in the order of the calls.
 *
 * Members keep their order and doubles their shortest text (number.h),
 * so equal results give equal bytes.  `indent` spaces a level, as Go's
 * MarshalIndent lays it out; 0: everything on one line, without blanks.
 *
 * A key is NULL inside an array and at the top.
 */

#ifndef REPORT_JSON_H
#define REPORT_JSON_H

#include <stdint.h>
#include <stdio.h>


#define REPORT_JSON_DEPTH  16       /* deeper than any report is */


typedef struct {
    FILE    *out;
    int      indent;
    int      depth;
    char     close[REPORT_JSON_DEPTH];
    char     any[REPORT_JSON_DEPTH];    /* the level has a member */
} report_json_t;


void report_json_init(report_json_t *j, FILE *out, int indent);

void report_json_object(report_json_t *j, const char *key);
void report_json_array(report_json_t *j, const char *key);
void report_json_end(report_json_t *j);

void report_json_int(report_json_t *j, const char *key, int64_t value);
void report_json_uint(report_json_t *j, const char *key, uint64_t value);
void report_json_double(report_json_t *j, const char *key, double value);
void report_json_bool(report_json_t *j, const char *key, int value);
void report_json_string(report_json_t *j, const char *key,
    const char *value);
void report_json_null(report_json_t *j, const char *key);

#endif /* REPORT_JSON_H */
