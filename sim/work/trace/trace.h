
/*
 * TraceV2: requests as they came, and what was observed of each; a header in
 * YAML and a row of CSV for each request, as BLIS writes and reads them.
 *
 * Columns are found by their names, so BLIS's optional ones are accepted:
 * vllm_priority, slo_target_us, x_request_id, adapter, think_time_us.  Times
 * are microseconds from the trace's own beginning; 0 means absent.
 */

#ifndef WORK_TRACE_H
#define WORK_TRACE_H

#include "sim/work/error.h"
#include "sim/work/request.h"
#include "sim/work/slo.h"
#include "sim/work/yaml.h"


typedef struct {
    work_yaml_t   at;
    const char   *type;
    const char   *model;
    int64_t       tensor_parallel;
    int64_t       max_num_seqs;
    int64_t       block_size;
    double        gpu_memory_utilization;
    int64_t       max_model_len;
} work_trace_server_t;

typedef struct {
    work_yaml_t   at;
    double        measured_rtt_ms;
} work_trace_network_t;

typedef struct {
    work_yaml_t   at;
    const char   *source;
    double        hit_rate;
    int64_t       block_hits;
    int64_t       block_queries;
    double        read_time_total;
    double        write_time_total;
    const char   *vllm_commit;
} work_trace_kv_t;

typedef struct {
    work_yaml_t            at;
    int64_t                version;
    const char            *time_unit;
    const char            *created_at;          /* NULL: absent; so below */
    const char            *mode;                /* real, generated, replayed */
    int64_t                warm_up_requests;
    int64_t                workload_seed;
    int                    has_seed;
    const char            *workload_spec;
    const char            *session_context_growth;  /* "accumulate" or NULL */
    work_trace_server_t   *server;
    work_trace_network_t  *network;
    work_yaml_list_t       slos;                /* of work_slo_t */
    work_trace_kv_t       *observed_kv;
} work_trace_header_t;

/* A row.  Texts in it are never NULL. */
typedef struct {
    int64_t             request_id;
    const work_name_t  *client;
    const work_name_t  *tenant;
    const work_name_t  *slo_class;
    const work_name_t  *session;
    const work_name_t  *prefix_group;
    const work_name_t  *model;
    const work_name_t  *adapter;
    const work_name_t  *status;         /* ok, error, timeout, incomplete */
    const work_name_t  *finish_reason;
    const char         *error_message;
    const char         *x_request_id;
    uint32_t            line;           /* in the file, for errors; 0: none */
    uint32_t            round;
    uint32_t            prefix_length;
    uint32_t            input_tokens;   /* without the prefix */
    uint32_t            output_tokens;
    uint32_t            text_tokens;
    uint32_t            image_tokens;
    uint32_t            audio_tokens;
    uint32_t            video_tokens;
    uint32_t            server_input_tokens;
    uint32_t            num_chunks;
    int32_t             vllm_priority;
    uint8_t             streaming;
    double              reason_ratio;
    int64_t             deadline_us;
    int64_t             slo_target_us;
    int64_t             arrival_us;
    int64_t             send_us;
    int64_t             first_chunk_us;
    int64_t             last_chunk_us;
    int64_t             think_time_us;
} work_record_t;

typedef struct {
    work_trace_header_t   header;
    work_record_t        *records;
    size_t                n;
    size_t                max;
    work_names_t          names;
    work_arena_t          arena;        /* for texts and the header's structs */
    const char           *data_file;    /* its name, for errors */
} work_trace_t;

void work_trace_init(work_trace_t *trace);
void work_trace_done(work_trace_t *trace);

/* Appends a record: zeroed, its names and texts "". */
work_record_t *work_trace_add(work_trace_t *trace);

/*
 * Reads a trace into one that is initialised and empty.  0, or -1 and *error.
 * It refuses unknown keys and columns, rows of another length, numbers that are
 * malformed, negative or too large, a deadline before its arrival, and more
 * rows than WORK_MAX_REQUESTS.  Rows may be in any order of time.
 */
int work_trace_read(work_trace_t *trace, const char *header_path,
    const char *data_path, work_error_t *error);

/*
 * The two parts of work_trace_read(): the header from a file, the rows from
 * memory, which is changed.
 */
int work_trace_read_header(work_trace_t *trace, const char *path,
    const char *bytes, size_t len, work_error_t *error);
int work_trace_read_data(work_trace_t *trace, const char *path, char *bytes,
    size_t len, work_error_t *error);

/*
 * Reads nginx's access log, in the JSON format of docs/logging.md, as a trace
 * (mode real).  Lines that are not requests for a model are skipped; *skipped
 * is set to their number.  0, or -1 and *error.
 */
int work_trace_read_access_log(work_trace_t *trace, const char *path,
    size_t *skipped, work_error_t *error);

/* Writes a trace in BLIS's format.  0, or -1 and *error. */
int work_trace_write(const work_trace_t *trace, const char *header_path,
    const char *data_path, work_error_t *error);

/*
 * Appends a simulated request as a record; its id is its index.  status is
 * "ok", "timeout" or "incomplete"; times are absolute, 0: never; last_chunk_us
 * is that of the last token.  The caller fills in the header: mode,
 * workload_seed, and session_context_growth if the workload accumulates.
 */
void work_trace_add_request(work_trace_t *trace, const work_request_t *r,
    const char *status, int64_t first_chunk_us, int64_t last_chunk_us);

typedef enum {
    WORK_REPLAY_FIXED = 0,      /* each request at its time in the trace */
    WORK_REPLAY_CLOSED_LOOP     /* rounds wait for the one before */
} work_replay_t;

typedef struct {
    work_replay_t   mode;
    uint64_t        seed;           /* for think times that are drawn */
    const char     *think_time;     /* "lognormal:mu=2,..."; NULL: as traced */
    int64_t         horizon_us;     /* of later rounds; 0: none */
} work_replay_options_t;

/*
 * Makes a workload of the requests of a trace, in its order.  They arrive when
 * they were sent, or, without that time, at their recorded arrival.  Their
 * input is the server's count, if there is one and no prefix group.  A group's
 * prefix has the length of the group's first row that has one.  work is
 * initialised and empty.  0, or -1 and *error.
 */
int work_from_trace(work_t *work, const work_trace_t *trace,
    const work_replay_options_t *options, work_error_t *error);

/*
 * The default of --horizon, as BLIS's: twice the last arrival, or 10 minutes if
 * all arrive at 0.
 */
int64_t work_trace_horizon(const work_trace_t *trace);

#endif /* WORK_TRACE_H */
