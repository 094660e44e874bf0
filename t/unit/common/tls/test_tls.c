
/* gRPC over mutual TLS, and the files that it reads. */

#include "t/unit/common/tls/tls_scene.h"


static void
calls_of_every_size_are_answered(void **state)
{
    int         i;
    scene_t    *s;

    static const size_t  sizes[] = {
        0, 1, 16383, 16384, 16385, 65536, LARGE_BYTES
    };

    s = *state;
    use(s, tls_of("good", "ca"), tls_of("good", "ca"));
    serve(s);
    dial(s);

    for (i = 0; i < (int) (sizeof(sizes) / sizeof(sizes[0])); i++) {
        call(s, sizes[i]);
        turn_until(s, &s->ends, i + 1);
        assert_int_equal(s->bytes, sizes[i]);
        assert_true(s->is_equal);
    }

    assert_int_equal(s->refused, 0);
    assert_int_equal(s->closed, 0);

    /* A connection over TLS also ends in order after a GOAWAY. */

    grpc_server_goaway(s->server);
    turn_until(s, &s->closed, 1);
    assert_string_equal(s->reason, "");
    turn_until_empty(s);
}


static void
twenty_large_calls_at_once_are_answered(void **state)
{
    int       i;
    scene_t  *s;

    s = *state;
    use(s, tls_of("good", "ca"), tls_of("second", "ca"));
    serve(s);
    dial(s);

    for (i = 0; i < 20; i++) {
        call(s, LARGE_BYTES / 4);
    }

    turn_until(s, &s->ends, 20);
    assert_int_equal(s->bytes, LARGE_BYTES / 4);
    assert_true(s->is_equal);
}


/* The names in a client's certificate are not checked. */
static void
a_client_may_come_from_any_address(void **state)
{
    scene_t  *s;

    s = *state;
    use(s, tls_of("good", "ca"), tls_of("elsewhere", "ca"));
    serve(s);
    dial(s);
    call(s, 10);
    turn_until(s, &s->ends, 1);
}


static void
renewed_files_serve_new_connections(void **state)
{
    scene_t  *s;

    s = *state;
    shell("cp expired.crt now.crt && cp expired.key now.key");
    use(s, tls_of("now", "ca"), tls_of("good", "ca"));
    serve(s);
    dial(s);
    turn_until(s, &s->closed, 1);
    assert_non_null(strstr(s->reason, "has expired"));
    turn_until(s, &s->refused, 1);

    shell("cp second.key new && mv new now.key; "
          "cp second.crt new && mv new now.crt");
    dial(s);
    call(s, 10);
    turn_until(s, &s->ends, 1);

    /* Files that cannot be used do not replace the files in use. */

    shell("cp text.crt new && mv new now.crt");
    grpc_conn_destroy(s->conn);
    dial(s);
    call(s, 10);
    turn_until(s, &s->ends, 2);
    assert_int_equal(s->refused, 1);
}


static void
files_that_cannot_be_used_are_named(void **state)
{
    char         error[TLS_ERROR_BYTES], says[160];
    size_t       i;
    tls_files_t  files = { .has_tickets = 0 };

    static const struct {
        const char  *cert, *key, *ca, *file, *says;
    } cases[] = {
        { "no.crt", "good.key", "ca.crt", "no.crt", "No such file" },
        { "good.crt", "no.key", "ca.crt", "no.key", "No such file" },
        { "good.crt", "good.key", "no.crt", "no.crt", "No such file" },
        { "text.crt", "good.key", "ca.crt", "text.crt",
          "there is no certificate in it" },
        { "good.crt", "text.crt", "ca.crt", "text.crt",
          "there is no private key in it" },
        { "good.crt", "good.key", "text.crt", "text.crt",
          "there is no certificate in it" },
        { "good.crt", "second.key", "ca.crt", "second.key",
          "this key is not the certificate's" },
        { "good.crt", "locked.key", "ca.crt", "locked.key",
          "there is no private key in it, in PEM and without a passphrase" },
    };

    char  paths[3][80];

    for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        snprintf(paths[0], 80, "%s/%s", dir, cases[i].cert);
        snprintf(paths[1], 80, "%s/%s", dir, cases[i].key);
        snprintf(paths[2], 80, "%s/%s", dir, cases[i].ca);
        files.cert = paths[0];
        files.key = paths[1];
        files.ca = paths[2];

        snprintf(says, sizeof(says), "\"%s/%s\": %s", dir, cases[i].file,
                 cases[i].says);
        assert_null(tls_open(&files, &logger, error));

        if (strncmp(error, says, strlen(says)) != 0) {
            fail_msg("case %zu: \"%s\"", i, error);
        }
    }
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test_setup_teardown(
            calls_of_every_size_are_answered, setup, teardown),
        cmocka_unit_test_setup_teardown(
            twenty_large_calls_at_once_are_answered, setup, teardown),
        cmocka_unit_test_setup_teardown(
            a_client_may_come_from_any_address, setup, teardown),
        cmocka_unit_test_setup_teardown(
            renewed_files_serve_new_connections, setup, teardown),
        cmocka_unit_test(files_that_cannot_be_used_are_named)
    };

    return cmocka_run_group_tests(tests, make_all, remove_all);
}
