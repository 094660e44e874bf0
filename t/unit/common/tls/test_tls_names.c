
/*
 * Which name a certificate must have: for a client the member's id, for a
 * server one that matches its patterns.
 */

#include "common/tls/peer.h"
#include "t/unit/common/tls/tls_scene.h"


static void
a_name_is_one_of_the_patterns_or_not(void **state)
{
    size_t  i;

    static const struct {
        const char  *names, *name;
        int          is_one;
    } cases[] = {
        { "r1", "r1", 1 }, { "r1", "r10", 0 }, { "r10", "r1", 0 },
        { "r1", "R1", 0 }, { "r1", "", 0 }, { "", "r1", 0 }, { "", "", 0 },

        { "*", "r1", 1 }, { "gw*", "gw", 1 }, { "gw*", "gw-7", 1 },
        { "gw*", "agw", 0 }, { "*.eu", "gw.eu", 1 }, { "*.eu", "gw.eu.", 0 },
        { "a*b*c", "abc", 1 }, { "a*b*c", "axxbyybc", 1 },
        { "a*b*c", "axxc", 0 }, { "**a", "ba", 1 }, { "a*a", "a", 0 },

        { "gw1,gw2", "gw2", 1 }, { "gw1,gw2", "gw1,gw2", 0 },
        { "gw1,r*,ops", "r7", 1 }, { "gw1,r*,ops", "op", 0 },

        /* A wildcard in a certificate matches no name. */
        { "*", "*", 0 }, { "*", "*.example", 0 }, { "r1", "*", 0 },
    };

    for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        if (tls_names_match(cases[i].names, cases[i].name,
                            strlen(cases[i].name)) != cases[i].is_one)
        {
            fail_msg("case %zu: \"%s\" of \"%s\"", i, cases[i].name,
                     cases[i].names);
        }
    }

    assert_int_equal(tls_names_match("r1", "r1\0", 3), 0);
    assert_int_equal(tls_names_match("*", "r1\0.evil", 8), 0);
}


/* The certificate that each end shows, the name that it expects, and its
   error; NULL: the connection is accepted. */
static void
the_name_decides_who_comes_in(void **state)
{
    size_t    i;
    scene_t  *s;

    static const struct {
        const char  *server, *client;
        const char  *server_wants, *client_wants;
        const char  *reason, *refusal;
    } cases[] = {
        { "r1", "gw", NULL, "r1", NULL, NULL },
        { "r1", "gw", "gw*", "r1", NULL, NULL },
        { "r1", "gw", "ops,gw", "r1", NULL, NULL },

        /* The server's certificate has the id of another member. */
        { "r1", "gw", NULL, "r2",
          "has to name \"r2\" as a subjectAltName, DNS:..., and names \"r1\", "
          "\"llm\"", "refuses the name in this end's certificate" },
        { "r1", "gw", NULL, "R1", "has to name \"R1\"", "bad certificate" },

        /* Neither an address nor a wildcard nor a CN counts as the name. */
        { "address", "gw", NULL, "address", "and names none",
          "bad certificate" },
        { "starred", "gw", NULL, "r1", "and names \"*\", \"*.example\"",
          "bad certificate" },

        { "r1", "r1", "gw*,ops", "r1",
          "refuses the name in this end's certificate",
          "has to name one of \"gw*,ops\" as a subjectAltName, DNS:..., and "
          "names \"r1\", \"llm\"" },
        { "r1", "starred", "*", "r1", "bad certificate", "names \"*\"" },
    };

    for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        teardown(state);
        setup(state);
        s = *state;
        use(s, tls_of(cases[i].server, "ca"), tls_of(cases[i].client, "ca"));
        s->server_options.names = cases[i].server_wants;
        s->client_options.names = cases[i].client_wants;
        serve(s);
        dial(s);
        call(s, 10);

        if (cases[i].reason == NULL) {
            turn_until(s, &s->ends, 1);
            assert_int_equal(s->refused + s->closed, 0);
            continue;
        }

        turn_until(s, &s->closed, 1);
        turn_until(s, &s->refused, 1);
        turn_until_empty(s);
        assert_int_equal(s->ends, 0);

        if (strstr(s->reason, cases[i].reason) == NULL
            || strstr(s->refusal, cases[i].refusal) == NULL)
        {
            fail_msg("case %zu: client \"%s\", server \"%s\"", i, s->reason,
                     s->refusal);
        }
    }
}


static void
options_go_together(void **state)
{
    char         error[TLS_ERROR_BYTES];
    unsigned     bits;
    tls_files_t  files = { .has_tickets = 0 };

    static const char *const  names[TLS_NFILES] = { "--c", "--k", "--a" };

    for (bits = 0; bits < 8; bits++) {
        files.cert = bits & 1 ? "c" : NULL;
        files.key = bits & 2 ? "k" : NULL;
        files.ca = bits & 4 ? "a" : NULL;

        assert_int_equal(tls_files_check(&files, names, 1, error),
                         bits == 0 || bits == 7 ? 0 : -1);

        /* A client may show no certificate. */

        assert_int_equal(tls_files_check(&files, names, 0, error),
                         bits == 0 || bits == 4 || bits == 7 ? 0 : -1);
    }

    assert_string_equal(error, "--c: is missing; --c, --k and --a go "
                               "together");
}


static int
make_named(void **state)
{
    int  rc;

    rc = make_all(state);
    make_cert("r1", "ca", "subjectAltName=DNS:r1,DNS:llm,IP:127.0.0.9", 2);
    make_cert("gw", "ca", "subjectAltName=DNS:gw", 2);
    make_cert("address", "ca", "subjectAltName=IP:127.0.0.1", 2);
    make_cert("starred", "ca", "subjectAltName=DNS:*,DNS:*.example", 2);

    return rc;
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(a_name_is_one_of_the_patterns_or_not),
        cmocka_unit_test_setup_teardown(
            the_name_decides_who_comes_in, setup, teardown),
        cmocka_unit_test(options_go_together)
    };

    return cmocka_run_group_tests(tests, make_named, remove_all);
}
