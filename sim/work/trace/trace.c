
/* A trace's header, and its records in memory. */

#include "sim/work/trace/trace.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/work/file.h"

#define AT(type, field)  offsetof(work_trace_##type##_t, field)
#define ROUND_MS         1e9


static const work_yaml_field_t  server_keys[] = {
    { "type", WORK_YAML_TEXT, AT(server, type), 0, 0, NULL, 0, 0 },
    { "model", WORK_YAML_TEXT, AT(server, model), 0, 0, NULL, 0, 0 },
    { "tensor_parallel", WORK_YAML_INT, AT(server, tensor_parallel),
      0, 1e6, NULL, 0, 0 },
    { "max_num_seqs", WORK_YAML_INT, AT(server, max_num_seqs),
      0, 1e9, NULL, 0, 0 },
    { "block_size", WORK_YAML_INT, AT(server, block_size),
      0, 1e9, NULL, 0, 0 },
    { "gpu_memory_utilization", WORK_YAML_DOUBLE,
      AT(server, gpu_memory_utilization), 0, 1, NULL, 0, 0 },
    { "max_model_len", WORK_YAML_INT, AT(server, max_model_len),
      0, 1e12, NULL, 0, 0 },
    { NULL, 0, 0, 0, 0, NULL, 0, 0 }
};

static const work_yaml_field_t  network_keys[] = {
    { "measured_rtt_ms", WORK_YAML_DOUBLE, AT(network, measured_rtt_ms),
      0, ROUND_MS, NULL, 0, 0 },
    { NULL, 0, 0, 0, 0, NULL, 0, 0 }
};

static const work_yaml_field_t  kv_keys[] = {
    { "source", WORK_YAML_TEXT, AT(kv, source), 0, 0, NULL, 0, 0 },
    { "hit_rate", WORK_YAML_DOUBLE, AT(kv, hit_rate), 0, 1, NULL, 0, 0 },
    { "block_hits", WORK_YAML_INT, AT(kv, block_hits),
      0, 0x1p53, NULL, 0, 0 },
    { "block_queries", WORK_YAML_INT, AT(kv, block_queries),
      0, 0x1p53, NULL, 0, 0 },
    { "read_time_total", WORK_YAML_DOUBLE, AT(kv, read_time_total),
      0, 1e15, NULL, 0, 0 },
    { "write_time_total", WORK_YAML_DOUBLE, AT(kv, write_time_total),
      0, 1e15, NULL, 0, 0 },
    { "vllm_commit", WORK_YAML_TEXT, AT(kv, vllm_commit), 0, 0, NULL, 0, 0 },
    { NULL, 0, 0, 0, 0, NULL, 0, 0 }
};

static const work_yaml_field_t  header_keys[] = {
    { "trace_version", WORK_YAML_INT, AT(header, version),
      1, 3, NULL, 0, 0 },
    { "time_unit", WORK_YAML_TEXT, AT(header, time_unit), 0, 0, NULL, 0, 0 },
    { "created_at", WORK_YAML_TEXT, AT(header, created_at),
      0, 0, NULL, 0, 0 },
    { "mode", WORK_YAML_TEXT, AT(header, mode), 0, 0, NULL, 0, 0 },
    { "warm_up_requests", WORK_YAML_INT, AT(header, warm_up_requests),
      0, WORK_MAX_REQUESTS, NULL, 0, 0 },
    { "workload_seed", WORK_YAML_INT, AT(header, workload_seed),
      0, 0, NULL, 0, AT(header, has_seed) },
    { "workload_spec", WORK_YAML_TEXT, AT(header, workload_spec),
      0, 0, NULL, 0, 0 },
    { "session_context_growth", WORK_YAML_TEXT,
      AT(header, session_context_growth), 0, 0, NULL, 0, 0 },
    { "server", WORK_YAML_MAP, AT(header, server), 0, 0, server_keys,
      sizeof(work_trace_server_t), 0 },
    { "network", WORK_YAML_MAP, AT(header, network), 0, 0, network_keys,
      sizeof(work_trace_network_t), 0 },
    { "goodput_slo_targets", WORK_YAML_NAMED, AT(header, slos), 0, 0,
      work_slo_keys, sizeof(work_slo_t), 0 },
    { "kv_offload", WORK_YAML_REFUSED, 0, 0, 0, NULL, 0, 0 },
    { "observed_kv_metrics", WORK_YAML_MAP, AT(header, observed_kv), 0, 0,
      kv_keys, sizeof(work_trace_kv_t), 0 },
    { NULL, 0, 0, 0, 0, NULL, 0, 0 }
};


void
work_trace_init(work_trace_t *trace)
{
    memset(trace, 0, sizeof(*trace));
    work_names_init(&trace->names);
    trace->data_file = "trace";
}


void
work_trace_done(work_trace_t *trace)
{
    free(trace->records);
    work_names_done(&trace->names);
    work_arena_done(&trace->arena);
    memset(trace, 0, sizeof(*trace));
}


work_record_t *
work_trace_add(work_trace_t *trace)
{
    work_record_t      *r;
    const work_name_t  *none;

    work_grow(&trace->records, &trace->max, trace->n + 1,
              sizeof(work_record_t));

    none = work_name(&trace->names, "", 0);
    r = &trace->records[trace->n++];
    memset(r, 0, sizeof(*r));
    r->client = r->tenant = r->slo_class = r->session = none;
    r->prefix_group = r->model = r->adapter = none;
    r->status = r->finish_reason = none;
    r->error_message = r->x_request_id = "";

    return r;
}


/* Checks what the table of keys cannot check. */
static int
header_check(const work_trace_header_t *h, const char *path,
    work_error_t *error)
{
    if (h->time_unit != NULL && strcmp(h->time_unit, "microseconds") != 0
        && strcmp(h->time_unit, "us") != 0)
    {
        return work_fail(error, path, h->at.line,
                         "\"time_unit\" is \"%.40s\", not \"microseconds\"",
                         h->time_unit);
    }

    if (h->mode != NULL && strcmp(h->mode, "real") != 0
        && strcmp(h->mode, "generated") != 0
        && strcmp(h->mode, "replayed") != 0)
    {
        return work_fail(error, path, h->at.line, "\"mode\" is \"%.40s\", not "
                         "\"real\", \"generated\" or \"replayed\"", h->mode);
    }

    if (h->session_context_growth != NULL
        && h->session_context_growth[0] != '\0'
        && strcmp(h->session_context_growth, "accumulate") != 0)
    {
        return work_fail(error, path, h->at.line, "\"session_context_growth\" "
                         "is \"%.40s\", not \"accumulate\"",
                         h->session_context_growth);
    }

    return 0;
}


int
work_trace_read_header(work_trace_t *trace, const char *path,
    const char *bytes, size_t len, work_error_t *error)
{
    if (work_yaml_parse(header_keys, &trace->header, path, bytes, len,
                        &trace->arena, error) != 0)
    {
        return -1;
    }

    return header_check(&trace->header, path, error);
}


int
work_trace_read(work_trace_t *trace, const char *header_path,
    const char *data_path, work_error_t *error)
{
    int      rc;
    char    *bytes;
    size_t   len;

    bytes = work_file_read(header_path, &len, error);

    if (bytes == NULL) {
        return -1;
    }

    rc = work_trace_read_header(trace, header_path, bytes, len, error);
    free(bytes);

    if (rc != 0) {
        return -1;
    }

    bytes = work_file_read(data_path, &len, error);

    if (bytes == NULL) {
        return -1;
    }

    rc = work_trace_read_data(trace, data_path, bytes, len, error);
    free(bytes);

    return rc;
}
