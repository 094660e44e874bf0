
/* Shards as JSON: what a shard computes, and the events when it is offered or
   no longer offered. */

#include <stdio.h>
#include <string.h>

#include "control/command_show.h"
#include "proto/members/shards.h"


/* MODEL:LO-HI@MEMBER, with a model of 126 bytes and two numbers of five. */
#define SHARD_NAME_BYTES                                                      \
    (LLMGW_SHARD_MODEL_BYTES + LLMGW_MEMBERS_NAME_BYTES + 16)


/*
 * Reads the model of a shard.  -1: its list is not there, so its model is
 * unknown.
 */
static int
command_shard_model(const command_env_t *env, const llmgw_member_t *m,
    llmgw_shard_model_t *model)
{
    size_t       bytes;
    const char  *names;

    names = m->models ? env->show_models(env->data, m->models, &bytes) : NULL;

    return names != NULL ? llmgw_shard_model_read(model, names, bytes) : -1;
}


/* The name of a shard; its model is "?" if the list is not there. */
static json_t *
command_shard_name(const command_env_t *env, const llmgw_member_t *m,
    const llmgw_shard_t *shard)
{
    char                 name[SHARD_NAME_BYTES];
    llmgw_shard_model_t  model = { .name = "?" };

    command_shard_model(env, m, &model);
    snprintf(name, sizeof(name), "%s:%u-%u@%s", model.name, shard->first,
             shard->last, m->id);

    return json_string(name);
}


void
command_show_shard(const command_env_t *env, json_t *shown,
    const llmgw_member_t *m)
{
    char                 weights[2 * LLMGW_WEIGHTS_ID_BYTES + 1];
    json_t              *said;
    llmgw_shard_t        shard;
    llmgw_shard_model_t  model;

    if (llmgw_member_shard(m, &shard) != 0) {
        return;
    }

    said = json_pack("{s:o, s:i, s:i, s:i, s:I, s:b}",
                     "name", command_shard_name(env, m, &shard),
                     "first", shard.first, "last", shard.last,
                     "layers", shard.layers,
                     "memory", (json_int_t) shard.memory_bytes,
                     "loaded", shard.is_loaded);

    if (command_shard_model(env, m, &model) == 0) {
        llmgw_weights_id_write(model.weights_id, weights);
        json_object_set_new(said, "model", json_string(model.name));
        json_object_set_new(said, "weights", json_string(weights));
        json_object_set_new(said, "numerics", json_string(model.numerics));
    }

    if (shard.zone[0] != '\0') {
        json_object_set_new(said, "zone", json_string(shard.zone));
    }

    json_object_set_new(said, "usable",
                        json_boolean(llmgw_shard_is_usable(m)));
    json_object_set_new(shown, "shard", said);
}


static void
command_add_offer(const command_env_t *env, json_t *events, const char *name,
    const llmgw_member_t *m, uint64_t wall_us)
{
    json_t         *event;
    llmgw_shard_t   shard;

    llmgw_member_shard(m, &shard);
    event = command_event(name, m->id, wall_us);
    json_object_set_new(event, "shard", command_shard_name(env, m, &shard));
    json_array_append_new(events, event);
}


/* 1: a reader may take one offer for the other: it finds what it expects. */
static int
command_offers_are_alike(const llmgw_member_t *a, const llmgw_member_t *b)
{
    return a->models == b->models && a->epoch == b->epoch
           && a->shard.first == b->shard.first
           && a->shard.last == b->shard.last
           && strcmp(a->grpc, b->grpc) == 0;
}


/*
 * If another offer replaces the last one, there are two events: the last one
 * ended, and the other began.
 */
void
command_add_shard(const command_env_t *env, json_t *events,
    const llmgw_member_t *before, const llmgw_member_t *after,
    uint64_t wall_us)
{
    int  was, is;

    was = before != NULL && llmgw_shard_is_advertised(before);
    is = llmgw_shard_is_advertised(after);

    if (was && is && command_offers_are_alike(before, after)) {
        return;
    }

    if (was) {
        command_add_offer(env, events, "shard_retired", before, wall_us);
    }

    if (is) {
        command_add_offer(env, events, "shard_advertised", after, wall_us);
    }
}
