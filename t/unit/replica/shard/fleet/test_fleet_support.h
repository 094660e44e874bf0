
/*
 * What the tests of the fleet share: a members segment of shards, written by
 * the agents' own writer, and a fleet that reads it.
 */

#ifndef TEST_FLEET_SUPPORT_H
#define TEST_FLEET_SUPPORT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "replica/shard/fleet/fleet_inner.h"


#define SCENE_MEMBERS     8
#define SCENE_LAYERS      8
#define SCENE_WIDTH       6
#define SCENE_VOCABULARY  10

typedef struct {
    struct ev_loop          *loop;
    char                     dir[64];
    char                     path[80];
    llmgw_members_writer_t  *writer;
    llmgw_member_t           members[SCENE_MEMBERS];
    llmgw_shard_model_t      models[SCENE_MEMBERS];
    llmgw_member_load_t      loads[SCENE_MEMBERS];
    size_t                   n;
    log_t                    log;
    fleet_options_t          options;
    fleet_want_t             want;
    fleet_t                 *fleet;
    int                      nchanges;
    fleet_path_t             found;
} scene_t;


static inline void
scene_init(scene_t *s)
{
    char  error[LLMGW_MEMBERS_ERROR_BYTES];

    memset(s, 0, sizeof(*s));
    strcpy(s->dir, "/dev/shm/llmgw-test-XXXXXX");
    assert_non_null(mkdtemp(s->dir));
    snprintf(s->path, sizeof(s->path), "%s/members", s->dir);
    assert_int_equal(llmgw_members_writer_create(&s->writer, s->path, 64,
                                                 error), LLMGW_MEMBERS_DONE);
    s->loop = ev_loop_new(0);
    s->log.program = "test";
    s->log.level = LOG_ERROR;
    s->options.members = s->path;
    s->options.id = "o1";
    s->options.zone = "";
    s->want.model = "m";
    memset(s->want.weights_id, 0xab, SHARD_WEIGHTS_BYTES);
    s->want.numerics = "n1";
    s->want.layers = SCENE_LAYERS;
    s->want.width = SCENE_WIDTH;
    s->want.vocabulary = SCENE_VOCABULARY;
}


static inline void
scene_done(scene_t *s)
{
    char  path[128];

    fleet_close(s->fleet);
    llmgw_members_writer_destroy(s->writer);
    (void) unlink(s->path);
    snprintf(path, sizeof(path), "%s.lock", s->path);
    (void) unlink(path);
    assert_int_equal(rmdir(s->dir), 0);
    ev_loop_destroy(s->loop);
}


/* Adds a shard that matches, is ALIVE and READY, and has room. */
static inline llmgw_member_t *
scene_add(scene_t *s, const char *id, unsigned first, unsigned last)
{
    llmgw_member_t       *m;
    llmgw_shard_model_t  *model;

    assert_true(s->n < SCENE_MEMBERS);
    model = &s->models[s->n];
    strcpy(model->name, s->want.model);
    strcpy(model->numerics, s->want.numerics);
    memcpy(model->weights_id, s->want.weights_id, SHARD_WEIGHTS_BYTES);

    s->loads[s->n].reported_ms = fleet_now_ms();
    m = &s->members[s->n++];
    strcpy(m->id, id);
    strcpy(m->address, "127.0.0.1:61000");
    strcpy(m->grpc, "127.0.0.1:1");
    m->role = LLMGW_ROLE_GATEWAY;
    m->is_shard = 1;
    m->service = LLMGW_SERVICE_READY;
    m->epoch = 1;
    m->weight = 1;
    m->replica_start_ms = 1000;
    m->max_capacity = 64;
    m->shard.first = (uint16_t) first;
    m->shard.last = (uint16_t) last;
    m->shard.layers = SCENE_LAYERS;
    m->shard.is_loaded = 1;

    return m;
}


static inline void
scene_publish(scene_t *s)
{
    char                        names[LLMGW_MEMBERS_LIST_BYTES];
    char                        error[LLMGW_MEMBERS_ERROR_BYTES];
    size_t                      i, bytes;
    const llmgw_member_t       *members[SCENE_MEMBERS];
    const llmgw_member_load_t  *loads[SCENE_MEMBERS];

    for (i = 0; i < s->n; i++) {
        bytes = llmgw_shard_model_write(&s->models[i], names);
        assert_int_equal(llmgw_members_hold_list(s->writer, names, bytes,
                                                 &s->members[i].models),
                         LLMGW_MEMBERS_DONE);
        members[i] = &s->members[i];
        loads[i] = &s->loads[i];
    }

    assert_int_equal(llmgw_members_publish(s->writer, members, loads, s->n, 0),
                     LLMGW_MEMBERS_DONE);
    assert_int_equal(llmgw_members_heartbeat(s->writer, fleet_now_ms(),
                                             error), LLMGW_MEMBERS_DONE);
}


static inline void
scene_on_changed(void *data, int is_ready)
{
    scene_t  *s = data;

    assert_int_equal(is_ready, fleet_is_ready(s->fleet));
    s->nchanges++;
}


static inline void
scene_open(scene_t *s)
{
    scene_publish(s);
    s->fleet = fleet_open(s->loop, &s->log, &s->options, &s->want,
                          scene_on_changed, s);
    assert_non_null(s->fleet);
}


/*
 * Finds a path over all layers that excludes this shard's process (0: none).
 */
static inline fleet_rc_t
scene_find(scene_t *s, uint64_t excluded)
{
    fleet_query_t  query = { .to_layer = SCENE_LAYERS - 1,
                             .excluded = &excluded,
                             .nexcluded = excluded != 0 };

    return fleet_find(s->fleet, &query, &s->found);
}


static inline uint64_t
key_of(scene_t *s, const char *id)
{
    size_t  i;

    for (i = 0; i < s->fleet->nshards; i++) {
        if (strcmp(s->fleet->shards[i]->id, id) == 0) {
            return s->fleet->shards[i]->key;
        }
    }

    fail_msg("no shard %s", id);

    return 0;
}

#endif /* TEST_FLEET_SUPPORT_H */
