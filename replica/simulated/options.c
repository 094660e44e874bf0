
/*
 * llmgw-simreplica's options.  Those without a help text are for tests of how
 * the death of a large process is noticed, and of which process sent a token.
 */

#include <stddef.h>
#include <string.h>

#include "replica/simulated/options.h"


#define FIELD(name)    offsetof(simulated_options_t, name)
#define HEADING(text)  { text, OPTION_HEADING, 0, NULL, NULL, NULL, 0, 0, 0 }

static const option_t  simulated_table[] = {

    HEADING("The engine"),

    { "engine", OPTION_STRING, FIELD(cmdline.kind), "sim", "sim|model",
      "what generates", 0, 0, 0 },

    { "model", OPTION_STRING, FIELD(cmdline.engine.model), NULL, "NAME",
      "for example qwen3-14b", 0, 0, 0 },

    { "weights-file", OPTION_STRING, FIELD(cmdline.engine.weights_files), NULL,
      "FILE[,FILE]", "contents for --weights; any bytes", 0, 0, 0 },

    HEADING("With --engine sim"),

    { "token-delay", OPTION_DURATION, FIELD(sim.token_delay_ms), "50ms",
      NULL, "time between tokens", 0, ENGINE_DELAY_MAX_MS, 0 },

    { "first-token-delay", OPTION_DURATION, FIELD(sim.first_token_delay_ms),
      "0ms", NULL, "time to the first token; 0: as between tokens", 0,
      ENGINE_DELAY_MAX_MS, 0 },

    { "error-rate", OPTION_DOUBLE, FIELD(sim.error_rate), "0", NULL,
      "fraction of requests answered UNAVAILABLE", 0, 1, 0 },

    { "reject-all", OPTION_FLAG, FIELD(sim.is_reject_all), NULL, NULL,
      "answer every request UNAVAILABLE", 0, 0, 0 },

    HEADING("With --engine model"),

    { "latency-model", OPTION_STRING, FIELD(model.latency), NULL,
      "NAME", "trained-physics, roofline or linear", 0, 0, 0 },

    { "alpha-coeffs", OPTION_STRING, FIELD(model.alpha), NULL,
      "A0,A1,A2", "time of a request besides its steps", 0, 0, 0 },

    { "beta-coeffs", OPTION_STRING, FIELD(model.beta), NULL,
      "B0,B1,...", "time of a step", 0, 0, 0 },

    { "hardware", OPTION_STRING, FIELD(model.hardware), NULL, "GPU",
      "H100, A100-SXM, L40S, or a GPU of that file", 0, 0, 0 },

    { "hardware-config", OPTION_STRING, FIELD(model.hardware_file),
      NULL, "FILE", "JSON with other GPUs", 0, 0, 0 },

    { "model-config-folder", OPTION_STRING, FIELD(model.folder), NULL,
      "DIR", "has the model's config.json", 0, 0, 0 },

    { "tp", OPTION_INT, FIELD(model.tp), NULL, NULL,
      "GPUs that share each layer", 1, 1024, 0 },

    { "block-size-in-tokens", OPTION_INT, FIELD(model.block_tokens),
      NULL, NULL, "tokens of a KV block", 1, 1 << 20, 0 },

    { "total-kv-blocks", OPTION_INT, FIELD(model.blocks), NULL, NULL,
      "KV blocks", 1, 1 << 30, 0 },

    { "max-model-len", OPTION_INT, FIELD(model.max_len), NULL, NULL,
      "tokens of a prompt and its answer", 1, 1 << 30, 0 },

    { "max-num-seqs", OPTION_INT, FIELD(model.max_seqs), NULL, NULL,
      "streams of a batch", 1, ENGINE_CAPACITY_MAX, 0 },

    { "max-num-batched-tokens", OPTION_INT, FIELD(model.batched_tokens),
      NULL, NULL, "tokens of a step", 1, 1 << 30, 0 },

    { "long-prefill-token-threshold", OPTION_INT,
      FIELD(model.chunk_tokens), NULL, NULL,
      "tokens of a prompt in one step", 1, 1 << 30, 0 },

    { "scheduler", OPTION_STRING, FIELD(model.scheduler), NULL, "NAME",
      "fcfs, priority-fcfs, sjf, reverse-priority", 0, 0, 0 },

    { "preemption-policy", OPTION_STRING, FIELD(model.preemption), NULL,
      "NAME", "which stream makes room: fcfs, priority", 0, 0, 0 },

    { "workers", OPTION_INT, FIELD(workers), "0", NULL,
      "standby: processes that share the work and die together", 0, WORKERS_MAX,
      0 },

    /* For tests of the death of a large process. */
    { "model-memory", OPTION_INT, FIELD(memory_mb), "0", "MB",
      NULL, 0, 1 << 20, 0 },

    { "model-memory-kind", OPTION_STRING, FIELD(memory_kind), "private",
      "private|shared", NULL, 0, 0, 0 },

    { "token-log", OPTION_STRING, FIELD(token_log), NULL, "FILE",
      NULL, 0, 0, 0 },

    { .name = NULL }
};


/* The first option that was given and that only the other kind has. */
static const char *
simulated_stranger(const simulated_options_t *o, const engine_kind_t *kind)
{
    size_t  i;

    const struct {
        const char           *name;
        const engine_kind_t  *kind;
        int                   is_given;
    } options[] = {
        { "--token-delay", &sim_kind,
          o->sim.token_delay_ms != SIM_TOKEN_DELAY_MS },
        { "--first-token-delay", &sim_kind, o->sim.first_token_delay_ms != 0 },
        { "--error-rate", &sim_kind, o->sim.error_rate != 0 },
        { "--reject-all", &sim_kind, o->sim.is_reject_all },
        { "--latency-model", &model_engine_kind, o->model.latency != NULL },
        { "--alpha-coeffs", &model_engine_kind, o->model.alpha != NULL },
        { "--beta-coeffs", &model_engine_kind, o->model.beta != NULL },
        { "--hardware", &model_engine_kind, o->model.hardware != NULL },
        { "--hardware-config", &model_engine_kind,
          o->model.hardware_file != NULL },
        { "--model-config-folder", &model_engine_kind,
          o->model.folder != NULL },
        { "--scheduler", &model_engine_kind, o->model.scheduler != NULL },
        { "--preemption-policy", &model_engine_kind,
          o->model.preemption != NULL },
        { "--tp", &model_engine_kind, o->model.tp != 0 },
        { "--block-size-in-tokens", &model_engine_kind,
          o->model.block_tokens != 0 },
        { "--total-kv-blocks", &model_engine_kind, o->model.blocks != 0 },
        { "--max-model-len", &model_engine_kind, o->model.max_len != 0 },
        { "--max-num-seqs", &model_engine_kind, o->model.max_seqs != 0 },
        { "--max-num-batched-tokens", &model_engine_kind,
          o->model.batched_tokens != 0 },
        { "--long-prefill-token-threshold", &model_engine_kind,
          o->model.chunk_tokens != 0 }
    };

    for (i = 0; i < sizeof(options) / sizeof(options[0]); i++) {
        if (options[i].is_given && options[i].kind != kind) {
            return options[i].name;
        }
    }

    return NULL;
}


static int
simulated_check_weights(const cmdline_t *o, char error[CMDLINE_ERROR_BYTES])
{
    if (o->engine.weights_files == NULL) {
        return o->engine.weights.sockets == NULL ? 0
               : cmdline_wrong(error, "--weights: needs --weights-file");
    }

    if (o->engine.weights.sockets == NULL) {
        return cmdline_wrong(error, "--weights-file: needs --weights");
    }

    return cmdline_check_services(o, weights_count(o->engine.weights_files),
                                  error);
}


static int
simulated_check_memory(simulated_options_t *o,
    char error[CMDLINE_ERROR_BYTES])
{
    if (o->workers > 0 && !o->cmdline.engine.is_standby) {
        return cmdline_wrong(error, "--workers needs --standby");
    }

    o->is_memory_shared = strcmp(o->memory_kind, "shared") == 0;

    return o->is_memory_shared || strcmp(o->memory_kind, "private") == 0 ? 0
           : cmdline_wrong(error, "--model-memory-kind: private or shared");
}


static int
simulated_check(simulated_options_t *o, const engine_kind_t *kind,
    char error[CMDLINE_ERROR_BYTES])
{
    const char              *stranger;
    const engine_options_t  *e;

    e = &o->cmdline.engine;
    stranger = simulated_stranger(o, kind);

    if (stranger != NULL) {
        return cmdline_wrong(error, "%s: not with --engine %s", stranger,
                             e->kind);
    }

    if (kind == &sim_kind && e->model != NULL
        && !llmgw_name_is_valid(e->model, strlen(e->model)))
    {
        return cmdline_wrong(error, "--model: \"%.80s\" is not a name",
                             e->model);
    }

    return simulated_check_memory(o, error) == 0
           && simulated_check_weights(&o->cmdline, error) == 0
           && (kind != &model_engine_kind
               || model_engine_check(&o->model, error, CMDLINE_ERROR_BYTES)
                  == 0)
           ? 0 : -1;
}


static const engine_kind_t *
simulated_choose(cmdline_t *cmdline, char error[CMDLINE_ERROR_BYTES])
{
    simulated_options_t  *o;
    const engine_kind_t  *kind;

    o = (simulated_options_t *) cmdline;
    cmdline->engine.kind = cmdline->kind;

    if (strcmp(cmdline->kind, "sim") == 0) {
        kind = &sim_kind;
        cmdline->engine.own = &o->sim;

    } else if (strcmp(cmdline->kind, "model") == 0) {
        kind = &model_engine_kind;
        cmdline->engine.own = &o->model;
        o->model.name = cmdline->engine.model;

    } else {
        (void) cmdline_wrong(error, "--engine: \"%.80s\" is not sim or model",
                             cmdline->kind);
        return NULL;
    }

    return simulated_check(o, kind, error) == 0 ? kind : NULL;
}


const cmdline_program_t  simulated_program = {
    "llmgw-simreplica",
    "--id ID --listen HOST:PORT [options]",
    "A simulated LLM engine: streams made-up tokens of a prompt over gRPC.",
    simulated_table,
    simulated_choose
};
