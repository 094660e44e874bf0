
/*
 * llmgw-replica's options: one table, and what a table cannot check.
 */

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "replica/cmdline.h"
#include "replica/kinds.h"


#define CMDLINE_WEIGHTS_TIMEOUT_MAX_MS  86400000    /* a day */

#define FIELD(name)    offsetof(cmdline_t, name)
#define HEADING(text)  { text, OPTION_HEADING, 0, NULL, NULL, NULL, 0, 0, 0 }

static const option_t  cmdline_table[] = {

    HEADING("Serving"),

    { "id", OPTION_NAME, FIELD(id), NULL, "ID",
      "name of the replica", 0, 0, 1 },

    { "listen", OPTION_ADDRESS, FIELD(listen), NULL, NULL,
      "where gRPC is served", 0, 0, 1 },

    { "agent", OPTION_STRING, FIELD(agent), NULL, "PATH",
      "control socket of the agent to report to", 0, 0, 0 },

    { "max-capacity", OPTION_STRING, FIELD(max_capacity), "auto", "auto|N",
      "concurrent streams; 0: no limit", 0, 0, 0 },

    { "model-version", OPTION_NAME, FIELD(engine.model_version), "v1",
      "VERSION", "version of the model, as reported", 0, 0, 0 },

    { "drain-timeout", OPTION_DURATION, FIELD(drain_timeout_ms), "25s", NULL,
      "time for running streams after SIGTERM", 0, ENGINE_DELAY_MAX_MS, 0 },

    { "remote-drain", OPTION_FLAG, FIELD(is_remote_drain), NULL, NULL,
      "accept Drain and Undrain from other hosts too", 0, 0, 0 },

    HEADING("Who may come in (docs/tls.md)"),

    { "tls-cert", OPTION_STRING, FIELD(tls.cert), NULL, "FILE",
      "mutual TLS: this replica's certificate", 0, 0, 0 },

    { "tls-key", OPTION_STRING, FIELD(tls.key), NULL, "FILE",
      "and its key", 0, 0, 0 },

    { "tls-client-ca", OPTION_STRING, FIELD(tls.ca), NULL, "FILE",
      "who signs the certificates of gateways and agents", 0, 0, 0 },

    { "tls-client-name", OPTION_STRING, FIELD(tls_clients), NULL,
      "PATTERN[,PATTERN]", "and what they name, as gw*; else anything", 0, 0,
      0 },

    { "insecure", OPTION_FLAG, FIELD(is_insecure), NULL, NULL,
      "serve other hosts without TLS", 0, 0, 0 },

    HEADING("The engine"),

    { "engine", OPTION_STRING, FIELD(kind), "sim", KINDS_NAMES,
      "what generates", 0, 0, 0 },

    { "model", OPTION_STRING, FIELD(engine.model), NULL, "NAME|FILE",
      "model: as qwen3-14b; llama: a GGUF file", 0, 0, 0 },

    HEADING("Weights in memory that engines share"),

    { "weights", OPTION_STRING, FIELD(engine.weights.sockets), NULL,
      "PATH[,PATH]", "services that hold them, one for each file", 0, 0, 0 },

    { "weights-file", OPTION_STRING, FIELD(engine.weights_files), NULL,
      "FILE[,FILE]", "sim, model: what is held; any bytes", 0, 0, 0 },

    { "weights-role", OPTION_STRING, FIELD(engine.weights.role), "rw_or_ro",
      "rw_or_ro|ro", "load what a service lacks, or wait for it", 0, 0, 0 },

    { "weights-timeout", OPTION_DURATION, FIELD(engine.weights.timeout_ms),
      "2h", NULL, "time to wait for them at the start", 1,
      CMDLINE_WEIGHTS_TIMEOUT_MAX_MS, 0 },

    { "sleep", OPTION_STRING, FIELD(engine.weights.sleep), "mapped",
      "mapped|unmapped", "standing by: keep them, or get them anew", 0, 0, 0 },

    { "remap-timeout", OPTION_DURATION, FIELD(engine.weights.remap_timeout_ms),
      "30s", NULL, "time to get them anew in", 1,
      CMDLINE_WEIGHTS_TIMEOUT_MAX_MS, 0 },

    { "mlock", OPTION_FLAG, FIELD(engine.weights.is_locked), NULL, NULL,
      "keep them out of the swap space", 0, 0, 0 },

    HEADING("An engine behind HTTP"),

    { "engine-url", OPTION_STRING, FIELD(engine.url), NULL, "URL",
      "of an engine behind HTTP: http://HOST:PORT", 0, 0, 0 },

    { "engine-command", OPTION_STRING, FIELD(engine.command), NULL,
      "'CMD {port}'", "starts it, and again; instead of a URL", 0, 0, 0 },

    { "engine-stop-timeout", OPTION_DURATION, FIELD(engine.stop_timeout_ms),
      "10s", NULL, "from its SIGTERM, behind the drain, to SIGKILL", 0,
      ENGINE_DELAY_MAX_MS, 0 },

    { "engine-key-file", OPTION_STRING, FIELD(engine.key_file), NULL, "FILE",
      "holds the key that it asks for", 0, 0, 0 },

    { "engine-ca-file", OPTION_STRING, FIELD(engine.ca_file), NULL, "FILE",
      "who may sign its certificate; else the system's", 0, 0, 0 },

    { "stall-timeout", OPTION_DURATION, FIELD(engine.stall_timeout_ms),
      NULL, NULL, "an engine that works has progress in it; else learnt", 1000,
      ENGINE_DELAY_MAX_MS, 0 },

    { "stream-idle-timeout", OPTION_DURATION,
      FIELD(engine.stream_idle_timeout_ms), "10m", NULL,
      "a stream on which the engine sends nothing ends then", 1000,
      ENGINE_DELAY_MAX_MS, 0 },

    HEADING("Hot standby (docs/standby.md)"),

    { "standby", OPTION_FLAG, FIELD(engine.is_standby), NULL, NULL,
      "wait, warm, until no other engine of the group serves", 0, 0, 0 },

    { "group", OPTION_STRING, FIELD(standby.group), NULL, "GROUP",
      "engines of this host, of which one serves", 0, 0, 0 },

    { "lock", OPTION_STRING, FIELD(standby.lock), NULL, "PATH",
      "socket of llmgw-lock, which says when it is time", 0, 0, 0 },

    { "wait-for", OPTION_STRING, FIELD(standby.wait_for), NULL,
      "PATH[,PATH]", "sockets that have to be there before anything begins",
      0, 0, 0 },

    { "waking-timeout", OPTION_DURATION, FIELD(standby.waking_timeout_ms),
      "60s", NULL, "an engine not awake after it ends itself", 10,
      ENGINE_DELAY_MAX_MS, 0 },

    { "probe-listen", OPTION_ADDRESS, FIELD(standby.probe_listen), NULL, NULL,
      "HTTP: /livez, /startupz, /readyz", 0, 0, 0 },

    HEADING("With --engine sim"),

    { "token-delay", OPTION_DURATION, FIELD(engine.token_delay_ms), "50ms",
      NULL, "time between tokens", 0, ENGINE_DELAY_MAX_MS, 0 },

    { "first-token-delay", OPTION_DURATION, FIELD(engine.first_token_delay_ms),
      "0ms", NULL, "time to the first one; 0: as others", 0,
      ENGINE_DELAY_MAX_MS, 0 },

    { "error-rate", OPTION_DOUBLE, FIELD(engine.error_rate), "0", NULL,
      "fraction of requests answered UNAVAILABLE", 0, 1, 0 },

    { "reject-all", OPTION_FLAG, FIELD(engine.is_reject_all), NULL, NULL,
      "answer every request UNAVAILABLE", 0, 0, 0 },

    HEADING("With --engine model"),

    { "latency-model", OPTION_STRING, FIELD(engine.model_latency), NULL,
      "NAME", "trained-physics, roofline or linear", 0, 0, 0 },

    { "alpha-coeffs", OPTION_STRING, FIELD(engine.model_alpha), NULL,
      "A0,A1,A2", "what a request costs besides steps", 0, 0, 0 },

    { "beta-coeffs", OPTION_STRING, FIELD(engine.model_beta), NULL,
      "B0,B1,...", "what a step costs", 0, 0, 0 },

    { "hardware", OPTION_STRING, FIELD(engine.model_hardware), NULL, "GPU",
      "H100, A100-SXM, L40S, or one of a file", 0, 0, 0 },

    { "hardware-config", OPTION_STRING, FIELD(engine.model_hardware_file),
      NULL, "FILE", "JSON with other GPUs", 0, 0, 0 },

    { "model-config-folder", OPTION_STRING, FIELD(engine.model_folder), NULL,
      "DIR", "whose config.json has the shape", 0, 0, 0 },

    { "tp", OPTION_INT, FIELD(engine.model_tp), NULL, NULL,
      "GPUs that share each layer", 1, 1024, 0 },

    { "block-size-in-tokens", OPTION_INT, FIELD(engine.model_block_tokens),
      NULL, NULL, "of a KV block", 1, 1 << 20, 0 },

    { "total-kv-blocks", OPTION_INT, FIELD(engine.model_blocks), NULL, NULL,
      "KV blocks", 1, 1 << 30, 0 },

    { "max-model-len", OPTION_INT, FIELD(engine.model_max_len), NULL, NULL,
      "tokens of a prompt and its answer", 1, 1 << 30, 0 },

    { "max-num-seqs", OPTION_INT, FIELD(engine.model_max_seqs), NULL, NULL,
      "streams of a batch", 1, ENGINE_CAPACITY_MAX, 0 },

    { "max-num-batched-tokens", OPTION_INT, FIELD(engine.model_batched_tokens),
      NULL, NULL, "tokens of a step", 1, 1 << 30, 0 },

    { "long-prefill-token-threshold", OPTION_INT,
      FIELD(engine.model_chunk_tokens), NULL, NULL,
      "of a prompt in one step", 1, 1 << 30, 0 },

    { "scheduler", OPTION_STRING, FIELD(engine.model_scheduler), NULL, "NAME",
      "fcfs, priority-fcfs, sjf, reverse-priority", 0, 0, 0 },

    { "preemption-policy", OPTION_STRING, FIELD(engine.model_preemption), NULL,
      "NAME", "who makes room: fcfs, priority", 0, 0, 0 },

    { "workers", OPTION_INT, FIELD(standby.workers), "0", NULL,
      "standby: processes that share the work; die together", 0, WORKERS_MAX,
      0 },

    HEADING("With --engine llama"),

    { "model-name", OPTION_STRING, FIELD(engine.model_name), NULL, "NAME",
      "as clients ask for it; else the file's", 0, 0, 0 },

    { "context-tokens", OPTION_INT, FIELD(engine.context_tokens), "0", NULL,
      "of a stream, at least 32; 0: the model's, at most 4096", 0, 1 << 20,
      0 },

    { "threads", OPTION_INT, FIELD(engine.threads), "0", NULL,
      "that compute; 0: one for each processor", 0, 512, 0 },

    { "cpu", OPTION_NAME, FIELD(engine.cpu), NULL, "NAME",
      "variant of libllama's code, as haswell", 0, 0, 0 },

    { "exact", OPTION_STRING, FIELD(exact), "on", "on|off",
      "the same text whoever is in the batch", 0, 0, 0 },

    HEADING("A model in shards (docs/shards.md)"),

    { "shard", OPTION_STRING, FIELD(shards.slice), NULL, "FILE",
      "compute the layers of this slice for orchestrating replicas", 0, 0, 0 },

    { "shard-sessions", OPTION_INT, FIELD(shards.sessions), "64", NULL,
      "shard: sequences at once, each with a KV cache", 1, SHARD_SESSIONS_MAX,
      0 },

    { "shard-max-memory", OPTION_SIZE, FIELD(shards.max_memory), "0", NULL,
      "shard: of slice, KV caches and steps; 0: no limit", 0, 1ULL << 50, 0 },

    { "shard-idle", OPTION_DURATION, FIELD(shards.idle_ms), "600s", NULL,
      "shard: unload after it without a session; 0: never", 0,
      CMDLINE_WEIGHTS_TIMEOUT_MAX_MS, 0 },

    { "shard-load-timeout", OPTION_DURATION, FIELD(shards.load_timeout_ms),
      "60s", NULL, "shard: a session waits so long for the slice", 100,
      SHARD_LOAD_MAX_MS, 0 },

    { "test-step-delay", OPTION_DURATION, FIELD(shards.step_delay_ms), "0",
      NULL, NULL, 0, 60000, 0 },

    { "orchestrate", OPTION_STRING, FIELD(shards.head), NULL, "HEAD",
      "serve the model of this head file, its layers in shards", 0, 0, 0 },

    { "members", OPTION_STRING, FIELD(shards.members), NULL, "PATH",
      "orchestrate: segment of an agent, which lists the shards", 0, 0, 0 },

    { "fallback-local", OPTION_STRING, FIELD(shards.fallback), NULL, "FILE",
      "orchestrate: the whole model, where shards fail", 0, 0, 0 },

    { "history-max", OPTION_SIZE, FIELD(shards.history_max), "1GiB", "SIZE",
      "orchestrate: of rows kept for shards that fail", 0, 1ULL << 50, 0 },

    { "test-started-timeout", OPTION_DURATION, FIELD(shards.started_ms), "30s",
      NULL, NULL, 1, ENGINE_DELAY_MAX_MS, 0 },

    { "zone", OPTION_NAME, FIELD(shards.zone), NULL, "ZONE",
      "where this replica is; shards of one zone are preferred", 0, 0, 0 },

    { "activation-dtype", OPTION_STRING, FIELD(shards.dtype), "fp32",
      "fp32|fp16", "numbers between shards; fp16: half the bytes, other bits",
      0, 0, 0 },

    { "shard-key", OPTION_STRING, FIELD(shards.key_file), NULL, "FILE",
      "keys by which shards know who may use them", 0, 0, 0 },

    { "shard-tls-cert", OPTION_STRING, FIELD(shards.tls.cert), NULL, "FILE",
      "mutual TLS between shards: this end's certificate", 0, 0, 0 },

    { "shard-tls-key", OPTION_STRING, FIELD(shards.tls.key), NULL, "FILE",
      "and its key", 0, 0, 0 },

    { "shard-tls-ca", OPTION_STRING, FIELD(shards.tls.ca), NULL, "FILE",
      "who signs the other end's", 0, 0, 0 },

    { "hash-log", OPTION_STRING, FIELD(hash_log), NULL, "FILE",
      NULL, 0, 0, 0 },

    /* For tests of what the death of a large process looks like. */
    { "model-memory", OPTION_INT, FIELD(model_memory_mb), "0", "MB",
      NULL, 0, 1 << 20, 0 },

    { "model-memory-kind", OPTION_STRING, FIELD(model_memory_kind), "private",
      "private|shared", NULL, 0, 0, 0 },

    { "token-log", OPTION_STRING, FIELD(token_log), NULL, "FILE",
      NULL, 0, 0, 0 },

    { .name = NULL }
};

static const options_spec_t  cmdline_spec = {
    "llmgw-replica",
    "--id ID --listen HOST:PORT [options]",
    "An LLM engine, or a simulated one: streams the tokens of a prompt over\n"
    "gRPC.",
    NULL,
    cmdline_table
};


static int
cmdline_error(const char *error)
{
    fprintf(stderr, "llmgw-replica: %s\n", error);

    return -1;
}


static int
cmdline_capacity(const char *text, int32_t *max_capacity)
{
    long   n;
    char  *end;

    if (strcmp(text, "auto") == 0) {
        *max_capacity = ENGINE_CAPACITY_AUTO;
        return 0;
    }

    errno = 0;
    n = strtol(text, &end, 10);

    if (errno != 0 || end == text || *end != '\0' || n < 0
        || n > ENGINE_CAPACITY_MAX)
    {
        return -1;
    }

    *max_capacity = (int32_t) n;

    return 0;
}


/* The first option that only an engine that stands by has. */
static const char *
cmdline_standby_option(const cmdline_t *o)
{
    const standby_options_t  *s;

    s = &o->standby;

    return s->group != NULL ? "--group"
           : s->lock != NULL ? "--lock"
           : s->wait_for != NULL ? "--wait-for"
           : s->probe_listen != NULL ? "--probe-listen"
           : s->workers != 0 ? "--workers" : NULL;
}


static int
cmdline_check_standby(const cmdline_t *o)
{
    char                      error[KINDS_ERROR_BYTES];
    const char               *other;
    const standby_options_t  *s;

    s = &o->standby;
    other = cmdline_standby_option(o);

    if (!o->engine.is_standby) {
        if (other == NULL) {
            return 0;
        }

        snprintf(error, sizeof(error), "%s needs --standby", other);
        return cmdline_error(error);
    }

    if (s->group == NULL || s->lock == NULL) {
        return cmdline_error("--standby needs --group GROUP and --lock PATH, "
                             "the socket of llmgw-lock");
    }

    if (!llmgw_group_is_valid(s->group, strlen(s->group))) {
        snprintf(error, sizeof(error), "--group: \"%.80s\" is not 1 to 31 of "
                 "letters, digits, \".\", \"_\" and \"-\", the first no "
                 "dot", s->group);
        return cmdline_error(error);
    }

    if (strchr(s->lock, ',') != NULL || !gate_list_is_valid(s->lock)) {
        return cmdline_error("--lock: a socket's path has 1 to 107 bytes");
    }

    if (s->workers > 0 && strcmp(o->engine.kind, "sim") != 0
        && strcmp(o->engine.kind, "model") != 0)
    {
        snprintf(error, sizeof(error), "--workers: not with --engine %.40s",
                 o->engine.kind);
        return cmdline_error(error);
    }

    if (s->wait_for != NULL && !gate_list_is_valid(s->wait_for)) {
        return cmdline_error("--wait-for: not paths of 1 to 107 bytes with "
                             "commas between them");
    }

    return 0;
}


/* A shard and an orchestrating replica are of kinds that need no name. */
static int
cmdline_check_shards(cmdline_t *o)
{
    char         error[SHARDS_ERROR_BYTES];
    const char  *mode;

    o->shards.id = o->id;
    o->engine.kind = o->kind;
    o->engine.shards = &o->shards;

    if (shards_options_check(&o->shards, error) != 0) {
        return cmdline_error(error);
    }

    if (o->shards.head == NULL && o->shards.slice == NULL) {
        return 0;
    }

    mode = o->shards.head != NULL ? KINDS_ORCHESTRATE : KINDS_SHARD;

    if (strcmp(o->kind, "sim") != 0) {
        snprintf(error, sizeof(error), "--%s: not with --engine %.40s", mode,
                 o->kind);
        return cmdline_error(error);
    }

    if (o->shards.slice != NULL && o->engine.model_name != NULL) {
        return cmdline_error("--model-name: not with --shard, whose file says "
                             "it");
    }

    if (o->shards.slice != NULL && strcmp(o->max_capacity, "auto") != 0) {
        return cmdline_error("--max-capacity: not with --shard, see "
                             "--shard-sessions");
    }

    o->engine.kind = mode;

    return 0;
}


static int
cmdline_memory(cmdline_t *o)
{
    const char  *kind;

    kind = o->model_memory_kind;
    o->standby.memory_bytes = (size_t) o->model_memory_mb << 20;
    o->standby.is_memory_shared = strcmp(kind, "shared") == 0;

    return o->standby.is_memory_shared || strcmp(kind, "private") == 0 ? 0
           : cmdline_error("--model-memory-kind: private or shared");
}


static int
cmdline_check_tls(cmdline_t *o)
{
    char  error[TLS_ERROR_BYTES];

    static const char *const  names[TLS_NFILES] = {
        "--tls-cert", "--tls-key", "--tls-client-ca"
    };

    if (tls_files_check(&o->tls, names, 1, error) != 0) {
        return cmdline_error(error);
    }

    if (o->tls_clients != NULL && o->tls.cert == NULL) {
        return cmdline_error("--tls-client-name: needs --tls-cert, --tls-key "
                             "and --tls-client-ca");
    }

    if (o->tls.cert != NULL && o->shards.slice != NULL) {
        return cmdline_error("--tls-cert: not with --shard, see "
                             "--shard-tls-cert");
    }

    o->tls.has_tickets = 1;

    return 0;
}


/* What the table of options cannot check. */
static int
cmdline_check(cmdline_t *o, const engine_kind_t **kind)
{
    char  error[KINDS_ERROR_BYTES];

    if (cmdline_capacity(o->max_capacity, &o->engine.max_capacity) != 0) {
        snprintf(error, sizeof(error), "--max-capacity: \"%.80s\" is not "
                 "auto or an integer from 0 to %d", o->max_capacity,
                 ENGINE_CAPACITY_MAX);
        return cmdline_error(error);
    }

    o->engine.is_exact = strcmp(o->exact, "on") == 0;

    if (!o->engine.is_exact && strcmp(o->exact, "off") != 0) {
        snprintf(error, sizeof(error), "--exact: \"%.80s\" is not on or off",
                 o->exact);
        return cmdline_error(error);
    }

    if (cmdline_memory(o) != 0 || cmdline_check_shards(o) != 0
        || cmdline_check_tls(o) != 0 || cmdline_check_standby(o) != 0)
    {
        return -1;
    }

    o->engine.weights.engine = o->id;

    if (weights_options_check(&o->engine.weights, o->engine.is_standby
                              ? o->standby.waking_timeout_ms : 0, error)
        != 0)
    {
        return cmdline_error(error);
    }

    *kind = kinds_choose(&o->engine, error);

    return *kind != NULL ? 0 : cmdline_error(error);
}


options_rc_t
cmdline_read(cmdline_t *o, int argc, char **argv, const engine_kind_t **kind)
{
    int           rest;
    options_rc_t  rc;

    rc = options_parse(&cmdline_spec, o, argc, argv, 0, &rest);

    if (rc != OPTIONS_DONE) {
        return rc;
    }

    return cmdline_check(o, kind) == 0 ? OPTIONS_DONE : OPTIONS_EUSAGE;
}


void
cmdline_done(cmdline_t *o)
{
    options_done(&cmdline_spec, o);
}
