
/*
 * nginx's access log as a trace: one JSON object a line, in the format of
 * docs/logging.md.
 *
 * A line is written when its request ends, so a request came request_time
 * before `msec` (or before `time`, which has whole seconds only).  Without
 * `prompt_tokens` the lengths of prompts are unknown.  Lines without a code of
 * this module, which are those of other locations, are skipped.
 */

#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "sim/work/file.h"
#include "sim/work/trace/trace.h"

#define LINE_MAX_S  1e7     /* a longer request is a mistake */


static const char *
text_of(const json_t *line, const char *key)
{
    const char  *text;

    text = json_string_value(json_object_get(line, key));

    return text != NULL ? text : "";
}


/* A number as nginx logs it, as a text; if that is "" or "-", `none`. */
static double
number_of(const json_t *line, const char *key, double none)
{
    char         *end;
    double        value;
    const json_t  *got;

    got = json_object_get(line, key);

    if (json_is_number(got)) {
        return json_number_value(got);
    }

    value = strtod(text_of(line, key), &end);

    return end != text_of(line, key) && *end == '\0' ? value : none;
}


/* When the line was written, in seconds; negative: unknown. */
static double
end_s(const json_t *line)
{
    int        hours, minutes;
    char       sign;
    double     at;
    struct tm  tm;
    const char *rest;

    at = number_of(line, "msec", -1);

    if (at >= 0) {
        return at;
    }

    memset(&tm, 0, sizeof(tm));
    rest = strptime(text_of(line, "time"), "%Y-%m-%dT%H:%M:%S", &tm);

    if (rest == NULL) {
        return -1;
    }

    at = (double) timegm(&tm);

    if (sscanf(rest, "%c%2d:%2d", &sign, &hours, &minutes) == 3) {
        at -= (sign == '-' ? -1 : 1) * (hours * 3600.0 + minutes * 60.0);
    }

    return at;
}


static const work_name_t *
name_of(work_trace_t *trace, const json_t *line, const char *key)
{
    const char  *text;

    text = text_of(line, key);

    return work_name(&trace->names, text, strlen(text));
}


/*
 * Adds the record of a line.  0, or -1 and *error: a time is missing or wrong.
 */
static int
add_line(work_trace_t *trace, const json_t *line, const char *path,
    size_t number, work_error_t *error)
{
    int             is_ok;
    double          end, took, first, tokens, prompt;
    work_record_t  *r;

    end = end_s(line);
    took = number_of(line, "request_time", -1);
    first = number_of(line, "first_token_time", -1);
    tokens = number_of(line, "completion_tokens", number_of(line, "tokens",
                                                            0));
    prompt = number_of(line, "prompt_tokens", 0);

    if (!(end >= 0) || !(took >= 0) || took > LINE_MAX_S
        || !(tokens >= 0 && tokens <= WORK_MAX_TOKENS)
        || !(prompt >= 0 && prompt <= WORK_MAX_TOKENS))
    {
        return work_fail(error, path, number, "a request lacks times (\"msec\" "
                         "or \"time\", and \"request_time\") or numbers of "
                         "tokens");
    }

    if (trace->n == WORK_MAX_REQUESTS) {
        return work_fail(error, path, number, "more than %d requests",
                         WORK_MAX_REQUESTS);
    }

    is_ok = strcmp(text_of(line, "code"), "OK") == 0;
    r = work_trace_add(trace);
    r->line = (uint32_t) number;
    r->client = name_of(trace, line, "client");
    r->model = name_of(trace, line, "model");
    r->tenant = name_of(trace, line, "tenant_id");
    r->slo_class = name_of(trace, line, "slo_class");
    r->finish_reason = name_of(trace, line, "finish_reason");
    r->status = is_ok ? work_name(&trace->names, "ok", 2)
                      : strcmp(text_of(line, "code"), "DEADLINE_EXCEEDED") == 0
                      ? work_name(&trace->names, "timeout", 7)
                      : work_name(&trace->names, "error", 5);
    r->error_message = work_arena_text(&trace->arena, text_of(line, "reason"),
                                       strlen(text_of(line, "reason")));
    r->x_request_id = work_arena_text(&trace->arena,
                                      text_of(line, "request_id"),
                                      strlen(text_of(line, "request_id")));
    r->streaming = 1;
    r->input_tokens = r->server_input_tokens = (uint32_t) prompt;
    r->output_tokens = r->num_chunks = (uint32_t) tokens;
    r->arrival_us = (int64_t) ((end - took) * 1e6);
    r->send_us = r->arrival_us;
    r->last_chunk_us = is_ok ? (int64_t) (end * 1e6) : 0;
    r->first_chunk_us = first >= 0 ? r->arrival_us + (int64_t) (first * 1e6)
                                   : 0;

    return 0;
}


static int
arrival_order(const void *a, const void *b)
{
    const work_record_t  *x, *y;

    x = a;
    y = b;

    if (x->arrival_us != y->arrival_us) {
        return x->arrival_us < y->arrival_us ? -1 : 1;
    }

    return x->line < y->line ? -1 : 1;
}


/* Sorts records by arrival, and lets the first arrive at 1 us. */
static void
arrange(work_trace_t *trace)
{
    size_t          i;
    int64_t         began;
    work_record_t  *r;

    if (trace->n == 0) {
        return;
    }

    qsort(trace->records, trace->n, sizeof(trace->records[0]), arrival_order);
    began = trace->records[0].arrival_us - 1;

    for (i = 0; i < trace->n; i++) {
        r = &trace->records[i];
        r->request_id = (int64_t) i;
        r->arrival_us -= began;
        r->send_us -= began;
        r->first_chunk_us -= r->first_chunk_us > 0 ? began : 0;
        r->last_chunk_us -= r->last_chunk_us > 0 ? began : 0;
    }
}


int
work_trace_read_access_log(work_trace_t *trace, const char *path,
    size_t *skipped, work_error_t *error)
{
    int           rc;
    char         *bytes, *at, *next;
    size_t        len, number;
    json_t       *line;
    json_error_t  wrong;

    bytes = work_file_read(path, &len, error);

    if (bytes == NULL) {
        return -1;
    }

    rc = 0;
    *skipped = 0;
    trace->data_file = work_arena_text(&trace->arena, path, strlen(path));

    for (at = bytes, number = 1; rc == 0 && at < bytes + len;
         at = next, number++)
    {
        next = memchr(at, '\n', (size_t) (bytes + len - at));
        next = next != NULL ? next + 1 : bytes + len;
        line = json_loadb(at, (size_t) (next - at), 0, &wrong);

        if (!json_is_object(line)) {
            rc = work_fail(error, path, number, "no JSON object: %s",
                           line == NULL ? wrong.text : "another value");

        } else if (text_of(line, "code")[0] == '\0'
                   || strcmp(text_of(line, "code"), "-") == 0)
        {
            (*skipped)++;

        } else {
            rc = add_line(trace, line, path, number, error);
        }

        json_decref(line);
    }

    free(bytes);
    arrange(trace);
    trace->header.mode = "real";

    return rc;
}
