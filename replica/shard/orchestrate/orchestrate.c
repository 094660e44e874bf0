
/*
 * Connects the parts of an orchestrating replica, none of which knows another.
 *
 *   engine/llama/   requests, vocabulary, sampling: hands out rows
 *        | take_step()             ^ give(), rewind(), lose()
 *        v                         |
 *   flow/           sends a stream's rows through the shards, whatever fails
 *        | find(), link_open()     ^ results
 *        v                         |
 *   fleet/          knows which shards there are; connections and sessions
 *
 * A sequence has a flow from its first step on, until it ends or the flow is
 * lost.  Then the fallback computes the rest, or the sequence fails; its record
 * of failed shards is kept until it ends.
 *
 * The replica is READY while shards exist for all layers, full or not, and
 * STARTING otherwise: then gateways send requests elsewhere, and running
 * streams continue as long as their own shards do.
 *
 * Its resume group is the numerics of the shards: any replica that has the same
 * numerics continues the stream with the same bits, also with other shards or
 * other boundaries.  If rows are sent as halves, boundaries change bits, so
 * those of the pipeline that would be built now are part of the group.
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "replica/engine/llama/llama.h"
#include "replica/shard/fleet/fleet.h"
#include "replica/shard/flow/flow.h"
#include "replica/shard/flow/stats.h"
#include "replica/shard/options.h"
#include "replica/shard/orchestrate/orchestrate.h"
#include "replica/shard/shard_tls.h"


/* How often the boundaries are looked at, which may change the group. */
#define ORCHESTRATE_LOOK_S  1.0

typedef struct {
    engine_t                *engine;
    const shards_options_t  *options;
    const core_plugin_t     *plugin;
    core_t                  *core;
    core_facts_t             facts;
    shard_key_t             *key;       /* NULL: sessions carry no token */
    tls_endpoint_t               tls;
    fleet_t                 *fleet;     /* NULL: not opened yet */
    flows_t                 *flows;
    ev_timer                 look;
} orchestrate_t;

/* What is kept for a run whose sequence has had steps. */
typedef struct {
    orchestrate_t  *o;
    core_seq_t     *seq;
    flow_t         *flow;               /* NULL: the flow was lost */
    flow_failure_t  failure;            /* of the lost flow */
} orchestrate_stream_t;


/* --- streams */

static void
orchestrate_on_result(void *data, uint32_t position, uint32_t rows,
    const float *logits)
{
    orchestrate_stream_t  *s;

    s = data;
    s->o->plugin->give(s->seq, position, rows, logits);
}


static void
orchestrate_on_rewind(void *data)
{
    orchestrate_stream_t  *s;

    s = data;
    s->o->plugin->rewind(s->seq);
}


/*
 * The core decides what follows: the fallback, or the run's end.  Names of
 * shards are only in the log, since clients may see the text that the core
 * gets.
 */
static void
orchestrate_on_lost(void *data, const char *reason, const char *text)
{
    orchestrate_t         *o;
    orchestrate_stream_t  *s;

    s = data;
    o = s->o;
    log_write(o->engine->log, LOG_WARN, "no shards compute a stream any more, "
              "%s: %s%s", reason, text, o->options->fallback != NULL
              ? "; it goes on here" : "");
    s->failure = *flow_failure(s->flow);
    flow_close(s->flow);
    s->flow = NULL;
    o->plugin->lose(s->seq, reason, s->failure.text);
}


static const flow_callbacks_t  orchestrate_callbacks = {
    .on_result = orchestrate_on_result,
    .on_rewind = orchestrate_on_rewind,
    .on_lost = orchestrate_on_lost
};


/* Makes the stream of a sequence; NULL: out of memory. */
static orchestrate_stream_t *
orchestrate_stream_make(orchestrate_t *o, const core_step_t *step)
{
    orchestrate_stream_t  *s;

    s = calloc(1, sizeof(orchestrate_stream_t));

    if (s == NULL) {
        return NULL;
    }

    s->o = o;
    s->seq = step->seq;
    s->flow = flow_open(o->flows, step->name, step->expected,
                        &orchestrate_callbacks, s);

    if (s->flow == NULL) {
        free(s);
        return NULL;
    }

    *(void **) step->data = s;

    return s;
}


static void
orchestrate_step(orchestrate_t *o, const core_step_t *step)
{
    orchestrate_stream_t  *s;

    s = *(void **) step->data;

    if (s == NULL) {
        s = orchestrate_stream_make(o, step);
    }

    if (s == NULL) {
        free(step->embeddings);
        o->plugin->lose(step->seq, "out_of_memory", "no memory for a flow");
        return;
    }

    if (s->flow == NULL) {
        free(step->embeddings);     /* the step was in transit when the flow was
                                       lost */
        return;
    }

    flow_step(s->flow, step->position, step->rows, step->logits_rows,
              step->embeddings);
}


static void
orchestrate_on_steps(void *data)
{
    core_step_t     step;
    orchestrate_t  *o;

    o = data;

    while (o->plugin->take_step(o->core, &step) == 0) {
        orchestrate_step(o, &step);
    }
}


static void
orchestrate_failure(void *data, const void *left, llama_failure_t *failure)
{
    const flow_failure_t        *f;
    const orchestrate_stream_t  *s = left;

    f = s->flow != NULL ? flow_failure(s->flow) : &s->failure;
    failure->count = f->count;
    snprintf(failure->text, sizeof(failure->text), "%s",
             s->flow == NULL || f->count > 0 ? f->text : "");
}


static void
orchestrate_on_release(void *data, void *left)
{
    orchestrate_stream_t  *s = left;

    if (s->flow != NULL) {
        flow_close(s->flow);
    }

    free(s);
}


/* --- the fleet */

/* Names the resume group; with halves a pipeline with other boundaries gives
   other bits. */
static void
orchestrate_name_group(orchestrate_t *o)
{
    char           group[ENGINE_GROUP_BYTES];
    size_t         i;
    uint64_t       hash;
    fleet_path_t   path;
    fleet_query_t  query;

    memset(&query, 0, sizeof(query));
    query.to_layer = o->facts.layers - 1;

    if (!o->options->is_fp16
        || fleet_find(o->fleet, &query, &path) != FLEET_FOUND)
    {
        return;
    }

    hash = XXH3_64bits(o->facts.numerics, strlen(o->facts.numerics));

    for (i = 0; i < path.n; i++) {
        hash = XXH3_64bits_withSeed(&path.hops[i].first, sizeof(uint32_t),
                                    hash);
    }

    snprintf(group, sizeof(group), "llama-%016lx", hash);

    if (strcmp(group, o->engine->facts.resume_group) != 0) {
        snprintf(o->engine->facts.resume_group, ENGINE_GROUP_BYTES, "%s",
                 group);
        engine_publish(o->engine);
    }
}


static void
orchestrate_on_look(struct ev_loop *loop, ev_timer *w, int revents)
{
    orchestrate_name_group(w->data);
}


static void
orchestrate_on_changed(void *data, int is_ready)
{
    orchestrate_t  *o;

    o = data;
    orchestrate_name_group(o);
    llama_remote_changed(o->engine);
}


static int
orchestrate_is_ready(void *data)
{
    const orchestrate_t  *o;

    o = data;

    return fleet_is_ready(o->fleet);
}


/* --- the core is there */

static fleet_t *
orchestrate_open_fleet(orchestrate_t *o)
{
    fleet_options_t  options;
    fleet_want_t     want;

    options = (fleet_options_t) {
        .members = o->options->members,
        .id = o->options->id,
        .zone = o->options->zone != NULL ? o->options->zone : "",
        .dtype = o->options->is_fp16 ? TENSOR_FP16 : TENSOR_FP32,
        .key = o->key,
        .conn = o->tls.conn
    };

    want = (fleet_want_t) {
        .model = o->facts.model,
        .numerics = o->facts.numerics,
        .layers = o->facts.layers,
        .width = o->facts.width,
        .vocabulary = o->facts.vocabulary
    };
    memcpy(want.weights_id, o->facts.weights_id, SHARD_WEIGHTS_BYTES);

    return fleet_open(o->engine->loop, o->engine->log, &options, &want,
                      orchestrate_on_changed, o);
}


static flows_t *
orchestrate_open_flows(orchestrate_t *o)
{
    flows_options_t  options;

    options = (flows_options_t) {
        .model = o->facts.model,
        .layers = o->facts.layers,
        .width = o->facts.width,
        .vocabulary = o->facts.vocabulary,
        .norms = o->facts.norms,
        .has_fallback = o->options->fallback != NULL,
        .is_rounded = o->options->is_fp16,
        .history_max = o->options->history_max,
        .audit_ppm = o->options->audit_ppm,
        .started_ms = o->options->start_timeout_ms
    };

    return flows_open(o->engine->loop, o->engine->log, o->fleet, &options);
}


static int
orchestrate_on_loaded(void *data, const core_plugin_t *plugin, core_t *core,
    const core_facts_t *facts)
{
    orchestrate_t  *o;

    o = data;
    o->plugin = plugin;
    o->core = core;
    o->facts = *facts;
    o->fleet = orchestrate_open_fleet(o);
    o->flows = o->fleet != NULL ? orchestrate_open_flows(o) : NULL;

    if (o->flows == NULL) {
        log_write(o->engine->log, LOG_ERROR, "out of memory");
        return -1;
    }

    orchestrate_name_group(o);
    ev_timer_start(o->engine->loop, &o->look);

    return 0;
}


/* --- the kind */

static void
orchestrate_free(orchestrate_t *o)
{
    ev_timer_stop(o->engine->loop, &o->look);

    if (o->flows != NULL) {
        flows_close(o->flows);
    }

    if (o->fleet != NULL) {
        fleet_close(o->fleet);
    }

    shard_key_close(o->key);
    tls_endpoint_close(&o->tls);
    free(o);
}


static void
orchestrate_close(engine_t *engine)
{
    uint64_t        fallbacks;
    orchestrate_t  *o;

    o = llama_remote_data(engine, &fallbacks);
    llama_close(engine);
    orchestrate_free(o);
}


/* Opens the TLS of all connections to shards. */
static int
orchestrate_open_tls(orchestrate_t *o)
{
    char  error[SHARDS_ERROR_BYTES];

    if (shard_tls_open(&o->tls, &o->options->tls, o->engine->log, error)
        != 0)
    {
        log_write(o->engine->log, LOG_ERROR, "%s", error);
        return -1;
    }

    if (o->options->key_file == NULL) {
        return 0;
    }

    o->key = shard_key_open(o->options->key_file, error);

    if (o->key == NULL) {
        log_write(o->engine->log, LOG_ERROR, "--shard-key: %s", error);
        return -1;
    }

    return 0;
}


static int
orchestrate_open(engine_t *engine, const engine_options_t *options)
{
    orchestrate_t   *o;
    llama_remote_t   remote;

    o = calloc(1, sizeof(orchestrate_t));

    if (o == NULL) {
        log_write(engine->log, LOG_ERROR, "out of memory");
        return -1;
    }

    o->engine = engine;
    o->options = options->shards;
    ev_timer_init(&o->look, orchestrate_on_look, ORCHESTRATE_LOOK_S,
                  ORCHESTRATE_LOOK_S);
    o->look.data = o;

    remote = (llama_remote_t) {
        .head = o->options->head,
        .fallback = o->options->fallback,
        .is_fp16 = o->options->is_fp16,
        .data = o,
        .on_loaded = orchestrate_on_loaded,
        .is_ready = orchestrate_is_ready,
        .on_steps = orchestrate_on_steps,
        .failure = orchestrate_failure,
        .on_release = orchestrate_on_release
    };

    if (orchestrate_open_tls(o) != 0
        || llama_open_remote(engine, options, &remote) != 0)
    {
        orchestrate_free(o);
        return -1;
    }

    return 0;
}


static void
orchestrate_report(const engine_t *engine, json_t *report)
{
    json_t               *pipelines;
    uint64_t              fallbacks;
    const orchestrate_t  *o;

    o = llama_remote_data(engine, &fallbacks);

    pipelines = o->flows == NULL ? json_object()
                : flows_report(o->flows, fleet_is_ready(o->fleet), fallbacks);

    if (pipelines != NULL) {
        json_object_set_new(report, "pipelines", pipelines);
    }
}


const engine_kind_t  orchestrate_kind = {
    .name = "orchestrate",
    .run_bytes = sizeof(llama_run_t),
    .open = orchestrate_open,
    .close = orchestrate_close,
    .judge = turn_judge,
    .start = turn_start,
    .cancel = turn_cancel,
    .resume = turn_pump,
    .report = orchestrate_report
};
