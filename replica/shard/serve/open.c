
/*
 * Which sessions a shard accepts.
 *
 * The token is checked first, so that a stranger learns nothing; then what
 * needs no facts; last the model, whose ids have to be equal.
 */

#include <stdio.h>
#include <string.h>

#include "proto/members/members.h"
#include "replica/shard/serve/serve_inner.h"


static shard_reason_t
open_judge_token(const serve_t *v, const Llmgateway__Shard__Open *open,
    char text[SERVE_TEXT_BYTES])
{
    shard_claim_t  claim;

    if (v->options.key == NULL) {
        return SHARD_OK;
    }

    claim.caller = open->caller;
    claim.session = open->session;
    claim.shard = v->options.id;
    claim.model = open->model;

    if (shard_key_verify(v->options.key, &claim, v->unix_s, open->token.data,
                         open->token.len)
        == 0)
    {
        return SHARD_OK;
    }

    return serve_why(text, SHARD_BAD_TOKEN, "no key of this shard signed "
                       "this session for \"%s\"", v->options.id);
}


/* Checks that the session's layers begin where the slice does, and end within
   it. */
static shard_reason_t
open_judge_layers(const core_facts_t *f, const Llmgateway__Shard__Open *open,
    char text[SERVE_TEXT_BYTES])
{
    if (open->first_layer == f->first_layer
        && open->last_layer >= f->first_layer
        && open->last_layer <= f->last_layer)
    {
        return SHARD_OK;
    }

    return serve_why(text, SHARD_BAD_LAYERS, "layers %u-%u were asked for, "
                       "this shard computes %u up to at most %u",
                       open->first_layer, open->last_layer, f->first_layer,
                       f->last_layer);
}


static shard_reason_t
open_judge_numerics(const serve_t *v, const Llmgateway__Shard__Open *open,
    char text[SERVE_TEXT_BYTES])
{
    if ((tensor_dtype_t) open->dtype != v->options.dtype) {
        return serve_why(text, SHARD_NUMERICS_MISMATCH, "this shard has "
                           "--activation-dtype %s",
                           v->options.dtype == TENSOR_FP16 ? "fp16" : "fp32");
    }

    if (strcmp(open->numerics_id, v->facts.numerics) != 0) {
        return serve_why(text, SHARD_NUMERICS_MISMATCH, "this shard's "
                           "numerics id is \"%s\"", v->facts.numerics);
    }

    return SHARD_OK;
}


static shard_reason_t
open_judge_model(const serve_t *v, const Llmgateway__Shard__Open *open,
    char text[SERVE_TEXT_BYTES])
{
    shard_reason_t       reason;
    const core_facts_t  *f;

    f = &v->facts;

    if (strcmp(open->model, f->model) != 0) {
        return serve_why(text, SHARD_WEIGHTS_MISMATCH, "this shard computes "
                           "\"%s\"", f->model);
    }

    if (open->weights_id.len != SHARD_WEIGHTS_BYTES
        || memcmp(open->weights_id.data, f->weights_id, SHARD_WEIGHTS_BYTES)
           != 0)
    {
        return serve_why(text, SHARD_WEIGHTS_MISMATCH, "this shard has "
                           "\"%s\" with another weights id", f->model);
    }

    reason = open_judge_layers(f, open, text);

    if (reason != SHARD_OK) {
        return reason;
    }

    reason = open_judge_numerics(v, open, text);

    if (reason != SHARD_OK) {
        return reason;
    }

    if (open->rows > f->context) {
        return serve_why(text, SHARD_CONTEXT_FULL, "%u positions will be "
                           "needed, a session has %u", open->rows, f->context);
    }

    return SHARD_OK;
}


shard_reason_t
open_judge_caller(const serve_t *v, const Llmgateway__Shard__Open *open,
    char text[SERVE_TEXT_BYTES])
{
    if (open->session == 0
        || !llmgw_name_is_valid(open->caller, strlen(open->caller)))
    {
        return serve_why(text, SHARD_BAD_SHAPE, "a session has a number "
                           "above 0, and the caller's member id");
    }

    return open_judge_token(v, open, text);
}


shard_reason_t
open_judge(const serve_t *v, const Llmgateway__Shard__Open *open,
    char text[SERVE_TEXT_BYTES])
{
    if (v->is_draining) {
        return serve_why(text, SHARD_DRAINING, "this shard is draining");
    }

    return v->has_facts ? open_judge_model(v, open, text) : SHARD_OK;
}
