
/* A trace, written in the form in which BLIS writes it. */

#include "sim/work/trace/trace.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/work/trace/columns.h"

typedef struct {
    const work_trace_t  *trace;
    FILE                *f;
    int                  has[WORK_NCOLUMNS];
} writer_t;


/* Writes the shortest text that is read back as the same number. */
static void
write_double(FILE *f, double value)
{
    int   precision;
    char  text[40];

    for (precision = 1; precision <= 17; precision++) {
        snprintf(text, sizeof(text), "%.*g", precision, value);

        if (strtod(text, NULL) == value) {
            break;
        }
    }

    fputs(text, f);
}


/* Writes a text so that YAML reads the same text: quoted if it must be. */
static void
write_yaml_text(FILE *f, const char *key, const char *text)
{
    char  *end;

    (void) !strtod(text, &end);
    fprintf(f, "%s: ", key);

    if (text[0] != '\0' && *end != '\0'
        && strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                  "0123456789_./+-") == strlen(text)
        && text[0] != '-' && strcmp(text, "null") != 0
        && strcmp(text, "true") != 0 && strcmp(text, "false") != 0)
    {
        fprintf(f, "%s\n", text);
        return;
    }

    fputc('"', f);

    for (; *text != '\0'; text++) {
        if ((unsigned char) *text < 0x20) {
            fprintf(f, "\\x%02x", (unsigned char) *text);
            continue;
        }

        if (*text == '"' || *text == '\\') {
            fputc('\\', f);
        }

        fputc(*text, f);
    }

    fputs("\"\n", f);
}


static void
write_yaml_double(FILE *f, const char *key, double value)
{
    if (value != 0) {
        fprintf(f, "%s: ", key);
        write_double(f, value);
        fputc('\n', f);
    }
}


static void
write_yaml_int(FILE *f, const char *key, int64_t value)
{
    if (value != 0) {
        fprintf(f, "%s: %lld\n", key, (long long) value);
    }
}


static void
write_server(FILE *f, const work_trace_server_t *s)
{
    fputs("server:\n", f);

    if (s->type != NULL) {
        write_yaml_text(f, "    type", s->type);
    }

    if (s->model != NULL) {
        write_yaml_text(f, "    model", s->model);
    }

    write_yaml_int(f, "    tensor_parallel", s->tensor_parallel);
    write_yaml_int(f, "    max_num_seqs", s->max_num_seqs);
    write_yaml_int(f, "    block_size", s->block_size);
    write_yaml_double(f, "    gpu_memory_utilization",
                      s->gpu_memory_utilization);
    write_yaml_int(f, "    max_model_len", s->max_model_len);
}


static void
write_kv(FILE *f, const work_trace_kv_t *kv)
{
    fputs("observed_kv_metrics:\n", f);
    write_yaml_text(f, "    source", kv->source != NULL ? kv->source : "");
    fputs("    hit_rate: ", f);
    write_double(f, kv->hit_rate);
    fprintf(f, "\n    block_hits: %lld\n    block_queries: %lld\n",
            (long long) kv->block_hits, (long long) kv->block_queries);
    write_yaml_double(f, "    read_time_total", kv->read_time_total);
    write_yaml_double(f, "    write_time_total", kv->write_time_total);

    if (kv->vllm_commit != NULL) {
        write_yaml_text(f, "    vllm_commit", kv->vllm_commit);
    }
}


static int
slo_order(const void *a, const void *b)
{
    const work_slo_t  *x, *y;

    x = a;
    y = b;

    return strcmp(x->of.name, y->of.name);
}


/*
 * Writes targets sorted by class, as BLIS does; the header's list is not
 * changed.
 */
static void
write_slos(FILE *f, const work_yaml_list_t *slos)
{
    size_t       i;
    work_slo_t  *sorted;

    sorted = malloc(slos->n * sizeof(*sorted));

    if (sorted == NULL) {
        errno = ENOMEM;
        return;
    }

    memcpy(sorted, slos->items, slos->n * sizeof(*sorted));
    qsort(sorted, slos->n, sizeof(*sorted), slo_order);
    fputs("goodput_slo_targets:\n", f);

    for (i = 0; i < slos->n; i++) {
        fprintf(f, "    %s:\n", sorted[i].of.name);
        write_yaml_double(f, "        ttft_ms", sorted[i].ttft_ms);
        write_yaml_double(f, "        itl_ms", sorted[i].itl_ms);
        write_yaml_double(f, "        e2e_ms", sorted[i].e2e_ms);
    }

    free(sorted);
}


static void
write_header(const work_trace_header_t *h, FILE *f)
{
    fprintf(f, "trace_version: 3\ntime_unit: microseconds\n");

    if (h->created_at != NULL) {
        write_yaml_text(f, "created_at", h->created_at);
    }

    write_yaml_text(f, "mode", h->mode != NULL ? h->mode : "generated");
    fprintf(f, "warm_up_requests: %lld\n", (long long) h->warm_up_requests);

    if (h->has_seed) {
        fprintf(f, "workload_seed: %lld\n", (long long) h->workload_seed);
    }

    if (h->workload_spec != NULL) {
        write_yaml_text(f, "workload_spec", h->workload_spec);
    }

    if (h->session_context_growth != NULL) {
        write_yaml_text(f, "session_context_growth",
                        h->session_context_growth);
    }

    if (h->server != NULL) {
        write_server(f, h->server);
    }

    if (h->network != NULL) {
        fputs("network:\n", f);
        write_yaml_double(f, "    measured_rtt_ms",
                          h->network->measured_rtt_ms);
    }

    if (h->slos.n > 0) {
        write_slos(f, &h->slos);
    }

    if (h->observed_kv != NULL) {
        write_kv(f, h->observed_kv);
    }
}


/*
 * Writes a field as in RFC 4180; as in Go, one that begins with a blank is
 * quoted.
 */
static void
write_csv_text(FILE *f, const char *text)
{
    if (text[0] != ' ' && text[0] != '\t'
        && strpbrk(text, ",\"\r\n") == NULL)
    {
        fputs(text, f);
        return;
    }

    fputc('"', f);

    for (; *text != '\0'; text++) {
        if (*text == '"') {
            fputc('"', f);
        }

        fputc(*text, f);
    }

    fputc('"', f);
}


static void
write_field(FILE *f, const column_t *column, const void *field)
{
    switch (column->kind) {

    case COLUMN_NAME:
        write_csv_text(f, (*(const work_name_t *const *) field)->text);
        break;

    case COLUMN_TEXT:
        write_csv_text(f, *(const char *const *) field);
        break;

    case COLUMN_U32:
        fprintf(f, "%u", *(const uint32_t *) field);
        break;

    case COLUMN_I32:
        fprintf(f, "%d", *(const int32_t *) field);
        break;

    case COLUMN_I64:
        fprintf(f, "%lld", (long long) *(const int64_t *) field);
        break;

    case COLUMN_BOOL:
        fputs(*(const uint8_t *) field ? "true" : "false", f);
        break;

    case COLUMN_RATIO:
        write_double(f, *(const double *) field);
        break;
    }
}


/* Selects the columns: an optional one is written if a row needs it. */
static void
writer_choose(writer_t *w)
{
    int                   real;
    size_t                i;
    const work_record_t  *r;
    int                   priority, target, id, adapter, think;

    real = w->trace->header.mode != NULL
           && strcmp(w->trace->header.mode, "real") == 0;
    priority = target = id = adapter = think = 0;

    for (i = 0; i < w->trace->n; i++) {
        r = &w->trace->records[i];
        priority |= r->vllm_priority != 0 || (real && r->slo_class->len > 0);
        target |= r->slo_target_us > 0;
        id |= real && r->x_request_id[0] != '\0';
        adapter |= r->adapter->len > 0;
        think |= r->think_time_us != 0;
    }

    for (i = 0; i < WORK_NCOLUMNS; i++) {
        switch (work_columns[i].offset) {
        case offsetof(work_record_t, vllm_priority):
            w->has[i] = priority;
            break;
        case offsetof(work_record_t, slo_target_us):
            w->has[i] = target;
            break;
        case offsetof(work_record_t, x_request_id):
            w->has[i] = id;
            break;
        case offsetof(work_record_t, adapter):
            w->has[i] = adapter;
            break;
        case offsetof(work_record_t, think_time_us):
            w->has[i] = think;
            break;
        default:
            w->has[i] = 1;
        }
    }
}


static void
write_data(const work_trace_t *trace, FILE *f)
{
    size_t       i, c;
    writer_t     w;
    const char  *record;

    w.trace = trace;
    w.f = f;
    writer_choose(&w);

    for (c = 0; c < WORK_NCOLUMNS; c++) {
        if (w.has[c]) {
            fprintf(f, "%s%s", c > 0 ? "," : "", work_columns[c].name);
        }
    }

    fputc('\n', f);

    for (i = 0; i < trace->n; i++) {
        record = (const char *) &trace->records[i];

        for (c = 0; c < WORK_NCOLUMNS; c++) {
            if (w.has[c]) {
                fputs(c > 0 ? "," : "", f);
                write_field(f, &work_columns[c],
                            record + work_columns[c].offset);
            }
        }

        fputc('\n', f);
    }
}


static FILE *
open_file(const char *path, work_error_t *error)
{
    FILE  *f;

    f = fopen(path, "wb");

    if (f == NULL) {
        work_fail(error, path, 0, "%s", strerror(errno));
    }

    return f;
}


static int
close_file(FILE *f, const char *path, work_error_t *error)
{
    int  failed;

    failed = ferror(f);
    failed |= fclose(f) != 0;

    return failed ? work_fail(error, path, 0, "%s", strerror(errno)) : 0;
}


int
work_trace_write(const work_trace_t *trace, const char *header_path,
    const char *data_path, work_error_t *error)
{
    FILE  *f;

    f = open_file(header_path, error);

    if (f == NULL) {
        return -1;
    }

    write_header(&trace->header, f);

    if (close_file(f, header_path, error) != 0) {
        return -1;
    }

    f = open_file(data_path, error);

    if (f == NULL) {
        return -1;
    }

    write_data(trace, f);

    return close_file(f, data_path, error);
}


void
work_trace_add_request(work_trace_t *trace, const work_request_t *r,
    const char *status, int64_t first_chunk_us, int64_t last_chunk_us)
{
    work_record_t  *to;
    work_names_t   *names;

    to = work_trace_add(trace);
    names = &trace->names;
    to->request_id = (int64_t) trace->n - 1;
    to->client = work_name(names, r->client->text, r->client->len);
    to->tenant = work_name(names, r->tenant->text, r->tenant->len);
    to->slo_class = work_name(names, r->slo_class->text, r->slo_class->len);
    to->session = work_name(names, r->session->text, r->session->len);
    to->model = work_name(names, r->model->text, r->model->len);
    to->adapter = work_name(names, r->adapter->text, r->adapter->len);
    to->prefix_group = work_name(names, r->prefix_group->text,
                                 r->prefix_group->len);
    to->status = work_name(names, status, strlen(status));
    to->round = r->round;
    to->prefix_length = r->prefix_tokens;
    to->input_tokens = r->input_tokens - r->prefix_tokens;
    to->output_tokens = r->output_tokens;
    to->text_tokens = r->text_tokens;
    to->image_tokens = r->image_tokens;
    to->audio_tokens = r->audio_tokens;
    to->video_tokens = r->video_tokens;
    to->vllm_priority = r->priority;
    to->streaming = r->streaming;
    to->reason_ratio = r->reason_ratio;
    to->deadline_us = r->deadline_us;
    to->slo_target_us = r->slo_target_us;
    to->think_time_us = r->think_time_us;
    to->arrival_us = r->arrival_us;
    to->send_us = r->arrival_us;
    to->first_chunk_us = first_chunk_us;
    to->last_chunk_us = last_chunk_us;
}
