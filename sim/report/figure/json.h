
/*
 * Writes JSON to a file, member by member, in the order of the calls.
 *
 * Members keep their order and doubles their shortest text (number.h), so equal
 * results give equal bytes.  Each level is indented by `indent` spaces, as Go's
 * MarshalIndent does; 0: everything is on one line, without blanks.
 *
 * The key is NULL for values of an array, and for the outermost value.
 */

#ifndef REPORT_JSON_H
#define REPORT_JSON_H

#include <stdint.h>
#include <stdio.h>


#define REPORT_JSON_DEPTH  16       /* no report is as deep */


typedef struct {
    FILE    *out;
    int      indent;
    int      depth;
    char     close[REPORT_JSON_DEPTH];
    char     any[REPORT_JSON_DEPTH];    /* by level: it has a member already */
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
