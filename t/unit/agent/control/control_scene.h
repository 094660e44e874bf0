
/* What a line on the control socket needs around it, without a socket. */

#ifndef CONTROL_SCENE_H
#define CONTROL_SCENE_H

#include <stdio.h>
#include <string.h>

#include "control/command.h"


typedef struct {
    command_env_t    env;
    command_peer_t   peer;
    swim_t          *swim;
    publish_t       *publish;
    report_t         report;        /* the last that was taken */
    int              nreports;
    int              is_busy;       /* refuse the next */
    int              nleaves;
    int              nkeys;
    char             injected[64];
    char             drained[96];   /* id, time and "force" of the last */
    char             updated[256];  /* what the last update is */
    int              naborts;
} control_scene_t;


static void
scene_send(void *data, const address_t *to, const uint8_t *bytes, size_t len)
{
}


static void
scene_change(void *data, const member_t *member, unsigned what)
{
}


static void
scene_conflict(void *data, const char *address)
{
}


static void
scene_journal(void *data, const llmgw_member_t *before,
    const llmgw_member_t *after)
{
}


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


static void
scene_keys(void *data)
{
    ((control_scene_t *) data)->nkeys++;
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


static const swim_callbacks_t  scene_callbacks = {
    .on_send = scene_send,
    .on_change = scene_change,
    .on_conflict = scene_conflict
};


static void
scene_init(control_scene_t *scene)
{
    char           error[LLMGW_MEMBERS_ERROR_BYTES];
    swim_config_t  config;

    memset(scene, 0, sizeof(control_scene_t));
    memset(&config, 0, sizeof(config));
    config.cluster = "c";
    config.id = "r1";
    config.address = "127.0.0.1:21001";
    config.grpc = "127.0.0.1:11001";
    config.weight = 1;
    config.epoch = 9;
    config.period_us = 500000;
    config.ping_timeout_us = 200000;
    config.suspect_timeout_us = 2000000;
    config.indirect_probes = 3;
    config.callbacks = &scene_callbacks;

    scene->swim = swim_create(&config, 1000000);
    scene->publish = publish_create(NULL, scene_journal, NULL, error);
    publish_mark(scene->publish);
    publish_flush(scene->publish, swim_table(scene->swim), error);

    scene->env.id = "r1";
    scene->env.role = "replica";
    scene->env.cluster = "c";
    scene->env.swim = scene->swim;
    scene->env.publish = scene->publish;
    scene->env.started_us = 1000000;
    scene->env.now_us = scene_now_us;
    scene->env.wall_us = scene_wall_us;
    scene->env.on_report = scene_report;
    scene->env.on_drain = scene_drain;
    scene->env.on_undrain = scene_undrain;
    scene->env.on_update = scene_update;
    scene->env.on_abort = scene_abort;
    scene->env.on_show_update = scene_show_update;
    scene->env.on_leave = scene_leave;
    scene->env.on_keys = scene_keys;
    scene->env.on_inject = scene_inject;
    scene->env.uid = 1000;
    scene->env.data = scene;
}


static void
scene_done(control_scene_t *scene)
{
    publish_destroy(scene->publish);
    swim_destroy(scene->swim);
}

#endif /* CONTROL_SCENE_H */
