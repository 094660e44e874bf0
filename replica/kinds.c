
/*
 * The engines of llmgw-replica: kinds, options, and which options each kind
 * takes.
 *
 * An option that a kind does not know is refused, rather than passed over: an
 * operator who gives it expects an effect.
 */

#include <stddef.h>
#include <string.h>

#include "replica/engine/llama/core.h"
#include "replica/engine/llama/llama.h"
#include "replica/engine/llama/parts.h"
#include "replica/engine/openai.h"
#include "replica/kinds.h"
#include "replica/launch/place.h"
#include "replica/shard/options.h"
#include "replica/shard/orchestrate/orchestrate.h"
#include "replica/shard/serve/kind.h"


/* For --help: the last two are another program's (main.c). */
#define KINDS_NAMES  "openai|vllm|sglang|llamacpp|auto|llama|sim|model"

/* Kinds selected by options of these names; not values of --engine. */
#define KINDS_ORCHESTRATE  "orchestrate"
#define KINDS_SHARD        "shard"

#define FIELD(name)    offsetof(cmdline_t, name)
#define HEADING(text)  { text, OPTION_HEADING, 0, NULL, NULL, NULL, 0, 0, 0 }

static const option_t  kinds_table[] = {

    HEADING("The engine"),

    { "engine", OPTION_STRING, FIELD(kind), NULL, KINDS_NAMES,
      "what generates; sim, model: llmgw-simreplica", 0, 0, 0 },

    HEADING("An engine behind HTTP"),

    { "engine-url", OPTION_STRING, FIELD(engine.url), NULL, "URL",
      "URL of an engine behind HTTP: http://HOST:PORT", 0, 0, 0 },

    { "engine-command", OPTION_STRING, FIELD(engine.command), NULL,
      "'CMD {port}'", "starts and restarts the engine; instead of a URL",
      0, 0, 0 },

    { "engine-stop-timeout", OPTION_DURATION, FIELD(engine.stop_timeout_ms),
      "10s", NULL, "time from SIGTERM, after the drain, to SIGKILL", 0,
      ENGINE_DELAY_MAX_MS, 0 },

    { "engine-key-file", OPTION_STRING, FIELD(engine.key_file), NULL, "FILE",
      "file with the key that the engine asks for", 0, 0, 0 },

    { "engine-ca-file", OPTION_STRING, FIELD(engine.ca_file), NULL, "FILE",
      "CAs for its certificate; else the system's", 0, 0, 0 },

    { "stall-timeout", OPTION_DURATION, FIELD(engine.stall_timeout_ms),
      NULL, NULL, "time without progress of a busy engine; else learnt", 1000,
      ENGINE_DELAY_MAX_MS, 0 },

    { "stream-idle-timeout", OPTION_DURATION,
      FIELD(engine.stream_idle_timeout_ms), "10m", NULL,
      "ends a stream on which the engine sends nothing", 1000,
      ENGINE_DELAY_MAX_MS, 0 },

    HEADING("With --engine llama"),

    { "model", OPTION_STRING, FIELD(engine.model), NULL, "FILE",
      "a GGUF file", 0, 0, 0 },

    { "model-name", OPTION_STRING, FIELD(engine.model_name), NULL, "NAME",
      "name for clients; else the file's", 0, 0, 0 },

    { "context-tokens", OPTION_INT, FIELD(engine.context_tokens), "0", NULL,
      "context of a stream, at least 32; 0: the model's, at most 4096",
      0, 1 << 20,
      0 },

    { "threads", OPTION_INT, FIELD(engine.threads), "0", NULL,
      "computing threads; 0: one for each processor", 0, 512, 0 },

    { "cpu", OPTION_NAME, FIELD(engine.cpu), NULL, "NAME",
      "variant of libllama's code, for example haswell", 0, 0, 0 },

    { "exact", OPTION_STRING, FIELD(exact), "on", "on|off",
      "the same text whatever else is in the batch", 0, 0, 0 },

    HEADING("A model in shards (docs/shards.md)"),

    { "shard", OPTION_STRING, FIELD(shards.slice), NULL, "FILE",
      "compute the layers of this slice for orchestrating replicas", 0, 0, 0 },

    { "shard-sessions", OPTION_INT, FIELD(shards.sessions), "64", NULL,
      "shard: sequences at once, each with a KV cache", 1, SHARD_SESSIONS_MAX,
      0 },

    { "shard-max-memory", OPTION_SIZE, FIELD(shards.max_memory), "0", NULL,
      "shard: memory for slice, KV caches and steps; 0: no limit",
      0, 1ULL << 50, 0 },

    { "shard-idle", OPTION_DURATION, FIELD(shards.idle_ms), "600s", NULL,
      "shard: unload after this time without a session; 0: never", 0,
      CMDLINE_LONG_MAX_MS, 0 },

    { "shard-load-timeout", OPTION_DURATION, FIELD(shards.load_timeout_ms),
      "60s", NULL, "shard: time that a session waits for the slice", 100,
      SHARD_LOAD_MAX_MS, 0 },

    { "orchestrate", OPTION_STRING, FIELD(shards.head), NULL, "HEAD",
      "serve the model of this head file, its layers in shards", 0, 0, 0 },

    { "members", OPTION_STRING, FIELD(shards.members), NULL, "PATH",
      "orchestrate: an agent's segment, which lists the shards", 0, 0, 0 },

    { "fallback-local", OPTION_STRING, FIELD(shards.fallback), NULL, "FILE",
      "orchestrate: the whole model, for when shards fail", 0, 0, 0 },

    { "history-max", OPTION_SIZE, FIELD(shards.history_max), "1GiB", "SIZE",
      "orchestrate: memory for rows kept for shards that fail",
      0, 1ULL << 50, 0 },

    { "shard-start-timeout", OPTION_DURATION, FIELD(shards.start_timeout_ms),
      "30s", NULL, "orchestrate: time for a shard to open a session or begin a "
      "step",
      1000, ENGINE_DELAY_MAX_MS, 0 },

    { "audit", OPTION_STRING, FIELD(shards.audit), NULL, "PERCENT",
      "orchestrate: compute this share of rows at two shards", 0, 0, 0 },

    { "zone", OPTION_NAME, FIELD(shards.zone), NULL, "ZONE",
      "where this replica is; shards of one zone are preferred", 0, 0, 0 },

    { "activation-dtype", OPTION_STRING, FIELD(shards.dtype), "fp32",
      "fp32|fp16", "numbers between shards; fp16: half the bytes, other bits",
      0, 0, 0 },

    { "shard-key", OPTION_STRING, FIELD(shards.key_file), NULL, "FILE",
      "keys that identify replicas to shards", 0, 0, 0 },

    { "shard-tls-cert", OPTION_STRING, FIELD(shards.tls.cert), NULL, "FILE",
      "mutual TLS between shards: this end's certificate", 0, 0, 0 },

    { "shard-tls-key", OPTION_STRING, FIELD(shards.tls.key), NULL, "FILE",
      "and its key", 0, 0, 0 },

    { "shard-tls-ca", OPTION_STRING, FIELD(shards.tls.ca), NULL, "FILE",
      "the CA that signs the other end's", 0, 0, 0 },

    { .name = NULL }
};


/* Groups of options that a kind takes in addition to the common ones. */
enum {
    KINDS_URL = 1,          /* a URL or a command; keys, certificates */
    KINDS_FILE = 2,         /* --model is a file, and needed; exactness */
    KINDS_LLAMA = 4,        /* how a model in this process is run */
    KINDS_SHARDS = 8        /* selected by an option of its own */
};

static const struct {
    const char           *name;
    const engine_kind_t  *kind;
    int                   takes;
} kinds[] = {
    { "llama", &llama_kind, KINDS_FILE|KINDS_LLAMA },
    { KINDS_ORCHESTRATE, &orchestrate_kind, KINDS_LLAMA|KINDS_SHARDS },
    { KINDS_SHARD, &shard_kind, KINDS_LLAMA|KINDS_SHARDS },
    { "openai", &openai_kind, KINDS_URL },
    { "vllm", &openai_kind, KINDS_URL },
    { "sglang", &openai_kind, KINDS_URL },
    { "llamacpp", &openai_kind, KINDS_URL },
    { "auto", &openai_kind, KINDS_URL },
};


/* The first option that was given and that this kind does not take; NULL:
   none. */
static const char *
kinds_stranger(const engine_options_t *o, int takes)
{
    size_t  i;

    const struct {
        const char  *name;
        int          takes;
        int          is_given;
    } options[] = {
        { "--engine-url", KINDS_URL, o->url != NULL },
        { "--engine-command", KINDS_URL, o->command != NULL },
        { "--engine-key-file", KINDS_URL, o->key_file != NULL },
        { "--engine-ca-file", KINDS_URL, o->ca_file != NULL },
        { "--stall-timeout", KINDS_URL,
          o->stall_timeout_ms != ENGINE_STALL_TIMEOUT_MS },
        { "--stream-idle-timeout", KINDS_URL,
          o->stream_idle_timeout_ms != ENGINE_IDLE_TIMEOUT_MS },
        { "--model", KINDS_FILE, o->model != NULL },
        { "--weights", KINDS_FILE, o->weights.sockets != NULL },
        { "--exact", KINDS_FILE, !o->is_exact },
        { "--model-name", KINDS_LLAMA, o->model_name != NULL },
        { "--context-tokens", KINDS_LLAMA, o->context_tokens != 0 },
        { "--threads", KINDS_LLAMA, o->threads != 0 },
        { "--cpu", KINDS_LLAMA, o->cpu != NULL }
    };

    for (i = 0; i < sizeof(options) / sizeof(options[0]); i++) {
        if (options[i].is_given && !(takes & options[i].takes)) {
            return options[i].name;
        }
    }

    return NULL;
}


/* Checks the engine's process: a running one, or one to be started. */
static int
kinds_check_url(const engine_options_t *o, char error[CMDLINE_ERROR_BYTES])
{
    if (o->url == NULL && o->command == NULL) {
        return cmdline_wrong(error, "--engine %s needs --engine-url or "
                             "--engine-command", o->kind);
    }

    if (o->url != NULL && o->command != NULL) {
        return cmdline_wrong(error, "--engine-url: not with --engine-command, "
                             "which says where the engine listens");
    }

    if (o->command == NULL && o->stop_timeout_ms != ENGINE_STOP_TIMEOUT_MS) {
        return cmdline_wrong(error, "--engine-stop-timeout: needs "
                             "--engine-command");
    }

    return o->command != NULL ? place_check(o->command, error) : 0;
}


static int
kinds_check_standby(const engine_options_t *o, const engine_kind_t *kind,
    int takes, char error[CMDLINE_ERROR_BYTES])
{
    if (!o->is_standby) {
        return 0;
    }

    if (o->command != NULL) {
        return cmdline_wrong(error, "--standby: not with --engine-command: "
                             "such an engine cannot wait asleep yet");
    }

    if (kind->wake == NULL) {
        return cmdline_wrong(error, "--standby: not with --%s%s, %s",
                 takes & KINDS_SHARDS ? "" : "engine ", o->kind,
                 takes & KINDS_URL
                 ? "whose process cannot be watched: another one holds what it "
                   "serves" : "which cannot wait asleep");
    }

    return 0;
}


static int
kinds_check(const cmdline_t *cmdline, const engine_kind_t *kind, int takes,
    char error[CMDLINE_ERROR_BYTES])
{
    const char              *stranger;
    const engine_options_t  *o;

    o = &cmdline->engine;
    stranger = kinds_stranger(o, takes);

    if (stranger != NULL) {
        return cmdline_wrong(error, "%s: not with --%s%s", stranger,
                             takes & KINDS_SHARDS ? "" : "engine ", o->kind);
    }

    if (kinds_check_standby(o, kind, takes, error) != 0
        || ((takes & KINDS_URL) && kinds_check_url(o, error) != 0))
    {
        return -1;
    }

    if ((takes & KINDS_FILE) && o->model == NULL) {
        return cmdline_wrong(error, "--engine %s needs --model FILE", o->kind);
    }

    /* Each model is probed with CORE_CONTEXT_MIN tokens when it is loaded. */
    if (o->context_tokens != 0 && o->context_tokens < CORE_CONTEXT_MIN) {
        return cmdline_wrong(error, "--context-tokens: at least %d, or 0 for "
                             "the model's", CORE_CONTEXT_MIN);
    }

    return o->model == NULL ? 0
           : cmdline_check_services(cmdline, parts_count(o->model), error);
}


/* A shard and an orchestrating replica are of kinds that need no name. */
static int
kinds_check_shards(cmdline_t *o, char error[CMDLINE_ERROR_BYTES])
{
    const char  *mode;

    if (shards_options_check(&o->shards, error) != 0) {
        return -1;
    }

    if (o->shards.head == NULL && o->shards.slice == NULL) {
        return 0;
    }

    mode = o->shards.head != NULL ? KINDS_ORCHESTRATE : KINDS_SHARD;

    if (o->kind != NULL) {
        return cmdline_wrong(error, "--%s: not with --engine %.40s", mode,
                             o->kind);
    }

    if (o->shards.slice != NULL && o->engine.model_name != NULL) {
        return cmdline_wrong(error, "--model-name: not with --shard, whose "
                             "file says it");
    }

    if (o->shards.slice != NULL && strcmp(o->max_capacity, "auto") != 0) {
        return cmdline_wrong(error, "--max-capacity: not with --shard, see "
                             "--shard-sessions");
    }

    if (o->shards.slice != NULL && o->tls.cert != NULL) {
        return cmdline_wrong(error, "--tls-cert: not with --shard, see "
                             "--shard-tls-cert");
    }

    o->engine.kind = mode;

    return 0;
}


/* The name of the kind, also if none is given. */
static int
kinds_name(cmdline_t *o, char error[CMDLINE_ERROR_BYTES])
{
    o->shards.id = o->id;
    o->engine.shards = &o->shards;
    o->engine.kind = o->kind;

    if (kinds_check_shards(o, error) != 0) {
        return -1;
    }

    if (o->engine.kind == NULL
        && (o->engine.url != NULL || o->engine.command != NULL))
    {
        o->engine.kind = "auto";
    }

    return o->engine.kind != NULL ? 0
           : cmdline_wrong(error, "no engine: give --engine-url URL, "
                           "--engine-command CMD, --engine llama --model FILE, "
                           "or --engine sim for made-up words");
}


static const engine_kind_t *
kinds_choose(cmdline_t *o, char error[CMDLINE_ERROR_BYTES])
{
    int     in_shards;
    size_t  i;

    o->engine.is_exact = strcmp(o->exact, "on") == 0;

    if (!o->engine.is_exact && strcmp(o->exact, "off") != 0) {
        (void) cmdline_wrong(error, "--exact: \"%.80s\" is not on or off",
                             o->exact);
        return NULL;
    }

    if (kinds_name(o, error) != 0) {
        return NULL;
    }

    in_shards = (o->shards.head != NULL || o->shards.slice != NULL);

    for (i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        if (strcmp(kinds[i].name, o->engine.kind) == 0
            && !(kinds[i].takes & KINDS_SHARDS) == !in_shards)
        {
            return kinds_check(o, kinds[i].kind, kinds[i].takes, error) == 0
                   ? kinds[i].kind : NULL;
        }
    }

    (void) cmdline_wrong(error, "--engine: \"%.80s\" is not one of %s",
                         o->engine.kind, KINDS_NAMES);

    return NULL;
}


const cmdline_program_t  kinds_program = {
    "llmgw-replica",
    "--id ID --listen HOST:PORT [options]",
    "The adapter beside an LLM engine: streams the tokens of a prompt over\n"
    "gRPC.",
    kinds_table,
    kinds_choose
};
