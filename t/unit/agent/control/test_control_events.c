
/* Events: which changes are reported, in which order; slow readers. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "control/control.h"
#include "common/line_conn.h"
#include "t/unit/agent/control/control_scene.h"


#define NOW_US  1763650000123456ULL


static llmgw_member_t
replica(void)
{
    llmgw_member_t  m;

    memset(&m, 0, sizeof(m));
    strcpy(m.id, "r1");
    strcpy(m.address, "10.0.0.1:7946");
    strcpy(m.grpc, "10.0.0.1:5051");
    strcpy(m.model_version, "v1");
    m.epoch = 5;
    m.weight = 1;
    m.max_capacity = 4;
    m.service = LLMGW_SERVICE_READY;

    return m;
}


/* Checks that the events are these, as JSON, in order. */
static void
assert_events(const llmgw_member_t *before, const llmgw_member_t *after,
    const char *expected)
{
    json_t           *got, *wanted;
    control_scene_t   scene;

    scene_init(&scene);
    got = command_events(&scene.env, before, after, NOW_US);
    wanted = json_loads(expected, 0, NULL);
    assert_non_null(wanted);

    if (!json_equal(got, wanted)) {
        fail_msg("got %s", json_dumps(got, JSON_COMPACT));
    }

    json_decref(wanted);
    json_decref(got);
}


#define EVENT(name, rest)                                                     \
    "{\"event\":\"" name "\",\"time\":1763650000123,\"id\":\"r1\"" rest "}"


static void
members_come_and_are_forgotten(void **state)
{
    json_t           *events, *member;
    llmgw_member_t    m;
    control_scene_t   scene;

    m = replica();
    scene_init(&scene);
    events = command_events(&scene.env, NULL, &m, NOW_US);
    assert_int_equal(json_array_size(events), 1);
    member = json_object_get(json_array_get(events, 0), "member");
    assert_string_equal(json_string_value(json_object_get(member, "state")),
                        "ALIVE");
    assert_string_equal(
        json_string_value(json_object_get(json_array_get(events, 0),
                                          "event")), "joined");
    json_decref(events);

    assert_events(&m, NULL, "[" EVENT("forgotten", "") "]");
}


static void
each_change_is_one_event(void **state)
{
    llmgw_member_t  a, b;

    a = b = replica();
    b.incarnation++;
    b.replica_start_ms++;
    assert_events(&a, &b, "[]");

    b.liveness = LLMGW_LIVENESS_SUSPECT;
    assert_events(&a, &b, "[" EVENT("state",
                  ",\"from\":\"ALIVE\",\"to\":\"SUSPECT\"") "]");

    b.liveness = LLMGW_LIVENESS_DEAD;
    assert_events(&a, &b, "[" EVENT("state",
                  ",\"from\":\"ALIVE\",\"to\":\"DEAD\","
                  "\"cause\":\"timeout\"") "]");

    b = a;
    strcpy(b.model_version, "v2");
    assert_events(&a, &b, "[" EVENT("version",
                  ",\"from\":\"v1\",\"to\":\"v2\"") "]");

    b = a;
    strcpy(b.group, "g");
    b.group_state = LLMGW_GROUP_ACTIVE;
    b.group_epoch = 7;
    assert_events(&a, &b, "[" EVENT("group",
                  ",\"from\":\"none\",\"to\":\"active\",\"group\":\"g\","
                  "\"epoch\":7") "]");

    b = a;
    b.models = 1;
    assert_events(&a, &b, "[" EVENT("models",
                  ",\"from\":[],\"to\":[\"a\"]") "]");
    a.models = 2;
    assert_events(&a, &b, "[" EVENT("models",
                  ",\"from\":[\"a\",\"b c\"],\"to\":[\"a\"]") "]");
    a.models = 0;

    b = a;
    b.draining = 1;
    strcpy(b.drain_owner, "operator");
    assert_events(&a, &b, "[" EVENT("draining",
                  ",\"to\":true,\"owner\":\"operator\"") "]");
}


static llmgw_member_t
shard(void)
{
    llmgw_member_t  m;

    m = replica();
    m.role = LLMGW_ROLE_GATEWAY;
    m.is_shard = 1;
    m.models = 3;
    m.shard.first = 4;
    m.shard.last = 7;
    m.shard.layers = 8;

    return m;
}


#define ADVERTISED(name)                                                      \
    EVENT("shard_advertised", ",\"shard\":\"" name "\"")
#define RETIRED(name)                                                         \
    EVENT("shard_retired", ",\"shard\":\"" name "\"")

static void
shard_is_advertised_and_retired(void **state)
{
    json_t           *events;
    llmgw_member_t    a, b;
    control_scene_t   scene;

    a = shard();
    scene_init(&scene);
    events = command_events(&scene.env, NULL, &a, NOW_US);
    assert_int_equal(json_array_size(events), 2);
    assert_string_equal(json_string_value(json_object_get(
                            json_array_get(events, 1), "shard")),
                        "toy:4-7@r1");
    json_decref(events);

    /* A change of the shard's other facts is no new advertisement. */
    b = a;
    b.shard.is_loaded = 1;
    b.service = LLMGW_SERVICE_STALLED;
    assert_events(&a, &b, "[" EVENT("service",
                  ",\"from\":\"READY\",\"to\":\"STALLED\"") "]");
    a = b;
    memset(&b.shard, 0, sizeof(b.shard));
    b.models = 0;
    assert_events(&a, &b, "[" RETIRED("toy:4-7@r1") "]");

    a = b = shard();
    b.service = LLMGW_SERVICE_DOWN;
    assert_events(&a, &b, "[" EVENT("state",
                  ",\"from\":\"ALIVE\",\"to\":\"DEAD\","
                  "\"cause\":\"down\"") ","
                  EVENT("service",
                  ",\"from\":\"READY\",\"to\":\"DOWN\"") ","
                  RETIRED("toy:4-7@r1") "]");

    /* Other layers, or another list, are advertised in place of the old; if
       the list is not there, the model is "?". */
    b = a;
    b.shard.last = 6;
    assert_events(&a, &b, "[" RETIRED("toy:4-7@r1") ","
                          ADVERTISED("toy:4-6@r1") "]");
    b = a;
    b.models = 9;
    assert_events(&a, &b, "[" RETIRED("toy:4-7@r1") ","
                          ADVERTISED("?:4-7@r1") "]");

    b = a;
    b.liveness = LLMGW_LIVENESS_DEAD;
    assert_events(&b, NULL, "[" EVENT("forgotten", "") "]");
}


static void
several_changes_come_in_order(void **state)
{
    llmgw_member_t  a, b;

    a = b = replica();
    b.epoch = 6;
    strcpy(b.address, "10.0.0.2:7946");
    strcpy(b.grpc, "10.0.0.2:5051");
    b.service = LLMGW_SERVICE_DOWN;
    b.draining = 1;
    strcpy(b.model_version, "");
    b.max_capacity = 8;
    b.weight = 2;

    assert_events(&a, &b, "["
        EVENT("restarted", ",\"from\":5,\"to\":6") ","
        EVENT("address",
              ",\"from\":\"10.0.0.1:7946\",\"to\":\"10.0.0.2:7946\"") ","
        EVENT("grpc",
              ",\"from\":\"10.0.0.1:5051\",\"to\":\"10.0.0.2:5051\"") ","
        EVENT("state", ",\"from\":\"ALIVE\",\"to\":\"DEAD\","
                       "\"cause\":\"down\"") ","
        EVENT("service", ",\"from\":\"READY\",\"to\":\"DOWN\"") ","
        EVENT("draining", ",\"to\":true,\"owner\":\"\"") ","
        EVENT("version", ",\"from\":\"v1\",\"to\":\"\"") ","
        EVENT("capacity", ",\"from\":4,\"to\":8") ","
        EVENT("weight", ",\"from\":1,\"to\":2") "]");
}


/* --- over a socket */

typedef struct {
    char              dir[32];
    char              path[64];
    char              error[UNIX_LISTENER_ERROR_BYTES];
    struct ev_loop   *loop;
    control_scene_t   scene;
    control_t        *control;
} socket_scene_t;


static void
on_lost(void *data, command_peer_t *peer)
{
    fail();
}


static void
init(socket_scene_t *s)
{
    memset(s, 0, sizeof(socket_scene_t));
    strcpy(s->dir, "/tmp/llmgw-test-XXXXXX");
    assert_non_null(mkdtemp(s->dir));
    snprintf(s->path, sizeof(s->path), "%s/a.sock", s->dir);
    s->loop = ev_loop_new(0);
    scene_init(&s->scene);
    s->control = control_create(s->loop, s->path, &s->scene.env, on_lost,
                                s->error);
    assert_non_null(s->control);
}


static void
done(socket_scene_t *s)
{
    ev_loop_destroy(s->loop);
    assert_int_equal(rmdir(s->dir), 0);
}


static void
turn(socket_scene_t *s)
{
    int  i;

    for (i = 0; i < 100; i++) {
        ev_run(s->loop, EVRUN_NOWAIT);
    }
}


/* Opens a stream and reads its first line, the members. */
static FILE *
listener(socket_scene_t *s)
{
    int    fd;
    char   line[4096];
    FILE  *stream;

    fd = line_conn_connect(s->path);
    assert_true(fd != -1);
    dprintf(fd, "{\"cmd\":\"events\"}\n");
    turn(s);

    stream = fdopen(fd, "r");
    assert_non_null(fgets(line, sizeof(line), stream));
    assert_non_null(strstr(line, "\"event\":\"members\""));
    assert_non_null(strstr(line, "\"id\":\"r1\""));

    return stream;
}


static void
listeners_alone_are_told_and_hear_the_end(void **state)
{
    int             fd;
    char            line[4096];
    FILE           *first, *second;
    llmgw_member_t  a, b;
    socket_scene_t  s;

    init(&s);
    a = b = replica();
    b.weight = 7;
    control_tell(s.control, &a, &b);        /* there is no listener yet */

    first = listener(&s);
    second = listener(&s);
    fd = line_conn_connect(s.path);
    turn(&s);
    control_tell(s.control, &a, &b);

    assert_non_null(fgets(line, sizeof(line), first));
    assert_non_null(strstr(line, "\"event\":\"weight\""));
    fclose(first);
    turn(&s);
    control_tell(s.control, &b, &a);
    control_destroy(s.control);

    assert_non_null(fgets(line, sizeof(line), second));
    assert_non_null(strstr(line, "\"to\":7"));
    assert_non_null(fgets(line, sizeof(line), second));
    assert_non_null(strstr(line, "\"to\":1"));
    assert_non_null(fgets(line, sizeof(line), second));
    assert_string_equal(line, "{\"ok\":true}\n");
    assert_null(fgets(line, sizeof(line), second));
    fclose(second);

    assert_int_equal(read(fd, line, sizeof(line)), 0);
    close(fd);
    done(&s);
}


/* The listener's queue fills: the listener gets the number of the lost events,
   and all other events. */
static void
slow_reader_loses_events_and_knows_how_many(void **state)
{
    char            line[4096];
    FILE           *stream;
    unsigned        i, had, lost;
    llmgw_member_t  a, b;
    socket_scene_t  s;

    init(&s);
    stream = listener(&s);
    a = b = replica();

    for (i = 0; i < 20000; i++) {
        b.weight = a.weight + 1;
        control_tell(s.control, &a, &b);
        a = b;
    }

    /* Once the queued events are read, there is space for one more. */
    for (had = 0; ; had++) {
        turn(&s);

        if (fgets(line, sizeof(line), stream) == NULL) {
            break;
        }
    }

    clearerr(stream);
    assert_in_range(had, CONTROL_EVENTS_BYTES / 100, 19999);

    b.weight = 1;
    control_tell(s.control, &a, &b);
    turn(&s);

    assert_non_null(fgets(line, sizeof(line), stream));
    assert_int_equal(sscanf(line, "{\"event\":\"lost\",\"count\":%u}", &lost),
                     1);
    assert_int_equal(had + lost, 20000);
    assert_non_null(fgets(line, sizeof(line), stream));
    assert_non_null(strstr(line, "\"to\":1}"));

    fclose(stream);
    control_destroy(s.control);
    done(&s);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(members_come_and_are_forgotten),
        cmocka_unit_test(each_change_is_one_event),
        cmocka_unit_test(shard_is_advertised_and_retired),
        cmocka_unit_test(several_changes_come_in_order),
        cmocka_unit_test(listeners_alone_are_told_and_hear_the_end),
        cmocka_unit_test(slow_reader_loses_events_and_knows_how_many),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
