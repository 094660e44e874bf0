
/* Questions to a server in the same loop, over real sockets. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "common/grpc/asker.h"
#include "t/unit/common/loopback.h"


#define PORT            21500
#define LIMIT_MS        1000
#define HTTP2_INTERNAL  2

typedef enum {
    SERVER_ANSWERS = 0,
    SERVER_RESETS,
    SERVER_IS_SILENT
} server_t;

typedef struct {
    struct ev_loop  *loop;
    grpc_server_t   *server;            /* NULL: freed */
    address_t        address;
    server_t         what;
    asker_t         *asker;             /* NULL: freed */
    int              frees;             /* frees it at the first end */
    int              nasked;
    int              nended;
    asker_end_t      end;
    int              status;
} scene_t;


static void
server_end(llmgw_grpc_stream_t *stream, int status, const char *message)
{
    scene_t      *scene;
    grpc_conn_t  *conn;

    conn = llmgw_grpc_session_data(llmgw_grpc_stream_session(stream));
    scene = grpc_conn_data(conn);
    scene->nasked++;

    switch (scene->what) {
    case SERVER_ANSWERS:
        llmgw_grpc_finish(stream, LLMGW_GRPC_NOT_FOUND, NULL, NULL, 0);
        break;
    case SERVER_RESETS:
        llmgw_grpc_stream_reset(stream, HTTP2_INTERNAL);
        grpc_conn_wake(conn);
        break;
    case SERVER_IS_SILENT:
        break;
    }
}


static const llmgw_grpc_callbacks_t  server_callbacks = {
    .on_end = server_end
};


static void
asker_is_gone(scene_t *scene)
{
    asker_drop(scene->asker);
    memset(scene->asker, 0xa5, sizeof(asker_t));
    free(scene->asker);
    scene->asker = NULL;
}


static void
ended(void *data, asker_end_t end, int status, const char *text)
{
    scene_t  *scene = data;

    assert_non_null(text);
    scene->nended++;
    scene->end = end;
    scene->status = status;

    if (scene->frees) {
        asker_is_gone(scene);
    }

    ev_break(scene->loop, EVBREAK_ALL);
}


static const asker_use_t  use = { .on_end = ended };


static void
asker_is_made(scene_t *scene)
{
    scene->asker = malloc(sizeof(asker_t));
    asker_init(scene->asker, scene->loop, &scene->address, &use, scene);
}


static int
setup(void **state)
{
    char                 error[256];
    scene_t             *scene;
    llmgw_grpc_config_t  config;

    scene = calloc(1, sizeof(scene_t));
    scene->loop = ev_loop_new(0);
    memset(&config, 0, sizeof(config));
    config.callbacks = &server_callbacks;
    config.data = scene;

    assert_int_equal(address_parse(loopback(PORT), &scene->address), 0);
    scene->server = grpc_server_create(scene->loop, &scene->address, &config,
                                       8, error);
    assert_non_null(scene->server);
    asker_is_made(scene);
    *state = scene;

    return 0;
}


static int
teardown(void **state)
{
    scene_t  *scene = *state;

    if (scene->asker != NULL) {
        asker_is_gone(scene);
    }

    if (scene->server != NULL) {
        grpc_server_destroy(scene->server);
    }

    ev_loop_destroy(scene->loop);
    free(scene);

    return 0;
}


/* Asks, and runs the loop until the question ends. */
static void
ask(scene_t *scene, server_t what, uint64_t limit_ms)
{
    int               before;
    asker_question_t  question = {
        .path = "/test/Question", .authority = "test", .limit_ms = limit_ms
    };

    before = scene->nended;
    scene->what = what;
    assert_int_equal(asker_connect(scene->asker, NULL, 5000), 0);
    assert_int_equal(asker_ask(scene->asker, &question), 0);
    assert_true(asker_is_asked(scene->asker));
    ev_run(scene->loop, 0);
    assert_int_equal(scene->nended, before + 1);
    assert_true(scene->asker == NULL || !asker_is_asked(scene->asker));
}


static void
connection_is_kept_for_the_next_question(void **state)
{
    grpc_conn_t  *conn;
    scene_t      *scene = *state;

    ask(scene, SERVER_ANSWERS, 0);
    assert_int_equal(scene->end, ASKER_ANSWERED);
    assert_int_equal(scene->status, LLMGW_GRPC_NOT_FOUND);
    conn = scene->asker->conn;
    ask(scene, SERVER_RESETS, 0);
    assert_int_equal(scene->end, ASKER_RESET);
    assert_ptr_equal(scene->asker->conn, conn);
    ask(scene, SERVER_ANSWERS, 5000);
    assert_int_equal(scene->end, ASKER_ANSWERED);
    assert_ptr_equal(scene->asker->conn, conn);
    assert_int_equal(grpc_server_conns(scene->server), 1);
}


static void
silence_ends_the_connection(void **state)
{
    scene_t  *scene = *state;

    ask(scene, SERVER_IS_SILENT, 50);
    assert_int_equal(scene->end, ASKER_SILENT);
    assert_null(scene->asker->conn);
    ask(scene, SERVER_ANSWERS, 5000);
    assert_int_equal(scene->end, ASKER_ANSWERED);
}


/* The loop stands still beyond the limit: an answer that came meanwhile
   counts. */
static void
answer_that_waits_in_the_socket_is_one(void **state)
{
    scene_t           *scene = *state;
    asker_question_t   question = { .path = "/test/Question",
                                    .authority = "test", .limit_ms = LIMIT_MS };

    ask(scene, SERVER_ANSWERS, 0);
    assert_int_equal(asker_ask(scene->asker, &question), 0);

    while (scene->nasked < 2) {
        ev_run(scene->loop, EVRUN_ONCE);
    }

    usleep((LIMIT_MS + 100) * 1000);
    ev_run(scene->loop, 0);
    assert_int_equal(scene->nended, 2);
    assert_int_equal(scene->end, ASKER_ANSWERED);
}


static void
break_is_told_asked_or_not(void **state)
{
    scene_t  *scene = *state;

    ask(scene, SERVER_ANSWERS, 0);
    grpc_server_destroy(scene->server);
    scene->server = NULL;
    ev_run(scene->loop, 0);
    assert_int_equal(scene->nended, 2);
    assert_int_equal(scene->end, ASKER_BROKEN);
    assert_null(scene->asker->conn);
    ask(scene, SERVER_ANSWERS, 5000);
    assert_int_equal(scene->end, ASKER_BROKEN);
}


static void
dropped_question_has_no_end(void **state)
{
    scene_t           *scene = *state;
    asker_question_t   question = { .path = "/test/Question",
                                    .authority = "test", .limit_ms = 20 };

    assert_int_equal(asker_connect(scene->asker, NULL, 5000), 0);
    assert_int_equal(asker_ask(scene->asker, &question), 0);
    asker_drop(scene->asker);
    asker_drop(scene->asker);
    ask(scene, SERVER_IS_SILENT, 60);
    assert_int_equal(scene->nended, 1);
}


/* The asker may be freed when a question ends; what comes later
   calls nothing. */
static void
asker_may_go_within_any_end(void **state)
{
    server_t  what;
    scene_t  *scene = *state;

    scene->frees = 1;

    for (what = SERVER_ANSWERS; what <= SERVER_IS_SILENT; what++) {
        ask(scene, what, 100);
        ev_run(scene->loop, EVRUN_NOWAIT);
        asker_is_made(scene);
    }

    grpc_server_destroy(scene->server);
    scene->server = NULL;
    ask(scene, SERVER_ANSWERS, 5000);
    assert_int_equal(scene->end, ASKER_BROKEN);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test_setup_teardown(
            connection_is_kept_for_the_next_question, setup, teardown),
        cmocka_unit_test_setup_teardown(silence_ends_the_connection, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(answer_that_waits_in_the_socket_is_one,
                                        setup, teardown),
        cmocka_unit_test_setup_teardown(break_is_told_asked_or_not, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(dropped_question_has_no_end, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(asker_may_go_within_any_end, setup,
                                        teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
