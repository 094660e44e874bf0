
/* Reading key files, and finding the account of a key: proto/keys/keys.h. */

#include "common/rnd.h"
#include "t/unit/core/cut.h"
#include "t/unit/proto/keys/keys_scene.h"


static llmgw_key_state_t
find(const llmgw_keys_t *keys, const char *key, uint64_t unix_ms,
    const llmgw_key_t **found)
{
    return llmgw_keys_find(keys, key, strlen(key), unix_ms, found);
}


static void
hash_is_that_of_sha256sum(void **state)
{
    char  hex[2 * LLMGW_KEY_HASH_BYTES + 1];

    llmgw_key_hash("test", 4, hex);
    assert_string_equal(hex, "9f86d081884c7d659a2feaa0c55ad015"
                             "a3bf4f1b2b0b822cd15d6c15b0f00a08");
}


static void
lines_of_a_name_are_one_account(void **state)
{
    char                        text[2048];
    llmgw_keys_t               *keys;
    const llmgw_key_t          *key;
    llmgw_keys_error_t          error;
    const llmgw_key_account_t  *account;

    snprintf(text, sizeof(text), "# keys\r\n\n%s%s%s\t# end",
             key_line("alice", KEY_A, "models=qwen*,embed rpm=600 "
                      "budget=5000000/day # comment"),
             key_line("alice", KEY_B, "until=2026-11-28 tpm=200000 rpm=600"),
             key_line("ops", KEY_C, "admin class=interactive tenant=lab1 "
                      "streams=20\r"));
    keys = keys_of(text, &error);
    assert_non_null(keys);
    assert_int_equal(keys->naccounts, 2);
    assert_int_equal(keys->nkeys, 4);

    assert_int_equal(find(keys, KEY_A, NOON, &key), LLMGW_KEY_VALID);
    assert_int_equal(key->line, 3);
    assert_false(key->is_admin);
    account = &keys->accounts[key->account];
    assert_true(text_is(account->name, "alice"));
    assert_true(text_is(account->models, "qwen*,embed"));
    assert_null(account->tenant.text);
    assert_int_equal(account->limits.rpm, 600);
    assert_int_equal(account->limits.tpm, 200000);
    assert_int_equal(account->limits.streams, 0);
    assert_int_equal(account->limits.budget, 5000000);
    assert_int_equal(account->limits.period, LLMGW_PERIOD_DAY);
    assert_int_equal(account->nkeys, 2);

    assert_int_equal(find(keys, KEY_B, NOON, &key), LLMGW_KEY_VALID);
    assert_ptr_equal(&keys->accounts[key->account], account);

    assert_int_equal(find(keys, KEY_C, NOON, &key), LLMGW_KEY_VALID);
    assert_true(key->is_admin);
    account = &keys->accounts[key->account];
    assert_true(text_is(account->slo_class, "interactive"));
    assert_true(text_is(account->tenant, "lab1"));
    assert_int_equal(account->limits.streams, 20);

    assert_ptr_equal(llmgw_keys_account(keys, "ops", 3), account);
    assert_null(llmgw_keys_account(keys, "op", 2));
    llmgw_keys_destroy(keys);
}


static void
day_of_expiry_is_valid_to_its_end(void **state)
{
    int                  i;
    llmgw_keys_t        *keys;
    const llmgw_key_t   *key;
    llmgw_keys_error_t   error;

    keys = keys_of(key_line("a", KEY_A, "expires=2026-11-28"), &error);
    assert_non_null(keys);
    assert_int_equal(find(keys, KEY_A, NOON + 12 * 3600000 - 1, &key),
                     LLMGW_KEY_VALID);
    assert_int_equal(find(keys, KEY_A, NOON + 12 * 3600000, &key),
                     LLMGW_KEY_EXPIRED);
    assert_true(text_is(keys->accounts[key->account].name, "a"));
    llmgw_keys_destroy(keys);

    for (i = 0; i < 2; i++) {
        keys = keys_of(key_line("a", KEY_A, i ? "expires=2027-01-01 "
                                                "until=2026-11-28T12:00Z"
                                              : "until=2026-11-28T12:00Z "
                                                "expires=2027-01-01"), &error);
        assert_non_null(keys);
        assert_int_equal(find(keys, KEY_A, NOON - 1, &key), LLMGW_KEY_VALID);
        assert_int_equal(find(keys, KEY_A, NOON, &key), LLMGW_KEY_EXPIRED);
        llmgw_keys_destroy(keys);
    }
}


static void
identity_has_its_line_or_the_default(void **state)
{
    char                        text[512];
    llmgw_keys_t               *keys;
    llmgw_keys_error_t          error;
    const llmgw_key_account_t  *account;

    keys = keys_of("bob - rpm=60 expires=2026-11-28T12:00Z\n* - streams=2\n",
                   &error);
    assert_non_null(keys);
    account = llmgw_keys_identity(keys, "bob", 3, NOON - 1);
    assert_int_equal(account->limits.rpm, 60);
    assert_null(llmgw_keys_identity(keys, "bob", 3, NOON));
    account = llmgw_keys_identity(keys, "carol", 5, NOON);
    assert_int_equal(account->limits.streams, 2);
    llmgw_keys_destroy(keys);

    keys = keys_of(key_line("bob", KEY_A, "rpm=60"), &error);
    assert_non_null(keys);
    assert_null(llmgw_keys_identity(keys, "bob", 3, NOON));
    llmgw_keys_destroy(keys);

    snprintf(text, sizeof(text), "%s* - streams=3",
             key_line("bob", KEY_A, "rpm=60"));
    keys = keys_of(text, &error);
    assert_non_null(keys);
    account = llmgw_keys_identity(keys, "bob", 3, NOON);
    assert_int_equal(account->limits.streams, 3);
    llmgw_keys_destroy(keys);
}


static void
key_that_is_no_key_is_unknown(void **state)
{
    char                 longest[LLMGW_KEY_MAX + 1];
    llmgw_keys_t        *keys;
    const llmgw_key_t   *key;
    llmgw_keys_error_t   error;

    memset(longest, 'x', sizeof(longest));
    longest[LLMGW_KEY_MAX] = '\0';
    keys = keys_of(key_line("a", longest, ""), &error);
    assert_non_null(keys);

    assert_int_equal(find(keys, "", NOON, &key), LLMGW_KEY_UNKNOWN);
    assert_ptr_equal(key, &keys->keys[0]);
    assert_int_equal(find(keys, KEY_A, NOON, &key), LLMGW_KEY_UNKNOWN);
    assert_int_equal(find(keys, longest, NOON, &key), LLMGW_KEY_VALID);
    longest[LLMGW_KEY_MAX] = 'x';
    assert_int_equal(llmgw_keys_find(keys, longest, sizeof(longest), NOON,
                                     &key), LLMGW_KEY_UNKNOWN);
    llmgw_keys_destroy(keys);
}


static void
model_is_one_of_the_list(void **state)
{
    llmgw_key_text_t     list = { "qwen*,embed,a*b", 15 };
    llmgw_key_account_t  any = { .nkeys = 0 };

    assert_true(llmgw_key_list_has(list, "qwen", 4));
    assert_true(llmgw_key_list_has(list, "qwen3:lora", 10));
    assert_true(llmgw_key_list_has(list, "embed", 5));
    assert_false(llmgw_key_list_has(list, "embed2", 6));
    assert_false(llmgw_key_list_has(list, "embe", 4));
    assert_false(llmgw_key_list_has(list, "qwen", 3));
    assert_false(llmgw_key_list_has(list, "", 0));
    assert_true(llmgw_key_list_has((llmgw_key_text_t) { "*", 1 }, "x", 1));
    assert_true(llmgw_key_allows(&any, "x", 1));
}


typedef struct {
    const char  *text;
    uint32_t     line;
    const char  *says;
} wrong_t;


static void
wrong_line_is_named_with_what_would_be_right(void **state)
{
    size_t               i;
    llmgw_keys_t        *keys;
    llmgw_keys_error_t   error;
    static const wrong_t  wrong[] = {
        { "", 0, "no key in it" },
        { "# nothing\n\n", 0, "no key in it" },
        { "a\n", 1, "missing after the name" },
        { "a -\nb - rpm=0\n", 2, "rpm=N, an integer from 1" },
        { "b - rpm=1000000000001\n", 1, "rpm=N, an integer from 1" },
        { "b - rpm=1k\n", 1, "\"rpm=1k\"" },
        { "b - rpm=\n", 1, "\"rpm=\"" },
        { "b - rpm=1 rpm=1\n", 1, "rpm= is given twice" },
        { "b - streams=1000001\n", 1, "streams=N" },
        { "b - budget=5\n", 1, "budget=N/day or" },
        { "b - budget=5/week\n", 1, "budget=N/day or" },
        { "b - budget=/day\n", 1, "budget=N/day or" },
        { "b - models=\n", 1, "models=NAME" },
        { "b - models=a,,b\n", 1, "models=NAME" },
        { "b - models=a,\n", 1, "models=NAME" },
        { "b - models=a*b\n", 1, "models=NAME" },
        { "b - until=2026-02-30\n", 1, "a date like" },
        { "b - color=red\n", 1, "are known" },
        { "b - Admin\n", 1, "are known" },
        { "b - admin\n", 1, "only a key can" },
        { "b - class=\n", 1, "class=NAME" },
        { "b - x\x01y\n", 1, "printable" },
        { "b\xc3\xa9 -\n", 1, "printable" },
        { "b - rpm=5\nb - rpm=5\n", 2, "second line of \"b\"" },
        { "b sk-llmgw-secret\n", 1, "is not the SHA-256" },
        { "* 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"
          "\n", 1, "stands for identities" },
        { "b 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a0g"
          "\n", 1, "is not the SHA-256" },
        { "a 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"
          "\nb 9F86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00A08"
          "\n", 2, "in line 1 already" },
        { "a 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"
          " rpm=5\na - rpm=6\n", 2, "rpm= of \"a\" differs from line 1" },
        { "a 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"
          " budget=5/day\na - budget=5/month\n", 2, "budget= of \"a\"" },
    };

    for (i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        keys = keys_of(wrong[i].text, &error);
        assert_null(keys);
        assert_int_equal(error.line, wrong[i].line);

        if (strstr(error.text, wrong[i].says) == NULL) {
            fail_msg("\"%s\" does not say \"%s\"", error.text, wrong[i].says);
        }

        assert_null(strstr(error.text, "secret"));
        assert_null(strstr(error.text, "9f86"));
    }
}


static void
lines_and_names_have_a_longest_length(void **state)
{
    char                 text[LLMGW_KEY_LINE_MAX + 8];
    llmgw_keys_t        *keys;
    llmgw_keys_error_t   error;

    memset(text, ' ', sizeof(text));
    memcpy(text, "a -", 3);
    strcpy(text + LLMGW_KEY_LINE_MAX, "\nb -");
    keys = keys_of(text, &error);
    assert_non_null(keys);
    assert_int_equal(keys->naccounts, 2);
    llmgw_keys_destroy(keys);

    strcpy(text + LLMGW_KEY_LINE_MAX, " \nb ");
    assert_null(keys_of(text, &error));
    assert_int_equal(error.line, 1);
    assert_non_null(strstr(error.text, "longer than 4096"));

    memset(text, 'n', LLMGW_KEY_NAME_BYTES);
    strcpy(text + LLMGW_KEY_NAME_BYTES - 1, " -");
    keys = keys_of(text, &error);
    assert_non_null(keys);
    llmgw_keys_destroy(keys);
    strcpy(text + LLMGW_KEY_NAME_BYTES - 1, "n -");
    assert_null(keys_of(text, &error));
    assert_non_null(strstr(error.text, "1 to 96"));
}


/* Reading continues behind an error, so that a caller can report
   all of them. */
static void
reading_goes_on_behind_an_error(void **state)
{
    char                *text;
    llmgw_keys_t        *keys;
    llmgw_keys_error_t   error;

    text = strdup("a - rpm=x\nb -\nc\n");
    keys = llmgw_keys_create(text, strlen(text));
    assert_int_equal(llmgw_keys_step(keys, 100, &error), LLMGW_KEYS_ERROR);
    assert_int_equal(error.line, 1);
    assert_int_equal(llmgw_keys_step(keys, 100, &error), LLMGW_KEYS_ERROR);
    assert_int_equal(error.line, 3);
    assert_int_equal(llmgw_keys_step(keys, 100, &error), LLMGW_KEYS_DONE);
    assert_int_equal(llmgw_keys_step(keys, 100, &error), LLMGW_KEYS_DONE);
    assert_non_null(llmgw_keys_identity(keys, "b", 1, NOON));
    llmgw_keys_destroy(keys);
}


static void
each_of_many_keys_is_found(void **state)
{
    char                *text, *p, key[64];
    rnd_t                rnd = { 7 };
    uint32_t             i, n = 5000;
    llmgw_keys_t        *keys;
    const llmgw_key_t   *found;
    llmgw_keys_error_t   error;

    p = text = malloc((size_t) n * 100);
    assert_non_null(text);

    for (i = 0; i < n; i++) {
        snprintf(key, sizeof(key), "key-%u", i);
        p = stpcpy(p, key_line(i % 2 ? "even" : key, key, ""));
    }

    keys = llmgw_keys_create(text, (size_t) (p - text));

    while (llmgw_keys_step(keys, LLMGW_KEYS_STEP_LINES, &error)
           == LLMGW_KEYS_MORE)
    {
        /* void */
    }

    assert_int_equal(keys->nkeys, n + 1);
    assert_in_range(keys->longest, 1, 12);

    for (i = 0; i < n; i++) {
        snprintf(key, sizeof(key), "key-%u", i);
        assert_int_equal(find(keys, key, NOON, &found), LLMGW_KEY_VALID);
        assert_int_equal(found->line, i + 1);
        snprintf(key, sizeof(key), "key-%llx",
                 (unsigned long long) rnd_next(&rnd));
        assert_int_equal(find(keys, key, NOON, &found), LLMGW_KEY_UNKNOWN);
    }

    llmgw_keys_destroy(keys);
}


/* A look-up takes the same instructions for all keys of one length. */

typedef struct {
    const llmgw_keys_t  *keys;
    char                 key[64];
    size_t               len;
} look_up_t;


static void
look_up(void *data)
{
    const look_up_t    *what = data;
    const llmgw_key_t  *key;

    (void) llmgw_keys_find(what->keys, what->key, what->len, NOON, &key);
}


static uint32_t
instructions(const llmgw_keys_t *keys, const char *key, size_t len)
{
    pid_t      pid;
    uint32_t   n;
    look_up_t  what = { .keys = keys, .len = len };

    memcpy(what.key, key, len);
    look_up(&what);                     /* its symbols are bound now */
    pid = cut_child(look_up, &what);

    for (n = 0; cut_step(pid); n++) {
        /* void */
    }

    (void) kill(pid, SIGKILL);
    (void) waitpid(pid, NULL, 0);

    return n;
}


static void
work_does_not_tell_whether_a_key_is_known(void **state)
{
    char                 text[8192], key[64];
    size_t               i, len;
    uint32_t             n;
    llmgw_keys_t        *keys;
    llmgw_keys_error_t   error;

    len = 0;

    for (i = 0; i < 40; i++) {
        snprintf(key, sizeof(key), "%.50s%02u", KEY_A, (unsigned) i);
        len += (size_t) sprintf(text + len, "%s", key_line("many", key, ""));
    }

    sprintf(text + len, "%s%s", key_line("a", KEY_A, ""),
            key_line("b", KEY_B, "until=2026-01-01"));
    keys = keys_of(text, &error);
    assert_non_null(keys);

    n = instructions(keys, KEY_A, strlen(KEY_A));       /* valid */
    assert_true(n > 1000);
    assert_int_equal(instructions(keys, KEY_B, strlen(KEY_B)), n);  /* over */
    assert_int_equal(instructions(keys, KEY_C, strlen(KEY_C)), n);

    memset(key, '\xff', sizeof(key));                   /* no key at all */
    assert_int_equal(instructions(keys, key, strlen(KEY_A)), n);

    for (i = 30; i < 50; i++) {         /* some known, some not */
        snprintf(key, sizeof(key), "%.50s%02u", KEY_A, (unsigned) i);
        assert_int_equal(instructions(keys, key, strlen(KEY_A)), n);
    }

    llmgw_keys_destroy(keys);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(hash_is_that_of_sha256sum),
        cmocka_unit_test(lines_of_a_name_are_one_account),
        cmocka_unit_test(day_of_expiry_is_valid_to_its_end),
        cmocka_unit_test(identity_has_its_line_or_the_default),
        cmocka_unit_test(key_that_is_no_key_is_unknown),
        cmocka_unit_test(model_is_one_of_the_list),
        cmocka_unit_test(wrong_line_is_named_with_what_would_be_right),
        cmocka_unit_test(lines_and_names_have_a_longest_length),
        cmocka_unit_test(reading_goes_on_behind_an_error),
        cmocka_unit_test(each_of_many_keys_is_found),
        cmocka_unit_test(work_does_not_tell_whether_a_key_is_known)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
