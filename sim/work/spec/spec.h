
/*
 * A workload's specification, version 2, as BLIS has it: clients, each with
 * its share of the rate or its number of requests in flight, how its requests
 * come, how long they are, and whether they are rounds of a conversation.
 *
 * Not read, and refused by their keys: servegen_data and inference_perf (they
 * stand for clients; BLIS's `convert` writes those), multimodal, and
 * distributions in files.
 *
 * Texts that are absent are NULL.
 */

#ifndef WORK_SPEC_H
#define WORK_SPEC_H

#include "sim/work/request.h"
#include "sim/work/sample.h"
#include "sim/work/slo.h"
#include "sim/work/yaml.h"


/* Most members that one line may ask for, as in BLIS. */
#define WORK_MAX_POPULATION  100000

typedef struct {
    work_yaml_t   at;
    const char   *process;      /* poisson, gamma, weibull, constant */
    double        cv;
    double        shape;        /* with scale, replaces rate and cv */
    double        scale;        /* us */
    int           has_cv;
    int           has_shape;
    int           has_scale;
} work_arrival_t;

typedef struct {
    work_yaml_t      at;
    int64_t          start_us;
    int64_t          end_us;
    double           trace_rate;        /* weight, or requests a second if the
                                           specification has no rate */
    int              has_rate;
    work_arrival_t  *arrival;           /* NULL: as the client's; so below */
    work_dist_t     *input;
    work_dist_t     *output;
} work_window_t;

typedef struct {
    work_yaml_t       at;
    work_yaml_list_t  windows;          /* of work_window_t */
} work_lifecycle_t;

typedef struct {
    work_yaml_t   at;
    int64_t       max_rounds;
    int64_t       think_time_us;
    const char   *context_growth;       /* "accumulate" or absent */
    int           single_session;
} work_multi_turn_t;

typedef struct {
    work_yaml_t         at;
    work_dist_t        *reason_ratio;   /* in percent */
    work_multi_turn_t  *multi_turn;
} work_reasoning_t;

typedef struct {
    work_yaml_t   at;
    double        rtt_ms;
    double        bandwidth_mbps;
} work_network_t;

/* What clients and cohorts have in common. */
typedef struct {
    work_yaml_t        at;
    const char        *id;
    const char        *tenant_id;
    const char        *slo_class;
    const char        *model;
    const char        *adapter;
    double             rate_fraction;
    work_arrival_t    *arrival;
    work_dist_t       *input;
    work_dist_t       *output;
    const char        *prefix_group;
    int64_t            prefix_length;
    int                streaming;
    work_network_t    *network;         /* only calibrate uses it */
    work_reasoning_t  *reasoning;
    int                closed_loop;
    int                has_closed_loop;
    int64_t            timeout_us;      /* 0: none */
    int                has_timeout;
    int64_t            slo_target_us;

    int64_t            concurrency;     /* this and the rest: not of cohorts */
    int64_t            think_time_us;
    work_lifecycle_t  *lifecycle;
} work_client_t;

typedef struct {
    work_yaml_t   at;
    int64_t       peak_hour;
    double        peak_to_trough_ratio;
} work_diurnal_t;

typedef struct {
    work_yaml_t   at;
    int64_t       start_us;
    int64_t       duration_us;
    double        trace_rate;           /* of the cohort, requests a second */
    int           has_rate;
} work_spike_t;

typedef struct {
    work_yaml_t   at;
    int64_t       start_us;
    int64_t       ramp_us;
} work_drain_t;

typedef struct {
    work_client_t    each;
    int64_t          population;
    const char      *prefix_sharing;    /* "shared" or "per_member" */
    work_diurnal_t  *diurnal;
    work_spike_t    *spike;
    work_drain_t    *drain;
} work_cohort_t;

typedef struct {
    work_yaml_t        at;
    const char        *version;
    int64_t            seed;
    const char        *category;
    double             aggregate_rate;  /* requests a second */
    int64_t            num_requests;    /* 0: all before the horizon */
    int64_t            horizon_us;      /* 0: none */
    work_yaml_list_t   clients;         /* of work_client_t */
    work_yaml_list_t   cohorts;         /* of work_cohort_t */
    work_yaml_list_t   slos;            /* of work_slo_t */
    const char        *file;            /* for errors */
} work_spec_t;

/*
 * Reads and checks a specification (zeroed by the caller), whose texts and
 * lists are in the arena.  0, or -1 and *error.
 */
int work_spec_read(work_spec_t *spec, const char *path, work_arena_t *arena,
    work_error_t *error);
int work_spec_parse(work_spec_t *spec, const char *file, const char *bytes,
    size_t len, work_arena_t *arena, work_error_t *error);

/*
 * Checks what the tables of keys cannot check, and turns version 1 into version
 * 2.
 */
int work_spec_check(work_spec_t *spec, work_error_t *error);

/* Sets the timeout of all clients; 0: none. */
void work_spec_set_timeout(work_spec_t *spec, int64_t timeout_us);

/*
 * Draws the requests of a specification, in order of arrival, before the
 * horizon (0: none) and no more than max (0: no limit but the horizon), and
 * makes plans for their sessions.  work must be initialised and empty.  0, or
 * -1 and *error: nothing bounds the workload, or it has more than
 * WORK_MAX_REQUESTS.
 */
int work_generate(work_t *work, work_spec_t *spec, int64_t max_requests,
    int64_t horizon_us, work_error_t *error);

#endif /* WORK_SPEC_H */
