
/* llmgateway.ReplicaControl: methods by which tests control a simulated
   engine. */

#include "llmgateway.pb-c.h"
#include "replica/engine/model/model.h"
#include "replica/engine/sim/sim.h"
#include "replica/simulated/control.h"


/* Changes the faults whose members are present. */
static void
control_merge_faults(faults_t *f, const Llmgateway__Faults *message)
{
    if (message->has_reject_all_case) {
        f->reject_all = message->reject_all;
    }

    if (message->has_error_rate_case) {
        f->error_rate = message->error_rate;
    }

    if (message->has_token_delay_ms_case) {
        f->token_delay_ms = message->token_delay_ms;
    }

    if (message->has_first_token_delay_ms_case) {
        f->first_token_delay_ms = message->first_token_delay_ms;
    }

    if (message->has_stall_case) {
        f->stall = message->stall;
    }

    if (message->has_die_after_tokens_case) {
        f->die_after_tokens = message->die_after_tokens;
    }

    if (message->has_gate_case) {
        f->gate = message->gate;
    }
}


static void
control_reply_faults(service_call_t *call, const faults_t *f)
{
    Llmgateway__Faults  r = LLMGATEWAY__FAULTS__INIT;

    r.has_reject_all_case = LLMGATEWAY__FAULTS__HAS_REJECT_ALL_REJECT_ALL;
    r.reject_all = f->reject_all;
    r.has_error_rate_case = LLMGATEWAY__FAULTS__HAS_ERROR_RATE_ERROR_RATE;
    r.error_rate = f->error_rate;
    r.has_token_delay_ms_case =
        LLMGATEWAY__FAULTS__HAS_TOKEN_DELAY_MS_TOKEN_DELAY_MS;
    r.token_delay_ms = f->token_delay_ms;
    r.has_first_token_delay_ms_case =
        LLMGATEWAY__FAULTS__HAS_FIRST_TOKEN_DELAY_MS_FIRST_TOKEN_DELAY_MS;
    r.first_token_delay_ms = f->first_token_delay_ms;
    r.has_stall_case = LLMGATEWAY__FAULTS__HAS_STALL_STALL;
    r.stall = f->stall;
    r.has_die_after_tokens_case =
        LLMGATEWAY__FAULTS__HAS_DIE_AFTER_TOKENS_DIE_AFTER_TOKENS;
    r.die_after_tokens = f->die_after_tokens;
    r.has_gate_case = LLMGATEWAY__FAULTS__HAS_GATE_GATE;
    r.gate = f->gate;

    service_reply(call, &r.base);
}


static void
control_set_faults(service_call_t *call)
{
    faults_t                   faults;
    const char                *field;
    const Llmgateway__Faults  *message;

    message = (const Llmgateway__Faults *) service_request(call);
    faults = *sim_faults(service_engine(call));
    control_merge_faults(&faults, message);
    field = faults_error(&faults);

    if (field != NULL) {
        service_call_refuse(call, LLMGW_GRPC_INVALID_ARGUMENT,
                            "%s is out of bounds", field);
        return;
    }

    sim_set_faults(service_engine(call), &faults);
    control_reply_faults(call, &faults);
}


static void
control_get_stats(service_call_t *call)
{
    const engine_t     *engine;
    Llmgateway__Stats   response = LLMGATEWAY__STATS__INIT;

    engine = service_engine(call);

    response.active_requests = engine->stats.active;
    response.started = engine->stats.started;
    response.finished = engine->stats.finished;
    response.cancelled = engine->stats.cancelled;
    response.failed = engine->stats.failed;
    response.tokens = engine->stats.tokens;
    response.prompt_tokens = engine->stats.prompt_tokens;
    response.cached_tokens = engine->stats.cached_tokens;
    response.model_version = (char *) engine->facts.model_version;
    response.draining = engine_is_draining(engine);

    service_reply(call, &response.base);
}


#define CONTROL_GET_STATS                                                     \
    { "/llmgateway.ReplicaControl/GetStats",                                  \
      &llmgateway__stats_request__descriptor, control_get_stats }

static const service_method_t  control_sim[] = {

    { "/llmgateway.ReplicaControl/SetFaults",
      &llmgateway__faults__descriptor, control_set_faults },

    CONTROL_GET_STATS,
    { .path = NULL }
};

static const service_method_t  control_model[] = {
    CONTROL_GET_STATS,
    { .path = NULL }
};


const service_method_t *
control_methods(const engine_kind_t *kind)
{
    return kind == &sim_kind ? control_sim : control_model;
}
