
/* What a line on the control socket needs around it, without a socket. */

#ifndef CONTROL_SCENE_H
#define CONTROL_SCENE_H

#include <stdio.h>
#include <string.h>

#include "control/command.h"


typedef struct {
    command_env_t        env;
    command_peer_t       peer;
    llmgw_member_t       own;
    llmgw_member_load_t  load;
    swim_counters_t      counters;
    json_t              *pipelines;     /* NULL: none */
    json_t              *callers;       /* likewise */
    report_t             report;        /* the last that was accepted */
    int                  nreports;
    int                  is_busy;       /* refuse the next report */
    int                  nleaves;
    int                  nviews;        /* how often members were asked for */
    char                 keys[96];      /* verb and text of the last change */
    char                 injected[64];
    char                 drained[96];   /* the last: id, time, and "force" */
    char                 switched[96];  /* the last: group and time */
    char                 updated[256];  /* the last update */
    int                  naborts;
} control_scene_t;


static uint64_t
scene_now_us(void *data)
{
    return 5000000;
}


static uint64_t
scene_wall_us(void *data)
{
    return 1763650000123456ULL;
}


static void
scene_leave(void *data)
{
    ((control_scene_t *) data)->nleaves++;
}


static json_t *
scene_keys(void *data, command_peer_t *peer, command_keys_t verb,
    const char *text)
{
    control_scene_t  *scene = data;

    snprintf(scene->keys, sizeof(scene->keys), "%d %s", verb,
             text ? text : "-");

    return json_pack("{s:b}", "ok", 1);
}


/* The only member is the agent itself. */
static llmgw_roster_t
scene_show_roster(void *data)
{
    control_scene_t  *scene = data;

    scene->nviews++;

    return (llmgw_roster_t) {
        .members = &scene->own, .loads = &scene->load, .n = 1
    };
}


static void
scene_show_traits(void *data, const char *id, command_traits_t *traits)
{
    *traits = (command_traits_t) { .update = "", .detail = "",
                                      .heard_ms = -1 };
}


static void
scene_show_status(void *data, command_status_t *status)
{
    control_scene_t  *scene = data;

    memset(status, 0, sizeof(command_status_t));
    status->own = &scene->own;
    status->load = &scene->load;
    status->counters = &scene->counters;
    status->pipelines = scene->pipelines;
    status->callers = scene->callers;
}


#define SCENE_WEIGHTS  "0123456789abcdef0123456789abcdef"                     \
                       "0123456789abcdef0123456789abcdef"

/* Lists 1 and 2 have names of models, list 3 is a shard's; NULL: there is no
   such list. */
static const char *
scene_show_models(void *data, uint64_t models, size_t *bytes)
{
    if (models == 3) {
        *bytes = sizeof("toy\0" SCENE_WEIGHTS "\0n1");
        return "toy\0" SCENE_WEIGHTS "\0n1";
    }

    *bytes = models == 1 ? 2 : 6;

    return models == 1 ? "a" : models == 2 ? "a\0b c" : NULL;
}


static int
scene_inject(void *data, const char *id)
{
    control_scene_t  *scene = data;

    snprintf(scene->injected, sizeof(scene->injected), "%s", id);

    return strcmp(id, "r2") == 0 ? 0 : -1;
}


static void
scene_drain(void *data, command_peer_t *peer, const char *id,
    uint64_t timeout_ms, int is_forced)
{
    control_scene_t  *scene = data;

    snprintf(scene->drained, sizeof(scene->drained), "%s %llu%s", id,
             (unsigned long long) timeout_ms, is_forced ? " force" : "");
}


static void
scene_switch(void *data, command_peer_t *peer, const char *group,
    uint64_t timeout_ms)
{
    control_scene_t  *scene = data;

    snprintf(scene->switched, sizeof(scene->switched), "%s %llu", group,
             (unsigned long long) timeout_ms);
}


static void
scene_undrain(void *data, command_peer_t *peer, const char *id)
{
    control_scene_t  *scene = data;

    snprintf(scene->drained, sizeof(scene->drained), "%s no more", id);
}


static json_t *
scene_update(void *data, command_peer_t *peer, const command_update_t *update)
{
    control_scene_t  *scene = data;

    snprintf(scene->updated, sizeof(scene->updated),
             "%s %s,%zu %s %s %lld %lld %lld %lld%s", update->to,
             update->nids ? update->ids[update->nids - 1] : "-", update->nids,
             update->stop ? update->stop : "-",
             update->start ? update->start : "-",
             (long long) update->drain_timeout_ms,
             (long long) update->rejoin_timeout_ms,
             (long long) update->max_unavailable,
             (long long) update->min_available, update->is_dry ? " dry" : "");

    return json_pack("{s:b}", "ok", 1);
}


static json_t *
scene_abort(void *data, command_peer_t *peer)
{
    ((control_scene_t *) data)->naborts++;

    return json_pack("{s:b}", "ok", 1);
}


static json_t *
scene_show_update(void *data)
{
    return json_null();
}


static const command_error_t *
scene_report(void *data, command_peer_t *peer, const report_t *report)
{
    control_scene_t               *scene = data;
    static const command_error_t   busy = { "busy", "there is another" };

    if (scene->is_busy) {
        return &busy;
    }

    scene->report = *report;
    scene->nreports++;
    peer->is_reporter = 1;

    return NULL;
}


static const command_jobs_t  scene_jobs = {
    .on_drain = scene_drain,
    .on_undrain = scene_undrain,
    .on_switch = scene_switch,
    .on_update = scene_update,
    .on_abort = scene_abort,
    .on_show_update = scene_show_update
};


static void
scene_init(control_scene_t *scene)
{
    memset(scene, 0, sizeof(control_scene_t));

    strcpy(scene->own.id, "r1");
    strcpy(scene->own.address, "127.0.0.1:21001");
    strcpy(scene->own.grpc, "127.0.0.1:11001");
    scene->own.role = LLMGW_ROLE_REPLICA;
    scene->own.weight = 1;
    scene->own.epoch = 9;

    scene->env.id = "r1";
    scene->env.role = "replica";
    scene->env.cluster = "c";
    scene->env.started_us = 1000000;
    scene->env.now_us = scene_now_us;
    scene->env.wall_us = scene_wall_us;
    scene->env.show_roster = scene_show_roster;
    scene->env.show_traits = scene_show_traits;
    scene->env.show_status = scene_show_status;
    scene->env.show_models = scene_show_models;
    scene->env.on_report = scene_report;
    scene->env.jobs = &scene_jobs;
    scene->env.jobs_data = scene;
    scene->env.on_leave = scene_leave;
    scene->env.on_keys = scene_keys;
    scene->env.on_inject = scene_inject;
    scene->env.uid = 1000;
    scene->env.data = scene;
}

#endif /* CONTROL_SCENE_H */
