
/*
 * The own record: the state of the own replica, which the owner sets, and its
 * drain, which is kept here.  A change raises the incarnation and is delivered
 * to every gateway.
 */

#include <assert.h>
#include <string.h>

#include "swim/swim_inner.h"


static int
swim_own_differs(const llmgw_member_t *known, const llmgw_member_t *facts)
{
    return known->service != facts->service
           || known->draining != facts->draining
           || known->max_capacity != facts->max_capacity
           || known->replica_start_ms != facts->replica_start_ms
           || known->models != facts->models
           || known->models_cut != facts->models_cut
           || !llmgw_member_shards_are_alike(known, facts)
           || !llmgw_member_groups_are_alike(known, facts)
           || strcmp(known->model_version, facts->model_version) != 0
           || strcmp(known->drain_owner, facts->drain_owner) != 0;
}


static int
swim_traits_differ(const member_traits_t *known, const member_traits_t *traits)
{
    return known->refuses_new != traits->refuses_new
           || known->orchestrates != traits->orchestrates
           || strcmp(known->update, traits->update) != 0;
}


/*
 * Replaces the own record, and sends it if it differs.  Gateways get at once
 * every change that affects routing, above all DOWN.  said: has the list of
 * models; NULL: the list stays.  If there is no memory for the list, the record
 * has none until the next report.
 */
static void
swim_replace_own(swim_t *swim, const llmgw_member_t *facts,
    const member_traits_t *traits, const swim_own_t *said, uint64_t now_us)
{
    uint64_t   models;
    member_t  *own;

    own = swim->own;
    models = own->facts.models;

    if (!swim_own_differs(&own->facts, facts)
        && !swim_traits_differ(&own->traits, traits))
    {
        return;
    }

    own->facts = *facts;
    own->traits = *traits;
    own->facts.incarnation++;

    if (said != NULL && facts->models != models) {
        (void) member_set_models(own, said->models, said->models_bytes);
    }

    swim_changed(swim, own, MEMBER_FACTS);

    if (member_is_present(own)) {
        delivery_to_gateways(swim, now_us);
    }

    /* if it is not present, it leaves: LEFT is being sent, with this record */
}


static void
swim_fill_drain(const swim_t *swim, llmgw_member_t *facts,
    const member_traits_t *traits)
{
    const char  *owner;

    owner = drain_owner(&swim->drain);

    facts->draining = traits->refuses_new || owner[0] != '\0';
    strcpy(facts->drain_owner, owner);
}


void
swim_drain_changed(swim_t *swim, unsigned what, uint64_t now_us)
{
    llmgw_member_t  facts;

    facts = swim->own->facts;
    swim_fill_drain(swim, &facts, &swim->own->traits);
    swim_replace_own(swim, &facts, &swim->own->traits, NULL, now_us);

    if (what != 0 && swim->config.callbacks->on_drain != NULL) {
        swim->config.callbacks->on_drain(swim->config.data, what);
    }
}


static void
swim_fill_group(swim_t *swim, llmgw_member_t *facts, const swim_own_t *own,
    uint64_t now_us)
{
    memset(facts->group, 0, sizeof(facts->group));

    if (own->group != NULL) {
        assert(strlen(own->group) < LLMGW_GROUP_BYTES);
        strcpy(facts->group, own->group);
    }

    facts->group_state = own->group_state;
    facts->group_epoch = own->group_epoch;
    facts->group_lock = own->group_lock;

    skew_check_group(swim, facts, now_us);
}


/* Fills a shard's facts, which are in the place of the resume group. */
static void
swim_fill_shard(llmgw_member_t *facts, const swim_own_t *own)
{
    if (facts->is_shard) {
        memset(&facts->shard, 0, sizeof(llmgw_shard_t));

        if (own->shard != NULL) {
            facts->shard = *own->shard;
        }

    } else if (own->resume_group != NULL) {
        assert(strlen(own->resume_group) < LLMGW_MEMBERS_NAME_BYTES);
        memset(facts->resume_group, 0, sizeof(facts->resume_group));
        strcpy(facts->resume_group, own->resume_group);
    }
}


void
swim_set_own(swim_t *swim, const swim_own_t *own, uint64_t now_us)
{
    unsigned         what;
    llmgw_member_t   facts;
    member_traits_t  traits;

    assert(strlen(own->model_version) < LLMGW_MEMBERS_NAME_BYTES);
    assert(own->models_bytes <= LLMGW_MEMBERS_MODELS_BYTES);

    what = own->is_heard || own->service == LLMGW_SERVICE_READY
           ? drain_reported(&swim->drain, own->draining) : 0;
    facts = swim->own->facts;
    traits = swim->own->traits;

    facts.service = own->service;
    facts.max_capacity = own->max_capacity;
    facts.replica_start_ms = own->replica_start_ms;
    strcpy(facts.model_version, own->model_version);
    traits.refuses_new = own->draining != 0;
    traits.orchestrates = own->orchestrates != 0;
    swim_fill_shard(&facts, own);

    facts.models = own->models_bytes == 0
                   ? 0 : llmgw_members_list_hash(own->models,
                                                 own->models_bytes);
    facts.models_cut = own->models_cut;

    swim_fill_group(swim, &facts, own, now_us);
    swim_fill_drain(swim, &facts, &traits);
    swim_replace_own(swim, &facts, &traits, own, now_us);
    swim_drain_changed(swim, what, now_us);
}


void
swim_set_update(swim_t *swim, const char *id, uint64_t now_us)
{
    member_traits_t  traits;

    assert(strlen(id) < sizeof(traits.update));

    traits = swim->own->traits;
    strcpy(traits.update, id);
    swim_replace_own(swim, &swim->own->facts, &traits, NULL, now_us);
}


const char *
swim_drain_kept(const swim_t *swim)
{
    return drain_kept(&swim->drain);
}


void
swim_drain_tick(swim_t *swim, uint64_t now_us)
{
    swim_drain_changed(swim, drain_tick(&swim->drain, now_us), now_us);
}


uint64_t
swim_drain_next_us(const swim_t *swim)
{
    return drain_next_us(&swim->drain);
}


void
swim_retire(swim_t *swim, uint64_t now_us)
{
    drain_shutdown(&swim->drain);
    swim_drain_changed(swim, 0, now_us);
}


void
swim_leave(swim_t *swim, uint64_t now_us)
{
    if (!member_is_present(swim->own)) {
        return;
    }

    swim->own->facts.incarnation++;
    member_set_liveness(swim->own, LLMGW_LIVENESS_LEFT, now_us);
    table_count(&swim->table, 1, swim->own);
    swim_changed(swim, swim->own, MEMBER_LIVENESS);

    delivery_to_all(swim, now_us);
}
