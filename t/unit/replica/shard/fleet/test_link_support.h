
/*
 * Sessions with a shard that write down their callbacks.
 */

#ifndef TEST_LINK_SUPPORT_H
#define TEST_LINK_SUPPORT_H

#include "t/unit/replica/shard/fleet/test_shard_stub.h"


#define SESSIONS_MAX  8

typedef struct session_s {
    struct rig_s    *rig;
    link_session_t  *link;
    char             name;
    int              nlost;
    shard_reason_t   reason;
    char             text[PEER_TEXT_BYTES];
    int              closes_on_started;
    int              closes_others;
    int              opens_again;
} session_t;

typedef struct rig_s {
    scene_t     scene;
    shard_t     shard;
    session_t   sessions[SESSIONS_MAX];
    size_t      nsessions;
    char        told[2048];     /* "a opened, a started 0, a result 0 2" */
    float       values[64];     /* of the last result */
    float      *large;          /* all values, where they are more */
} rig_t;


/* --- callbacks of sessions */

static inline void
tell(session_t *s, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static inline void
tell(session_t *s, const char *format, ...)
{
    char    *told;
    size_t   used;
    va_list  args;

    told = s->rig->told;
    used = strlen(told);
    used += (size_t) snprintf(told + used, sizeof(s->rig->told) - used, "%s%c ",
                              used ? ", " : "", s->name);
    va_start(args, format);
    vsnprintf(told + used, sizeof(s->rig->told) - used, format, args);
    va_end(args);
}


static inline session_t *rig_session(rig_t *rig, unsigned first, unsigned last);


static inline void
on_opened(void *data, uint32_t max_rows)
{
    session_t  *s = data;

    assert_int_equal(max_rows, SHARD_ROWS_MAX);
    tell(s, "opened");
}


static inline void
on_started(void *data, uint32_t position)
{
    session_t  *s = data;

    tell(s, "started %u", (unsigned) position);

    if (s->closes_on_started) {
        link_close(s->link);
        s->link = NULL;
    }
}


static inline void
on_result(void *data, uint32_t position, uint32_t rows, int is_logits,
    const float *values)
{
    size_t      n;
    session_t  *s = data;

    tell(s, "%s %u %u", is_logits ? "logits" : "result", (unsigned) position,
         (unsigned) rows);
    n = (size_t) rows * (is_logits ? SCENE_VOCABULARY : s->rig->shard.width);

    if (s->rig->large != NULL) {
        memcpy(s->rig->large, values, n * sizeof(float));

    } else if (n > 0) {
        assert_true(n <= 64);
        memcpy(s->rig->values, values, n * sizeof(float));
    }
}


static inline void
on_lost(void *data, shard_reason_t reason, const char *text)
{
    size_t      i;
    session_t  *s = data;

    assert_int_equal(s->nlost++, 0);
    s->reason = reason;
    strcpy(s->text, text);
    tell(s, "lost %s", shard_reason_name(reason));

    for (i = 0; s->closes_others && i < s->rig->nsessions; i++) {
        if (s->rig->sessions[i].link != NULL) {
            link_close(s->rig->sessions[i].link);
            s->rig->sessions[i].link = NULL;
        }
    }

    if (s->opens_again) {
        (void) rig_session(s->rig, 0, 3);
    }
}


static const link_callbacks_t  callbacks = {
    on_opened, on_started, on_result, on_lost
};


/* --- the rig */

static inline void
rig_open(rig_t *rig)
{
    size_t   i;
    char     text[ADDRESS_TEXT_BYTES];

    address_format(&rig->shard.address, text);
    scene_add(&rig->scene, "s1", 0, 3);
    scene_add(&rig->scene, "s2", 4, 7);

    for (i = 0; i < rig->scene.n; i++) {
        strcpy(rig->scene.members[i].grpc, text);
    }

    scene_open(&rig->scene);
    rig->shard.width = rig->scene.want.width;
    rig->shard.dtype = rig->scene.options.dtype;
}


static inline int
setup(void **state)
{
    rig_t  *rig;

    rig = calloc(1, sizeof(*rig));
    scene_init(&rig->scene);
    shard_listen(&rig->shard, rig->scene.loop);
    *state = rig;

    return 0;
}


static inline int
teardown(void **state)
{
    size_t  i;
    rig_t  *rig = *state;

    for (i = 0; i < rig->nsessions; i++) {
        if (rig->sessions[i].link != NULL) {
            link_close(rig->sessions[i].link);
        }
    }

    for (i = 0; i < rig->scene.fleet->nshards; i++) {
        assert_int_equal(rig->scene.fleet->shards[i]->sessions, 0);
    }

    if (rig->shard.server != NULL) {
        grpc_server_destroy(rig->shard.server);
    }

    if (rig->shard.request != NULL) {
        llmgateway__shard__request__free_unpacked(rig->shard.request, NULL);
    }

    scene_done(&rig->scene);
    free(rig->large);
    free(rig);

    return 0;
}


/* Opens a session with the shard of these layers: "a", then "b" ... */
static inline session_t *
rig_session(rig_t *rig, unsigned first, unsigned last)
{
    session_t      *s;
    fleet_path_t    path;
    fleet_query_t   query = { .from_layer = first, .to_layer = last };

    assert_int_equal(fleet_find(rig->scene.fleet, &query, &path), FLEET_FOUND);
    assert_int_equal(path.n, 1);
    assert_true(rig->nsessions < SESSIONS_MAX);
    s = &rig->sessions[rig->nsessions];
    s->rig = rig;
    s->name = (char) ('a' + rig->nsessions++);
    s->link = link_open(rig->scene.fleet, &path.hops[0], 7, &callbacks,
                        s);
    assert_non_null(s->link);

    return s;
}


static inline void
until_told(rig_t *rig, const char *expected)
{
    uint64_t  end;

    for (end = fleet_now_ms() + 20000;
         strlen(rig->told) < strlen(expected) && fleet_now_ms() < end;
         /* void */)
    {
        ev_run(rig->scene.loop, EVRUN_ONCE);
    }

    assert_string_equal(rig->told, expected);
}


/* Runs the loop until the shard has counted n, such as ended streams. */
static inline void
until_count(rig_t *rig, const int *count, int n)
{
    uint64_t  end;

    for (end = fleet_now_ms() + 20000; *count < n && fleet_now_ms() < end;
         /* void */)
    {
        ev_run(rig->scene.loop, EVRUN_ONCE);
    }

    assert_int_equal(*count, n);
}

#endif /* TEST_LINK_SUPPORT_H */
