
/* The ring of keys: its file, the file's permissions, and changes. */

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

#include "t/unit/agent/net/keyring_now.h"


/* 32 bytes of 0xaa, and of 0x00, 0x01, ... 0x1f. */
#define A16       "aaaaaaaaaaaaaaaa"
#define HEX_A     A16 A16 A16 A16
#define BASE64_A  "qqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqo="
#define HEX_B     "000102030405060708090a0b0c0d0e0f"                         \
                  "101112131415161718191a1b1c1d1e1f"
#define BASE64_B  "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="

typedef struct {
    char        dir[32];
    char        path[64];
    char        error[KEYRING_ERROR_BYTES];
    keyring_t  *ring;
} scene_t;


static void
put(scene_t *s, const char *text)
{
    FILE  *file;

    file = fopen(s->path, "w");
    fputs(text, file);
    fclose(file);
    assert_int_equal(chmod(s->path, 0600), 0);
}


static void
init(scene_t *s, const char *text)
{
    memset(s, 0, sizeof(scene_t));
    strcpy(s->dir, "/tmp/llmgw-test-XXXXXX");
    assert_non_null(mkdtemp(s->dir));
    snprintf(s->path, sizeof(s->path), "%s/keys", s->dir);
    put(s, text);
    s->ring = keyring_create(s->path, s->error);
}


static void
done(scene_t *s)
{
    if (s->ring != NULL) {
        keyring_destroy(s->ring);
    }

    unlink(s->path);
    assert_int_equal(rmdir(s->dir), 0);     /* no other file was left */
}


static void
assert_id(const scene_t *s, size_t i, const char *expected)
{
    char  text[KEYRING_ID_TEXT_BYTES];

    keyring_id_text(s->ring, i, text);
    assert_string_equal(text, expected);
}


static void
hex_and_base64_are_the_same_key(void **state)
{
    char     id[KEYRING_ID_TEXT_BYTES], key[KEYRING_KEY_BYTES];
    scene_t  s;

    init(&s, "# ours\n\n  " HEX_A "  \n");
    assert_non_null(s.ring);
    assert_int_equal(keyring_count(s.ring), 1);
    assert_int_equal(keyring_primary(s.ring), 0);
    memset(key, 0xaa, sizeof(key));
    assert_memory_equal(keyring_key(s.ring, 0), key, sizeof(key));
    keyring_id_text(s.ring, 0, id);

    put(&s, BASE64_B "\n*" BASE64_A);
    assert_int_equal(keyring_reload(s.ring, s.error), 0);
    assert_int_equal(keyring_count(s.ring), 2);
    assert_int_equal(keyring_primary(s.ring), 1);
    assert_id(&s, 1, id);
    assert_memory_equal(keyring_find(s.ring, keyring_id(s.ring, 1)), key,
                        sizeof(key));
    assert_null(keyring_find(s.ring, (const uint8_t *) "\1\2\3\4"));
    done(&s);
}


static void
file_that_others_may_use_is_refused(void **state)
{
    size_t    i;
    scene_t   s;
    unsigned  modes[] = { 0640, 0604, 0620, 0602, 0644, 0610, 0666 };

    init(&s, HEX_A "\n");
    assert_non_null(s.ring);

    for (i = 0; i < sizeof(modes) / sizeof(modes[0]); i++) {
        assert_int_equal(chmod(s.path, modes[i]), 0);
        assert_null(keyring_create(s.path, s.error));
        assert_non_null(strstr(s.error, "chmod 600"));
        assert_int_equal(keyring_reload(s.ring, s.error), -1);
    }

    assert_int_equal(chmod(s.path, 0400), 0);
    assert_int_equal(keyring_reload(s.ring, s.error), 0);

    assert_null(keyring_create(s.dir, s.error));
    unlink(s.path);
    assert_null(keyring_create(s.path, s.error));
    assert_non_null(strstr(s.error, "No such file"));
    done(&s);
}


static void
wrong_files_are_refused_with_their_line_and_change_nothing(void **state)
{
    size_t       i;
    scene_t      s;
    const char  *wrong[][2] = {
        { "", "no key" },
        { "# none\n\n", "no key" },
        { HEX_A "\n" HEX_B "00\n", "line 2: no key" },
        { "abc\n", "line 1: no key" },
        { "*\n", "line 1: no key" },
        { "qqqq\n", "line 1: no key" },
        { BASE64_A " " BASE64_A "\n", "line 1: no key" },
        { "\n" HEX_A "\n" BASE64_A "\n", "line 3: this key is there" },
        { "*" HEX_A "\n*" HEX_B "\n", "line 2: a second primary" },
    };

    init(&s, HEX_A "\n");

    for (i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        put(&s, wrong[i][0]);
        assert_int_equal(keyring_reload(s.ring, s.error), -1);
        assert_non_null(strstr(s.error, wrong[i][1]));
        assert_null(strstr(s.error, "qqqq"));
        assert_int_equal(keyring_count(s.ring), 1);
    }

    done(&s);
}


static void
add_text(scene_t *s, unsigned i, keyring_rc_t expected)
{
    char  text[65];

    snprintf(text, sizeof(text), "%064x", i);
    assert_int_equal(keyring_add(s->ring, text, s->error), expected);
}


static void
eight_keys_are_the_most(void **state)
{
    unsigned  i;
    scene_t   s;

    init(&s, HEX_A "\n");

    for (i = 1; i < KEYRING_MAX_KEYS; i++) {
        add_text(&s, i, KEYRING_DONE);
    }

    add_text(&s, KEYRING_MAX_KEYS, KEYRING_EFULL);
    add_text(&s, 1, KEYRING_DONE);
    assert_int_equal(keyring_count(s.ring), KEYRING_MAX_KEYS);
    assert_int_equal(keyring_reload(s.ring, s.error), 0);
    assert_int_equal(keyring_count(s.ring), KEYRING_MAX_KEYS);
    done(&s);
}


static void
changes_are_in_the_file(void **state)
{
    char         a[KEYRING_ID_TEXT_BYTES], b[KEYRING_ID_TEXT_BYTES];
    scene_t      s;
    struct stat  st;

    init(&s, HEX_A "\n");
    keyring_id_text(s.ring, 0, a);

    assert_int_equal(keyring_add(s.ring, "x", s.error), KEYRING_EKEY);
    assert_int_equal(keyring_add(s.ring, BASE64_B, s.error), KEYRING_DONE);
    keyring_id_text(s.ring, 1, b);
    assert_string_not_equal(a, b);
    assert_int_equal(keyring_primary(s.ring), 0);

    assert_int_equal(keyring_remove(s.ring, a, s.error), KEYRING_EPRIMARY);
    assert_int_equal(keyring_use(s.ring, "00000000", s.error),
                     KEYRING_EUNKNOWN);
    assert_int_equal(keyring_use(s.ring, "", s.error), KEYRING_EUNKNOWN);
    assert_int_equal(keyring_use(s.ring, b, s.error), KEYRING_DONE);
    assert_int_equal(keyring_primary(s.ring), 1);

    assert_int_equal(stat(s.path, &st), 0);
    assert_int_equal(st.st_mode & 07777, 0600);

    /* The file gives the same ring; when a key is removed, the primary's index
       moves. */
    assert_int_equal(keyring_reload(s.ring, s.error), 0);
    assert_int_equal(keyring_primary(s.ring), 1);
    assert_id(&s, 0, a);
    assert_id(&s, 1, b);
    assert_int_equal(keyring_remove(s.ring, a, s.error), KEYRING_DONE);
    assert_int_equal(keyring_remove(s.ring, a, s.error), KEYRING_EUNKNOWN);
    assert_int_equal(keyring_count(s.ring), 1);
    assert_int_equal(keyring_primary(s.ring), 0);
    assert_int_equal(keyring_reload(s.ring, s.error), 0);
    assert_id(&s, 0, b);
    done(&s);
}


static void
what_cannot_be_written_is_not_done(void **state)
{
    char     moved[40];
    scene_t  s;

    init(&s, HEX_A "\n");
    snprintf(moved, sizeof(moved), "%s.", s.dir);
    assert_int_equal(rename(s.dir, moved), 0);
    assert_int_equal(keyring_add(s.ring, BASE64_B, s.error), KEYRING_EFILE);
    assert_non_null(strstr(s.error, "No such file"));
    assert_int_equal(keyring_count(s.ring), 1);
    assert_int_equal(rename(moved, s.dir), 0);
    done(&s);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(hex_and_base64_are_the_same_key),
        cmocka_unit_test(file_that_others_may_use_is_refused),
        cmocka_unit_test(
            wrong_files_are_refused_with_their_line_and_change_nothing),
        cmocka_unit_test(eight_keys_are_the_most),
        cmocka_unit_test(changes_are_in_the_file),
        cmocka_unit_test(what_cannot_be_written_is_not_done),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
