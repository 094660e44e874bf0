
/*
 * All reasons for which a handshake is refused, and the messages.  The openssl
 * command is the peer that our own code cannot be: one without a certificate,
 * without HTTP/2, or of an old version.
 */

#include <sys/wait.h>

#include "t/unit/common/tls/tls_scene.h"


/* The certificate and CA of the server and of the client; each end's error. */
static void
a_wrong_certificate_is_refused_and_both_ends_say_why(void **state)
{
    size_t    i;
    scene_t  *s;

    static const struct {
        const char  *server, *server_ca, *client, *client_ca;
        const char  *reason, *refusal;
    } cases[] = {
        { "expired", "ca", "good", "ca", "certificate has expired: renew",
          "alert \"certificate expired\"" },
        { "good", "ca", "expired", "ca", "alert \"certificate expired\"",
          "certificate has expired: renew" },
        { "stranger", "ca", "good", "ca", "not signed by the CA",
          "alert \"unknown CA\"" },
        { "good", "ca", "stranger", "ca", "alert \"unknown CA\"",
          "not signed by the CA" },
        { "good", "ca", "good", "other", "not signed by the CA",
          "alert \"unknown CA\"" },
        { "elsewhere", "ca", "good", "ca", "does not name the address",
          "alert \"bad certificate\"" },
        { "good", "ca", "halved", "ca", "alert \"unsupported certificate\"",
          "serverAuth, clientAuth" },
    };

    s = *state;

    for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        teardown(state);
        setup(state);
        s = *state;
        use(s, tls_of(cases[i].server, cases[i].server_ca),
            tls_of(cases[i].client, cases[i].client_ca));
        serve(s);
        dial(s);
        call(s, 10);

        turn_until(s, &s->closed, 1);
        turn_until(s, &s->refused, 1);
        turn_until_empty(s);

        if (strstr(s->reason, cases[i].reason) == NULL
            || strstr(s->refusal, cases[i].refusal) == NULL)
        {
            fail_msg("case %zu: client \"%s\", server \"%s\"", i, s->reason,
                     s->refusal);
        }

        assert_int_equal(s->ends, 0);
        assert_int_equal(s->refused, 1);
    }
}


static void
one_end_without_tls_is_told(void **state)
{
    scene_t  *s;

    s = *state;
    use(s, tls_of("good", "ca"), NULL);
    serve(s);
    dial(s);
    call(s, 10);
    turn_until(s, &s->closed, 1);
    assert_non_null(strstr(s->reason, "it may expect TLS"));
    assert_non_null(strstr(s->refusal, "does not speak TLS"));
    turn_until_empty(s);

    teardown(state);
    setup(state);
    s = *state;
    use(s, NULL, tls_of("good", "ca"));
    serve(s);
    dial(s);
    call(s, 10);
    turn_until(s, &s->closed, 1);
    assert_non_null(strstr(s->reason, "does not speak TLS"));
    turn_until_empty(s);
    assert_int_equal(s->refused, 1);
    assert_non_null(strstr(s->refusal, "speaks TLS, and this end does not"));
}


/* Starts "openssl s_client" with these arguments, and returns its pid. */
static pid_t
start_s_client(scene_t *s, const char *arguments)
{
    char   command[512], peer[ADDRESS_TEXT_BYTES];
    pid_t  pid;

    address_format(&s->address, peer);
    snprintf(command, sizeof(command), "cd %s && exec openssl s_client "
             "-connect %s -CAfile ca.crt %s >s_client 2>&1 </dev/null", dir,
             peer, arguments);
    pid = fork();
    assert_true(pid != -1);

    if (pid == 0) {
        execl("/bin/sh", "sh", "-c", command, NULL);
        _exit(127);
    }

    return pid;
}


static void
other_clients_are_refused_for_what_they_lack(void **state)
{
    pid_t     pid;
    size_t    i;
    scene_t  *s;

    static const struct {
        const char  *arguments;
        const char  *refusal;
    } cases[] = {
        { "-alpn h2", "shows no certificate" },
        { "-alpn http/1.1 -cert good.crt -key good.key",
          "does not offer HTTP/2" },
        { "-cert good.crt -key good.key", "does not offer HTTP/2" },
        { "-alpn h2 -cert good.crt -key good.key -tls1_1 "
          "-cipher DEFAULT@SECLEVEL=0", "no TLS 1.2" },
    };

    s = *state;
    use(s, tls_of("good", "ca"), NULL);
    serve(s);

    for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        pid = start_s_client(s, cases[i].arguments);
        turn_until(s, &s->refused, (int) i + 1);

        if (strstr(s->refusal, cases[i].refusal) == NULL) {
            fail_msg("case %zu: \"%s\"", i, s->refusal);
        }

        turn_until_empty(s);
        assert_int_equal(waitpid(pid, NULL, 0), pid);
    }
}


/* An agent without a reporting replica only connects, and closes. */
static void
a_look_whether_the_port_is_open_is_no_refusal(void **state)
{
    int       fd;
    scene_t  *s;

    s = *state;
    use(s, tls_of("good", "ca"), tls_of("good", "ca"));
    serve(s);
    fd = socket(AF_INET, SOCK_STREAM, 0);
    assert_int_equal(connect(fd, (struct sockaddr *) &s->address.ss,
                             s->address.len), 0);
    close(fd);
    dial(s);
    call(s, 10);
    turn_until(s, &s->ends, 1);
    grpc_conn_destroy(s->conn);
    s->conn = NULL;
    turn_until_empty(s);
    assert_int_equal(s->refused, 0);
}


static void
a_handshake_has_its_time(void **state)
{
    int       fd;
    scene_t  *s;

    s = *state;
    s->server_options.handshake_timeout_ms = 50;
    use(s, tls_of("good", "ca"), tls_of("good", "ca"));
    serve(s);

    /* A client that sends half of a record's header, and then nothing. */

    fd = socket(AF_INET, SOCK_STREAM, 0);
    assert_int_equal(connect(fd, (struct sockaddr *) &s->address.ss,
                             s->address.len), 0);
    assert_int_equal(send(fd, "\x16\x03", 2, MSG_NOSIGNAL), 2);
    turn_until(s, &s->refused, 1);
    assert_non_null(strstr(s->refusal, "took too long"));
    turn_until_empty(s);
    close(fd);

    /* A server that accepts and is silent. */

    grpc_server_destroy(s->server);
    s->server = NULL;
    fd = listener_socket(&s->address);
    assert_true(fd != -1);
    assert_int_equal(listen(fd, 8), 0);
    s->connect_timeout_ms = 50;
    dial(s);
    call(s, 10);
    turn_until(s, &s->closed, 1);
    assert_non_null(strstr(s->reason, "took too long"));
    close(fd);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test_setup_teardown(
            a_wrong_certificate_is_refused_and_both_ends_say_why, setup,
            teardown),
        cmocka_unit_test_setup_teardown(
            one_end_without_tls_is_told, setup, teardown),
        cmocka_unit_test_setup_teardown(
            other_clients_are_refused_for_what_they_lack, setup, teardown),
        cmocka_unit_test_setup_teardown(
            a_look_whether_the_port_is_open_is_no_refusal, setup, teardown),
        cmocka_unit_test_setup_teardown(
            a_handshake_has_its_time, setup, teardown)
    };

    return cmocka_run_group_tests(tests, make_all, remove_all);
}
