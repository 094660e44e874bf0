
/* A request for one token, to a replica with various answers. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "rollout/trial.h"
#include "common/grpc/conn.h"
#include "llmgateway.pb-c.h"
#include "t/unit/common/loopback.h"


#define PORT  21500

typedef enum {
    ANSWER_WELL = 0,
    ANSWER_UNFINISHED,
    ANSWER_GARBAGE,
    ANSWER_UNAVAILABLE,
    ANSWER_RESET,
    ANSWER_NEVER
} answer_t;

typedef struct {
    struct ev_loop  *loop;
    grpc_server_t   *server;
    char             address[ADDRESS_TEXT_BYTES];
    answer_t         answer;
    int              asked;
    int              calls;
    int              works;
    char             error[TRIAL_ERROR_BYTES];
} scene_t;


static void
server_answer(llmgw_grpc_stream_t *stream, int is_final)
{
    uint8_t                      *out;
    Llmgateway__GenerateResponse  response
        = LLMGATEWAY__GENERATE_RESPONSE__INIT;

    response.is_final = is_final;
    out = llmgw_grpc_send_reserve(stream,
              llmgateway__generate_response__get_packed_size(&response));
    assert_non_null(out);
    llmgateway__generate_response__pack(&response, out);
    llmgw_grpc_finish(stream, LLMGW_GRPC_OK, NULL, NULL, 0);
}


static void
server_on_message(llmgw_grpc_stream_t *stream, const uint8_t *data,
    size_t len, size_t wire_bytes)
{
    scene_t                      *scene;
    Llmgateway__GenerateRequest  *request;

    scene = grpc_conn_data(llmgw_grpc_session_data(
                               llmgw_grpc_stream_session(stream)));
    llmgw_grpc_stream_consume(stream, wire_bytes);

    request = llmgateway__generate_request__unpack(NULL, len, data);
    assert_non_null(request);
    assert_int_equal(request->max_tokens, 1);
    assert_string_equal(request->request_id, "update-1");
    llmgateway__generate_request__free_unpacked(request, NULL);
    scene->asked++;

    switch (scene->answer) {
    case ANSWER_WELL:
    case ANSWER_UNFINISHED:
        server_answer(stream, scene->answer == ANSWER_WELL);
        break;
    case ANSWER_GARBAGE:
        llmgw_grpc_send_message(stream, (const uint8_t *) "\xff\xff", 2);
        break;
    case ANSWER_UNAVAILABLE:
        llmgw_grpc_finish(stream, LLMGW_GRPC_UNAVAILABLE, "not today", NULL,
                          0);
        break;
    case ANSWER_RESET:
        llmgw_grpc_stream_reset(stream, 2);
        grpc_conn_wake(llmgw_grpc_session_data(
                           llmgw_grpc_stream_session(stream)));
        break;
    case ANSWER_NEVER:
        break;
    }
}


static const llmgw_grpc_callbacks_t  server_callbacks = {
    .on_message = server_on_message
};


static void
scene_open(scene_t *scene)
{
    char                 error[256];
    address_t            address;
    llmgw_grpc_config_t  config;

    memset(scene, 0, sizeof(scene_t));
    scene->loop = ev_default_loop(0);

    memset(&config, 0, sizeof(config));
    config.callbacks = &server_callbacks;
    config.data = scene;

    snprintf(scene->address, sizeof(scene->address), "%s", loopback(PORT));
    assert_int_equal(address_parse(scene->address, &address), 0);
    scene->server = grpc_server_create(scene->loop, &address, &config, 8,
                                       error);
    assert_non_null(scene->server);
}


static void
scene_on_done(void *data, const char *error)
{
    scene_t  *scene = data;

    scene->calls++;
    scene->works = error == NULL;
    snprintf(scene->error, sizeof(scene->error), "%s", error ? error : "");
    ev_break(scene->loop, EVBREAK_ALL);
}


static void
scene_try(scene_t *scene, const char *address, uint64_t timeout_ms)
{
    char  error[TRIAL_ERROR_BYTES];

    scene->calls = 0;
    assert_non_null(trial_start(scene->loop, address, NULL, "update-1",
                                timeout_ms, scene_on_done, scene, error));
    ev_run(scene->loop, 0);
    assert_int_equal(scene->calls, 1);
}


static void
one_final_token_is_enough(void **state)
{
    scene_t  scene;

    scene_open(&scene);
    scene_try(&scene, scene.address, 10000);
    assert_true(scene.works);
    assert_int_equal(scene.asked, 1);
    grpc_server_destroy(scene.server);
}


static void
what_it_answers_is_told(void **state)
{
    static const struct {
        answer_t     answer;
        const char  *error;
    } cases[] = {
        { ANSWER_UNAVAILABLE, "UNAVAILABLE: not today" },
        { ANSWER_UNFINISHED, "it ended without a final token" },
        { ANSWER_GARBAGE, "its message cannot be read" },
        { ANSWER_RESET, "the stream was reset" }
    };

    size_t   i;
    scene_t  scene;

    scene_open(&scene);

    for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        scene.answer = cases[i].answer;
        scene_try(&scene, scene.address, 10000);
        assert_false(scene.works);
        assert_string_equal(scene.error, cases[i].error);
    }

    grpc_server_destroy(scene.server);
}


static void
silence_has_a_limit(void **state)
{
    scene_t  scene;

    scene_open(&scene);
    scene.answer = ANSWER_NEVER;
    scene_try(&scene, scene.address, 200);
    assert_string_equal(scene.error, "no answer after 0.2 s");
    grpc_server_destroy(scene.server);
}


static void
nobody_there_is_told_at_once(void **state)
{
    scene_t  scene;

    scene_open(&scene);
    grpc_server_destroy(scene.server);
    scene_try(&scene, scene.address, 10000);
    assert_non_null(strstr(scene.error, "refused"));
}


static void
one_that_is_not_wanted_any_more_says_nothing(void **state)
{
    char      error[TRIAL_ERROR_BYTES];
    scene_t   scene;
    trial_t  *trial;

    scene_open(&scene);
    trial = trial_start(scene.loop, scene.address, NULL, "update-1", 10000,
                        scene_on_done, &scene, error);
    assert_non_null(trial);
    ev_run(scene.loop, EVRUN_ONCE);
    trial_destroy(trial);
    ev_run(scene.loop, EVRUN_NOWAIT);
    assert_int_equal(scene.calls, 0);

    assert_null(trial_start(scene.loop, "name.example:1", NULL, "update-1",
                            10000, scene_on_done, &scene, error));
    assert_non_null(strstr(error, "numeric"));
    grpc_server_destroy(scene.server);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(one_final_token_is_enough),
        cmocka_unit_test(what_it_answers_is_told),
        cmocka_unit_test(silence_has_a_limit),
        cmocka_unit_test(nobody_there_is_told_at_once),
        cmocka_unit_test(one_that_is_not_wanted_any_more_says_nothing)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
