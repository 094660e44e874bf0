
#include "core/ring/ring.h"
#include "standby/standby.h"


_Static_assert((int) LLMGW_STANDBY_ACTIVE == (int) LLMGW_GROUP_ACTIVE
               && (int) LLMGW_STANDBY_WAKING == (int) LLMGW_GROUP_WAKING
               && (int) LLMGW_STANDBY_STANDBY == (int) LLMGW_GROUP_STANDBY
               && (int) LLMGW_STANDBY_INIT == (int) LLMGW_GROUP_INIT,
               "core numbers the states as the segment does");
_Static_assert(LLMGW_TAKEOVER_NAME_BYTES == LLMGW_GROUP_BYTES,
               "a group's name fits");


static void ngx_http_llmgw_standbys_record(const llmgw_members_view_t *view,
    size_t i, llmgw_standby_record_t *record);
static ngx_uint_t ngx_http_llmgw_standbys_is_living(
    const llmgw_member_t *member, ngx_uint_t isolated);
static void ngx_http_llmgw_standbys_claim(ngx_http_llmgw_standbys_t *standbys,
    ngx_http_llmgw_models_t *models, const llmgw_members_view_t *view);
static void ngx_http_llmgw_standbys_look(ngx_http_llmgw_standbys_t *standbys,
    const llmgw_members_view_t *view, size_t place);
static void ngx_http_llmgw_standbys_warn(ngx_http_llmgw_standbys_t *standbys,
    const llmgw_members_view_t *view);


void
ngx_http_llmgw_standbys_init(ngx_http_llmgw_standbys_t *standbys,
    ngx_str_t *upstream, ngx_http_llmgw_zone_t *zone, ngx_log_t *log)
{
    standbys->upstream = upstream;
    standbys->zone = zone;
    standbys->log = log;
}


void
ngx_http_llmgw_standbys_done(ngx_http_llmgw_standbys_t *standbys)
{
    ngx_free(standbys->infos);
}


/* Makes one piece of memory: infos, then groups. */

ngx_int_t
ngx_http_llmgw_standbys_reserve(ngx_http_llmgw_standbys_t *standbys,
    const llmgw_members_view_t *view)
{
    void    *memory;
    size_t   i, n, nplaces;

    n = 0;

    for (i = 0; i < view->n; i++) {
        n += (view->members[i].group_state != LLMGW_GROUP_NONE);
    }

    nplaces = llmgw_standby_places(n);

    if (nplaces > standbys->capacity) {
        memory = ngx_alloc(nplaces * (sizeof(ngx_http_llmgw_standby_info_t)
                                      + sizeof(llmgw_standby_group_t)),
                           standbys->log);
        if (memory == NULL) {
            return NGX_ERROR;
        }

        ngx_free(standbys->infos);
        standbys->infos = memory;
        standbys->capacity = nplaces;
    }

    llmgw_standby_init(&standbys->known,
                       (llmgw_standby_group_t *)
                           (standbys->infos + standbys->capacity), nplaces);

    return NGX_OK;
}


void
ngx_http_llmgw_standbys_update(ngx_http_llmgw_standbys_t *standbys,
    ngx_http_llmgw_models_t *models, const llmgw_members_view_t *view)
{
    size_t                  i, nplaces;
    llmgw_standby_record_t  record;

    nplaces = standbys->known.nplaces;

    if (nplaces) {
        ngx_memzero(standbys->known.places,
                    nplaces * sizeof(llmgw_standby_group_t));
        ngx_memzero(standbys->infos,
                    nplaces * sizeof(ngx_http_llmgw_standby_info_t));

        for (i = 0; i < view->n; i++) {
            ngx_http_llmgw_standbys_record(view, i, &record);
            llmgw_standby_add(&standbys->known, &record);
        }

        ngx_http_llmgw_standbys_claim(standbys, models, view);
    }

    for (i = 0; i < nplaces; i++) {
        ngx_http_llmgw_standbys_look(standbys, view, i);
    }

    ngx_http_llmgw_standbys_warn(standbys, view);
}


static void
ngx_http_llmgw_standbys_record(const llmgw_members_view_t *view, size_t i,
    llmgw_standby_record_t *record)
{
    const llmgw_member_t  *member;

    member = &view->members[i];

    ngx_memzero(record, sizeof(llmgw_standby_record_t));

    if (member->group_state == LLMGW_GROUP_NONE) {
        return;
    }

    record->group = llmgw_ring_hash(member->group, ngx_strlen(member->group));
    record->epoch = member->group_epoch;
    record->lock = member->group_lock;
    record->index = i;
    record->state = member->group_state;
    record->is_living = ngx_http_llmgw_standbys_is_living(member,
                                                          view->isolated);
}


/* A standby that drains will not take over. */

static ngx_uint_t
ngx_http_llmgw_standbys_is_living(const llmgw_member_t *member,
    ngx_uint_t isolated)
{
    if (member->liveness != LLMGW_LIVENESS_ALIVE
        && member->liveness != LLMGW_LIVENESS_SUSPECT
        && !(member->liveness == LLMGW_LIVENESS_DEAD && isolated))
    {
        return 0;
    }

    if (member->group_state == LLMGW_GROUP_ACTIVE) {
        return member->service != LLMGW_SERVICE_DOWN
               && member->service != LLMGW_SERVICE_STOPPED;
    }

    return member->service == LLMGW_SERVICE_STARTING && !member->draining;
}


/* Upstreams with other models may read the same segment. */

static void
ngx_http_llmgw_standbys_claim(ngx_http_llmgw_standbys_t *standbys,
    ngx_http_llmgw_models_t *models, const llmgw_members_view_t *view)
{
    size_t                        i;
    llmgw_standby_record_t        record;
    const llmgw_standby_group_t  *group;

    for (i = 0; i < view->n; i++) {
        ngx_http_llmgw_standbys_record(view, i, &record);

        if (record.state != LLMGW_STANDBY_NONE
            && ngx_http_llmgw_models_takes(models, &view->members[i]))
        {
            group = llmgw_standby_find(&standbys->known, record.group);
            standbys->infos[group - standbys->known.places].is_ours = 1;
        }
    }
}


/*
 * Notes what the view shows of the group at this place, if it is ours, and logs
 * a takeover.
 */

static void
ngx_http_llmgw_standbys_look(ngx_http_llmgw_standbys_t *standbys,
    const llmgw_members_view_t *view, size_t place)
{
    const llmgw_member_t           *leader;
    llmgw_takeover_view_t           shown;
    llmgw_standby_group_t          *group;
    ngx_http_llmgw_standby_info_t  *info;

    group = &standbys->known.places[place];
    info = &standbys->infos[place];

    if (!info->is_ours) {
        return;
    }

    leader = group->is_led ? &view->members[group->leader] : NULL;

    shown.generation = view->generation;
    shown.is_led = group->is_led;
    shown.process = leader ? ngx_http_llmgw_standbys_process(leader) : 0;

    if (ngx_http_llmgw_takeovers_see(standbys->zone,
                                     view->members[group->index].group, &shown,
                                     &info->takeover))
    {
        ngx_log_error(NGX_LOG_NOTICE, standbys->log, 0,
                      "llmgw: upstream \"%V\": replica \"%s\" is active in "
                      "group \"%s\", %uL ms after the last one was gone",
                      standbys->upstream, leader->id, leader->group,
                      info->takeover->active_ms);
    }
}


/* Warns once, until no group is in conflict. */

static void
ngx_http_llmgw_standbys_warn(ngx_http_llmgw_standbys_t *standbys,
    const llmgw_members_view_t *view)
{
    size_t                        i;
    const llmgw_standby_group_t  *group;

    group = NULL;

    for (i = 0; i < standbys->known.nplaces; i++) {
        if (standbys->infos[i].is_ours
            && standbys->known.places[i].is_conflict)
        {
            group = &standbys->known.places[i];
        }
    }

    if (group && !standbys->conflict) {
        ngx_log_error(NGX_LOG_ERR, standbys->log, 0,
                      "llmgw: upstream \"%V\": two lock services have made "
                      "engines of group \"%s\" active, the greatest epoch is "
                      "routed to", standbys->upstream,
                      view->members[group->index].group);
    }

    standbys->conflict = (group != NULL);
}


const llmgw_member_t *
ngx_http_llmgw_standbys_place(const ngx_http_llmgw_standbys_t *standbys,
    const llmgw_members_view_t *view, size_t i,
    ngx_http_llmgw_standing_t *standing)
{
    const llmgw_member_t         *member;
    llmgw_standby_record_t        record;
    const llmgw_standby_group_t  *group;

    member = &view->members[i];

    ngx_memzero(standing, sizeof(ngx_http_llmgw_standing_t));

    if (member->group_state == LLMGW_GROUP_NONE) {
        return member;
    }

    ngx_http_llmgw_standbys_record(view, i, &record);

    group = llmgw_standby_find(&standbys->known, record.group);
    standing->is = llmgw_standby_standing(&standbys->known, &record);
    standing->has_standby = llmgw_standby_has_standby(group);
    standing->takeover = standbys->infos[group - standbys->known.places]
                             .takeover;

    return standing->is == LLMGW_STANDING_WARM && member->models == 0
           && member->resume_group[0] == '\0'
           && group->leader != LLMGW_STANDBY_NOBODY
           ? &view->members[group->leader] : member;
}


const llmgw_standby_group_t *
ngx_http_llmgw_standbys_group(const ngx_http_llmgw_standbys_t *standbys,
    const llmgw_members_view_t *view, size_t i, llmgw_takeover_t **takeover)
{
    llmgw_standby_record_t          record;
    const llmgw_standby_group_t    *group;
    ngx_http_llmgw_standby_info_t  *info;

    ngx_http_llmgw_standbys_record(view, i, &record);

    if (record.state == LLMGW_STANDBY_NONE) {
        return NULL;
    }

    group = llmgw_standby_find(&standbys->known, record.group);

    if (group == NULL || group->index != i) {
        return NULL;
    }

    info = &standbys->infos[group - standbys->known.places];
    *takeover = info->takeover;

    return info->is_ours ? group : NULL;
}


uint64_t
ngx_http_llmgw_standbys_process(const llmgw_member_t *member)
{
    uint64_t  process;

    process = llmgw_ring_hash(member->id, ngx_strlen(member->id))
              ^ member->replica_start_ms;

    return process ? process : 1;
}
