
/*
 * The kinds of engines.
 *
 * An option that a kind does not know is refused, rather than passed over: who
 * gives --token-delay believes to have a simulation.
 */

#include <stdio.h>
#include <string.h>

#include "proto/members/members.h"
#include "replica/engine/llama/core.h"
#include "replica/engine/llama/llama.h"
#include "replica/engine/llama/parts.h"
#include "replica/engine/model/model.h"
#include "replica/engine/openai.h"
#include "replica/engine/sim/sim.h"
#include "replica/kinds.h"
#include "replica/launch/place.h"
#include "replica/shard/options.h"
#include "replica/shard/orchestrate/orchestrate.h"
#include "replica/shard/serve/kind.h"


/* What a kind takes beyond what all take. */
enum {
    KINDS_URL = 1,          /* or a command, one of them; keys,
                               certificates */
    KINDS_SIM = 2,          /* delays, faults, a model's name */
    KINDS_FILE = 4,         /* --model is a file, and needed; exactness */
    KINDS_MODEL = 8,        /* what shapes the model of a replica, its name */
    KINDS_LLAMA = 16,       /* how a model in the process is run */
    KINDS_SHARDS = 32       /* asked for by an option of its own */
};

static const struct {
    const char           *name;
    const engine_kind_t  *kind;
    int                   takes;
} kinds[] = {
    { "sim", &sim_kind, KINDS_SIM },
    { "model", &model_engine_kind, KINDS_MODEL },
    { "llama", &llama_kind, KINDS_FILE|KINDS_LLAMA },
    { KINDS_ORCHESTRATE, &orchestrate_kind, KINDS_LLAMA|KINDS_SHARDS },
    { KINDS_SHARD, &shard_kind, KINDS_LLAMA|KINDS_SHARDS },
    { "openai", &openai_kind, KINDS_URL },
    { "vllm", &openai_kind, KINDS_URL },
    { "sglang", &openai_kind, KINDS_URL },
    { "llamacpp", &openai_kind, KINDS_URL },
    { "auto", &openai_kind, KINDS_URL },
};


/* The first option of a replica model that was given. */
static const char *
kinds_model_option(const engine_options_t *o)
{
    size_t  i;

    const struct {
        const char  *name;
        int          is_given;
    } options[] = {
        { "--latency-model", o->model_latency != NULL },
        { "--alpha-coeffs", o->model_alpha != NULL },
        { "--beta-coeffs", o->model_beta != NULL },
        { "--hardware", o->model_hardware != NULL },
        { "--hardware-config", o->model_hardware_file != NULL },
        { "--model-config-folder", o->model_folder != NULL },
        { "--scheduler", o->model_scheduler != NULL },
        { "--preemption-policy", o->model_preemption != NULL },
        { "--tp", o->model_tp != 0 },
        { "--block-size-in-tokens", o->model_block_tokens != 0 },
        { "--total-kv-blocks", o->model_blocks != 0 },
        { "--max-model-len", o->model_max_len != 0 },
        { "--max-num-seqs", o->model_max_seqs != 0 },
        { "--max-num-batched-tokens", o->model_batched_tokens != 0 },
        { "--long-prefill-token-threshold", o->model_chunk_tokens != 0 }
    };

    for (i = 0; i < sizeof(options) / sizeof(options[0]); i++) {
        if (options[i].is_given) {
            return options[i].name;
        }
    }

    return NULL;
}


/* The first option that was given and that this kind does not take. */
static const char *
kinds_stranger(const engine_options_t *o, int takes)
{
    if (!(takes & KINDS_URL)) {

        if (o->url != NULL) {
            return "--engine-url";
        }

        if (o->command != NULL) {
            return "--engine-command";
        }

        if (o->key_file != NULL) {
            return "--engine-key-file";
        }

        if (o->ca_file != NULL) {
            return "--engine-ca-file";
        }

        if (o->stall_timeout_ms != ENGINE_STALL_TIMEOUT_MS) {
            return "--stall-timeout";
        }

        if (o->stream_idle_timeout_ms != ENGINE_IDLE_TIMEOUT_MS) {
            return "--stream-idle-timeout";
        }
    }

    if (!(takes & (KINDS_SIM|KINDS_FILE|KINDS_MODEL))) {

        if (o->model != NULL) {
            return "--model";
        }

        if (o->weights.sockets != NULL) {
            return "--weights";
        }
    }

    if (!(takes & (KINDS_SIM|KINDS_MODEL)) && o->weights_files != NULL) {
        return "--weights-file";
    }

    if (!(takes & KINDS_FILE) && !o->is_exact) {
        return "--exact";
    }

    if (!(takes & KINDS_LLAMA)) {

        if (o->model_name != NULL) {
            return "--model-name";
        }

        if (o->context_tokens != 0) {
            return "--context-tokens";
        }

        if (o->threads != 0) {
            return "--threads";
        }

        if (o->cpu != NULL) {
            return "--cpu";
        }
    }

    if (!(takes & KINDS_SIM)) {

        if (o->token_delay_ms != ENGINE_TOKEN_DELAY_MS) {
            return "--token-delay";
        }

        if (o->first_token_delay_ms != 0) {
            return "--first-token-delay";
        }

        if (o->error_rate != 0) {
            return "--error-rate";
        }

        if (o->is_reject_all) {
            return "--reject-all";
        }
    }

    return takes & KINDS_MODEL ? NULL : kinds_model_option(o);
}


/* Each model is probed with so many tokens when it is loaded. */
static int
kinds_check_context(const engine_options_t *o, char error[KINDS_ERROR_BYTES])
{
    if (o->context_tokens == 0 || o->context_tokens >= CORE_CONTEXT_MIN) {
        return 0;
    }

    snprintf(error, KINDS_ERROR_BYTES, "--context-tokens: at least %d, or 0 "
             "for the model's", CORE_CONTEXT_MIN);

    return -1;
}


/* A service for each file, no more and no less. */
static int
kinds_check_weights(const engine_options_t *o, int takes,
    char error[KINDS_ERROR_BYTES])
{
    size_t  files, services;

    if (o->weights_files != NULL && o->weights.sockets == NULL) {
        snprintf(error, KINDS_ERROR_BYTES, "--weights-file: needs --weights");
        return -1;
    }

    if (o->weights.sockets == NULL) {
        return 0;
    }

    if (o->weights_files == NULL && !(takes & KINDS_FILE)) {
        snprintf(error, KINDS_ERROR_BYTES, "--weights: needs --weights-file");
        return -1;
    }

    services = weights_count(o->weights.sockets);
    files = takes & KINDS_FILE ? parts_count(o->model)
                               : weights_count(o->weights_files);

    if (files != services) {
        snprintf(error, KINDS_ERROR_BYTES, "--weights: %zu sockets for %zu "
                 "files: each file has a service of its own", services,
                 files);
        return -1;
    }

    return 0;
}


/* Which process is asked: one that runs, or one that is started. */
static int
kinds_check_url(const engine_options_t *o, char error[KINDS_ERROR_BYTES])
{
    if (o->url == NULL && o->command == NULL) {
        snprintf(error, KINDS_ERROR_BYTES, "--engine %s needs --engine-url or "
                 "--engine-command", o->kind);
        return -1;
    }

    if (o->url != NULL && o->command != NULL) {
        snprintf(error, KINDS_ERROR_BYTES, "--engine-url: not with "
                 "--engine-command, which says where the engine listens");
        return -1;
    }

    if (o->command == NULL && o->stop_timeout_ms != ENGINE_STOP_TIMEOUT_MS) {
        snprintf(error, KINDS_ERROR_BYTES, "--engine-stop-timeout: needs "
                 "--engine-command");
        return -1;
    }

    return o->command != NULL ? place_check(o->command, error) : 0;
}


static int
kinds_check(const engine_options_t *o, const engine_kind_t *kind, int takes,
    char error[KINDS_ERROR_BYTES])
{
    const char  *stranger;

    stranger = kinds_stranger(o, takes);

    if (stranger != NULL) {
        snprintf(error, KINDS_ERROR_BYTES, "%s: not with --%s%s", stranger,
                 takes & KINDS_SHARDS ? "" : "engine ", o->kind);
        return -1;
    }

    if (o->is_standby && o->command != NULL) {
        snprintf(error, KINDS_ERROR_BYTES, "--standby: not with "
                 "--engine-command: such an engine cannot wait asleep yet");
        return -1;
    }

    if (o->is_standby && kind->wake == NULL) {
        snprintf(error, KINDS_ERROR_BYTES, "--standby: not with --%s%s, %s",
                 takes & KINDS_SHARDS ? "" : "engine ", o->kind,
                 takes & KINDS_URL
                 ? "whose process cannot be watched: another one holds what it "
                   "serves" : "which cannot wait asleep");
        return -1;
    }

    if ((takes & KINDS_URL) && kinds_check_url(o, error) != 0) {
        return -1;
    }

    if ((takes & KINDS_FILE) && o->model == NULL) {
        snprintf(error, KINDS_ERROR_BYTES, "--engine %s needs --model FILE",
                 o->kind);
        return -1;
    }

    if ((takes & KINDS_SIM) && o->model != NULL
        && !llmgw_name_is_valid(o->model, strlen(o->model)))
    {
        snprintf(error, KINDS_ERROR_BYTES, "--model: \"%.80s\" is not a name",
                 o->model);
        return -1;
    }

    if (kinds_check_context(o, error) != 0
        || kinds_check_weights(o, takes, error) != 0)
    {
        return -1;
    }

    return takes & KINDS_MODEL
           ? model_engine_check(o, error, KINDS_ERROR_BYTES) : 0;
}


const engine_kind_t *
kinds_choose(const engine_options_t *o, char error[KINDS_ERROR_BYTES])
{
    int     in_shards;
    size_t  i;

    in_shards = (o->shards->head != NULL || o->shards->slice != NULL);

    for (i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        if (strcmp(kinds[i].name, o->kind) == 0
            && !(kinds[i].takes & KINDS_SHARDS) == !in_shards)
        {
            return kinds_check(o, kinds[i].kind, kinds[i].takes, error) == 0
                   ? kinds[i].kind : NULL;
        }
    }

    snprintf(error, KINDS_ERROR_BYTES, "--engine: \"%.80s\" is not one of %s",
             o->kind, KINDS_NAMES);

    return NULL;
}
