
/*
 * A writer of JSON.
 */

#include <assert.h>
#include <inttypes.h>
#include <math.h>

#include "sim/report/figure/json.h"
#include "sim/report/figure/number.h"


/* Escapes a text; as in Go, also characters that have a meaning in HTML. */
static void
json_text(FILE *out, const char *text)
{
    const unsigned char  *p;

    putc('"', out);

    for (p = (const unsigned char *) text; *p != '\0'; p++) {

        if (*p == '"' || *p == '\\') {
            fprintf(out, "\\%c", *p);

        } else if (*p == '\n') {
            fputs("\\n", out);

        } else if (*p == '\t') {
            fputs("\\t", out);

        } else if (*p == '\r') {
            fputs("\\r", out);

        } else if (*p < 0x20 || *p == '<' || *p == '>' || *p == '&') {
            fprintf(out, "\\u%04x", *p);

        } else {
            putc(*p, out);
        }
    }

    putc('"', out);
}


static void
json_newline(report_json_t *j)
{
    if (j->indent > 0) {
        fprintf(j->out, "\n%*s", j->indent * j->depth, "");
    }
}


static void
json_member(report_json_t *j, const char *key)
{
    if (j->depth > 0) {
        if (j->any[j->depth - 1]) {
            putc(',', j->out);
        }

        j->any[j->depth - 1] = 1;
        json_newline(j);
    }

    if (key != NULL) {
        json_text(j->out, key);
        fputs(j->indent > 0 ? ": " : ":", j->out);
    }
}


static void
json_open(report_json_t *j, const char *key, char open, char close)
{
    assert(j->depth < REPORT_JSON_DEPTH);

    json_member(j, key);
    putc(open, j->out);

    j->close[j->depth] = close;
    j->any[j->depth++] = 0;
}


void
report_json_init(report_json_t *j, FILE *out, int indent)
{
    j->out = out;
    j->indent = indent;
    j->depth = 0;
}


void
report_json_object(report_json_t *j, const char *key)
{
    json_open(j, key, '{', '}');
}


void
report_json_array(report_json_t *j, const char *key)
{
    json_open(j, key, '[', ']');
}


void
report_json_end(report_json_t *j)
{
    j->depth--;

    if (j->any[j->depth]) {
        json_newline(j);
    }

    putc(j->close[j->depth], j->out);
}


void
report_json_int(report_json_t *j, const char *key, int64_t value)
{
    json_member(j, key);
    fprintf(j->out, "%" PRId64, value);
}


void
report_json_uint(report_json_t *j, const char *key, uint64_t value)
{
    json_member(j, key);
    fprintf(j->out, "%" PRIu64, value);
}


/* Numbers that are not finite become null, since JSON cannot express them. */
void
report_json_double(report_json_t *j, const char *key, double value)
{
    char  buf[REPORT_NUMBER_BYTES];

    if (!isfinite(value)) {
        report_json_null(j, key);
        return;
    }

    report_number(value, buf);
    json_member(j, key);
    fputs(buf, j->out);
}


void
report_json_bool(report_json_t *j, const char *key, int value)
{
    json_member(j, key);
    fputs(value ? "true" : "false", j->out);
}


void
report_json_string(report_json_t *j, const char *key, const char *value)
{
    json_member(j, key);
    json_text(j->out, value);
}


void
report_json_null(report_json_t *j, const char *key)
{
    json_member(j, key);
    fputs("null", j->out);
}
