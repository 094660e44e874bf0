
/*
 * What a callback of libcurl may do to transfers; they are transfers of files.
 */

#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include "common/http/curl_loop.h"


typedef struct scene_s  scene_t;

typedef struct {
    curl_deferred_t   deferred;
    scene_t          *scene;
    CURL             *easy;
    int               nsteps;
    int               nends;
} transfer_t;

struct scene_s {
    struct ev_loop  *loop;
    curl_loop_t      curl;
    transfer_t       transfers[2];
    void           (*on_bytes)(scene_t *scene);
};


static void
on_end(void *data, CURL *easy, CURLcode rc)
{
    transfer_t  *t;

    assert_int_equal(curl_easy_getinfo(easy, CURLINFO_PRIVATE, &t), CURLE_OK);
    assert_int_equal(rc, CURLE_OK);
    t->nends++;
}


static size_t
on_bytes(char *bytes, size_t one, size_t len, void *data)
{
    transfer_t  *t = data;

    if (t->scene->on_bytes != NULL) {
        t->scene->on_bytes(t->scene);
    }

    return len;
}


static void
add(curl_deferred_t *step)
{
    transfer_t  *t = (transfer_t *) step;

    t->nsteps++;
    assert_int_equal(curl_loop_add(&t->scene->curl, t->easy), 0);
}


static void
remove_it(curl_deferred_t *step)
{
    transfer_t  *t = (transfer_t *) step;

    t->nsteps++;
    curl_loop_remove(&t->scene->curl, t->easy);
}


static int
setup(void **state)
{
    size_t           i;
    CURL            *easy;
    static scene_t   scene;

    scene = (scene_t) { .loop = ev_default_loop(0) };
    *state = &scene;

    if (curl_loop_init(&scene.curl, scene.loop, on_end, &scene) != 0) {
        return -1;
    }

    for (i = 0; i < 2; i++) {
        easy = curl_easy_init();
        scene.transfers[i] = (transfer_t) {
            .deferred.run = add, .scene = &scene, .easy = easy
        };
        curl_easy_setopt(easy, CURLOPT_URL, "file:///proc/self/comm");
        curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, on_bytes);
        curl_easy_setopt(easy, CURLOPT_WRITEDATA, &scene.transfers[i]);
        curl_easy_setopt(easy, CURLOPT_PRIVATE, &scene.transfers[i]);
    }

    return 0;
}


static int
teardown(void **state)
{
    size_t    i;
    scene_t  *s = *state;

    for (i = 0; i < 2; i++) {
        curl_loop_remove(&s->curl, s->transfers[i].easy);
        curl_easy_cleanup(s->transfers[i].easy);
    }

    curl_loop_done(&s->curl);

    return 0;
}


static void
defer_the_other(scene_t *s)
{
    s->on_bytes = NULL;
    assert_true(curl_loop_is_busy(&s->curl));
    curl_loop_defer(&s->curl, &s->transfers[1].deferred);
    curl_loop_defer(&s->curl, &s->transfers[1].deferred);
    assert_int_equal(s->transfers[1].nsteps, 0);
}


static void
outside_a_step_runs_at_once(void **state)
{
    scene_t  *s = *state;

    assert_false(curl_loop_is_busy(&s->curl));
    curl_loop_defer(&s->curl, &s->transfers[0].deferred);
    assert_int_equal(s->transfers[0].nsteps, 1);
    (void) ev_run(s->loop, 0);
    assert_int_equal(s->transfers[0].nends, 1);
}


static void
within_a_callback_a_start_is_deferred(void **state)
{
    scene_t  *s = *state;

    s->on_bytes = defer_the_other;
    assert_int_equal(curl_loop_add(&s->curl, s->transfers[0].easy), 0);
    (void) ev_run(s->loop, 0);

    assert_int_equal(s->transfers[0].nends, 1);
    assert_int_equal(s->transfers[1].nsteps, 1);
    assert_int_equal(s->transfers[1].nends, 1);
}


/* Both transfers have bytes to pass on during one call into libcurl. */
static void
one_that_is_removed_by_a_callback_has_no_end(void **state)
{
    scene_t  *s = *state;

    s->on_bytes = defer_the_other;
    s->transfers[1].deferred.run = remove_it;
    assert_int_equal(curl_loop_add(&s->curl, s->transfers[0].easy), 0);
    assert_int_equal(curl_loop_add(&s->curl, s->transfers[1].easy), 0);
    (void) ev_run(s->loop, 0);

    assert_int_equal(s->transfers[0].nends, 1);
    assert_int_equal(s->transfers[1].nsteps, 1);
    assert_int_equal(s->transfers[1].nends, 0);
}


int
main(void)
{
    static const struct CMUnitTest  tests[] = {
        cmocka_unit_test_setup_teardown(outside_a_step_runs_at_once, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(within_a_callback_a_start_is_deferred,
                                        setup, teardown),
        cmocka_unit_test_setup_teardown(
            one_that_is_removed_by_a_callback_has_no_end, setup, teardown)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
