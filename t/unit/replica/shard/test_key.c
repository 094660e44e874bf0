
/*
 * Tokens of callers: which ones a shard accepts, and which it does not.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

#include "replica/shard/key.h"


#define NOW  1763650031u        /* the 12th second of its minute */

static const shard_claim_t  claim = { "o1", 7, "s1", "m" };

#define KEY_A  "00112233445566778899aabbccddeeff"                            \
               "00112233445566778899aabbccddeeff"
#define KEY_B  "GQzGBRMbq8WlBkmCwPvvlXI8fMXl3b2Yx7zS0m8hZ1E="


static void
write_file(char *path, const char *text, mode_t mode)
{
    int  fd;

    strcpy(path, "/tmp/llmgw-key-XXXXXX");
    fd = mkstemp(path);
    assert_true(fd != -1);
    assert_int_equal(write(fd, text, strlen(text)), strlen(text));
    assert_int_equal(fchmod(fd, mode), 0);
    close(fd);
}


static shard_key_t *
open_key(const char *text)
{
    char          path[64], error[SHARD_KEY_ERROR_BYTES];
    shard_key_t  *key;

    write_file(path, text, 0600);
    key = shard_key_open(path, error);
    unlink(path);
    assert_non_null(key);

    return key;
}


/* A token holds for no other shard, session, caller or model. */
static void
a_token_holds_for_its_own_claim_alone(void **state)
{
    size_t         i;
    uint8_t        token[SHARD_TOKEN_BYTES];
    shard_key_t   *key;

    static const shard_claim_t  others[] = {
        { "o2", 7, "s1", "m" }, { "o1", 8, "s1", "m" },
        { "o1", 7, "s2", "m" }, { "o1", 7, "s1", "n" },
        { "o1", 7, "s1m", "" }, { "o1", 7, "s", "1m" },
        { "", 7, "s1", "m" }, { "o1", 7ull << 32, "s1", "m" }
    };

    key = open_key(KEY_A "\n");
    shard_key_sign(key, &claim, NOW, token);
    assert_int_equal(shard_key_verify(key, &claim, NOW, token,
                                      sizeof(token)), 0);

    for (i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
        assert_int_equal(shard_key_verify(key, &others[i], NOW, token,
                                          sizeof(token)), -1);
    }

    shard_key_close(key);
}


static void
every_bit_of_a_token_counts(void **state)
{
    int           bit;
    uint8_t       token[SHARD_TOKEN_BYTES + 1];
    shard_key_t  *key;

    key = open_key(KEY_A);
    shard_key_sign(key, &claim, NOW, token);

    for (bit = 0; bit < 8 * SHARD_TOKEN_BYTES; bit++) {
        token[bit / 8] ^= 1u << bit % 8;
        assert_int_equal(shard_key_verify(key, &claim, NOW, token,
                                          SHARD_TOKEN_BYTES), -1);
        token[bit / 8] ^= 1u << bit % 8;
    }

    assert_int_equal(shard_key_verify(key, &claim, NOW, token,
                                      SHARD_TOKEN_BYTES), 0);
    assert_int_equal(shard_key_verify(key, &claim, NOW, token, 0), -1);
    assert_int_equal(shard_key_verify(key, &claim, NOW, token,
                                      SHARD_TOKEN_BYTES - 1), -1);
    assert_int_equal(shard_key_verify(key, &claim, NOW, token,
                                      SHARD_TOKEN_BYTES + 1), -1);
    shard_key_close(key);
}


static void
a_token_holds_in_its_minute_and_those_beside(void **state)
{
    size_t        i;
    uint8_t       token[SHARD_TOKEN_BYTES];
    uint64_t      begin;
    shard_key_t  *key;

    static const struct {
        int  seconds;           /* since the minute's first second */
        int  rc;
    } cases[] = {
        { -61, -1 }, { -60, 0 }, { -1, 0 }, { 0, 0 }, { 59, 0 }, { 60, 0 },
        { 119, 0 }, { 120, -1 }, { 3600, -1 }, { -3600, -1 }
    };

    key = open_key(KEY_A);
    begin = NOW - NOW % 60;
    shard_key_sign(key, &claim, NOW, token);

    for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        assert_int_equal(shard_key_verify(key, &claim,
                                          begin + cases[i].seconds, token,
                                          sizeof(token)), cases[i].rc);
    }

    /* A clock that was never set. */

    shard_key_sign(key, &claim, 59, token);
    assert_int_equal(shard_key_verify(key, &claim, 0, token, sizeof(token)),
                     0);
    shard_key_close(key);
}


/*
 * From old to old + new, new + old, new: at each step both sides understand
 * each other.
 */
static void
keys_rotate_step_by_step(void **state)
{
    size_t        i, j;
    uint8_t       token[SHARD_TOKEN_BYTES];
    shard_key_t  *keys[4];

    static const char  *files[] = {
        KEY_A "\n", KEY_A "\n" KEY_B "\n",
        KEY_A "\n* " KEY_B "\n", KEY_B "\n"
    };

    for (i = 0; i < 4; i++) {
        keys[i] = open_key(files[i]);
    }

    for (i = 0; i < 4; i++) {
        shard_key_sign(keys[i], &claim, NOW, token);

        for (j = 0; j < 4; j++) {
            if (i + 1 >= j && j + 1 >= i) {
                assert_int_equal(shard_key_verify(keys[j], &claim, NOW, token,
                                                  sizeof(token)), 0);
            }
        }
    }

    shard_key_sign(keys[0], &claim, NOW, token);
    assert_int_equal(shard_key_verify(keys[3], &claim, NOW, token,
                                      sizeof(token)), -1);

    for (i = 0; i < 4; i++) {
        shard_key_close(keys[i]);
    }
}


static void
a_file_that_is_no_key_is_refused_in_one_line(void **state)
{
    char    path[64], error[SHARD_KEY_ERROR_BYTES];
    size_t  i;

    static const struct {
        const char  *text;
        mode_t       mode;
        const char  *says;
    } cases[] = {
        { KEY_A, 0640, "its mode is 0640" },
        { KEY_A, 0604, "chmod 600" },
        { "", 0600, "no key in it" },
        { "secret\n", 0600, "line 1: no key: 64 hexadecimal digits" },
        { KEY_A "0\n", 0600, "line 1" },
        { KEY_A "\n" KEY_A "\n", 0600, "line 2: this key is there already" }
    };

    for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        write_file(path, cases[i].text, cases[i].mode);
        assert_null(shard_key_open(path, error));
        assert_non_null(strstr(error, cases[i].says));
        assert_non_null(strstr(error, path));
        assert_null(strchr(error, '\n'));
        unlink(path);
    }

    assert_null(shard_key_open("/nowhere/key", error));
    assert_non_null(strstr(error, "No such file"));
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(a_token_holds_for_its_own_claim_alone),
        cmocka_unit_test(every_bit_of_a_token_counts),
        cmocka_unit_test(a_token_holds_in_its_minute_and_those_beside),
        cmocka_unit_test(keys_rotate_step_by_step),
        cmocka_unit_test(a_file_that_is_no_key_is_refused_in_one_line)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
