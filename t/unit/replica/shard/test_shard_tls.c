
/*
 * Which command lines a shard and an orchestrator start with.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "replica/shard/shard_tls.h"


static void
a_shard_off_loopback_has_tls_or_a_key(void **state)
{
    char       error[SHARD_TLS_ERROR_BYTES];
    size_t     i;
    address_t  address;

    static const struct {
        const char  *listen;
        int          has_tls, has_key;
        int          rc;
    } cases[] = {
        { "127.0.0.1:8000", 0, 0, 0 }, { "127.8.0.1:8000", 0, 0, 0 },
        { "[::1]:8000", 0, 0, 0 },

        { "192.0.2.1:8000", 0, 0, -1 }, { "0.0.0.0:8000", 0, 0, -1 },
        { "[::]:8000", 0, 0, -1 }, { "[2001:db8::1]:8000", 0, 0, -1 },

        { "192.0.2.1:8000", 1, 0, 0 }, { "0.0.0.0:8000", 0, 1, 0 },
        { "[::]:8000", 1, 1, 0 },
    };

    static const tls_files_t  none, all = { "cert", "key", "ca", 0 };

    for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        error[0] = '\0';
        assert_int_equal(address_parse(cases[i].listen, &address), 0);

        if (shard_tls_check_address(cases[i].has_tls ? &all : &none,
                                    cases[i].has_key ? "file" : NULL,
                                    &address, error) != cases[i].rc)
        {
            fail_msg("case %zu: \"%s\"", i, error);
        }

        if (cases[i].rc == 0) {
            continue;
        }

        assert_non_null(strstr(error, cases[i].listen));
        assert_non_null(strstr(error, "--shard-tls-cert"));
        assert_non_null(strstr(error, "--shard-key FILE"));
        assert_null(strchr(error, '\n'));
    }
}


static void
tls_has_three_files_or_none(void **state)
{
    char         error[SHARD_TLS_ERROR_BYTES];
    unsigned     bits;
    tls_files_t  files;

    for (bits = 1; bits < 7; bits++) {
        files.cert = bits & 1 ? "a" : NULL;
        files.key = bits & 2 ? "b" : NULL;
        files.ca = bits & 4 ? "c" : NULL;
        assert_int_equal(shard_tls_check(&files, error), -1);
        assert_int_equal(strncmp(error, "--shard-tls-", 12), 0);
        assert_non_null(strstr(error, ": is missing; --shard-tls-cert, "
                                      "--shard-tls-key and --shard-tls-ca go "
                                      "together"));
    }
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(a_shard_off_loopback_has_tls_or_a_key),
        cmocka_unit_test(tls_has_three_files_or_none)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
