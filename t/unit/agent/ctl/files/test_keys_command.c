
/* llmgwctl keys: the file is changed whole or not, and shows no key twice. */

#include <sys/stat.h>
#include <sys/wait.h>

#include "agent/ctl/files/keys_file.h"
#include "proto/keys/keys.h"
#include "t/unit/agent/ctl/ctl_scene.h"


#define FOREVER_MS  4102444800000ull    /* in the year 2100 */
#define KEY_CHARS   52                  /* "sk-llmgw-" and 43 more */

typedef struct {
    char   path[128];
    char   text[65536];
    ctl_t  ctl;
} keys_scene_t;


static int
setup(void **state)
{
    static keys_scene_t  keys;

    memset(&keys, 0, sizeof(keys));
    strcpy(keys.path, "/tmp/llmgw-keys-XXXXXX");
    assert_non_null(mkdtemp(keys.path));
    strcat(keys.path, "/keys");
    keys.ctl.options.keys_file = keys.path;
    keys.ctl.options.grace_ms = 7ull * 24 * 3600000;
    *state = &keys;

    return 0;
}


static int
teardown(void **state)
{
    char           command[256];
    keys_scene_t  *keys = *state;

    *strrchr(keys->path, '/') = '\0';
    snprintf(command, sizeof(command), "rm -r %s", keys->path);

    return system(command);
}


/* Runs the verb and its arguments, which blanks separate; returns
   the output. */
static const char *
run(keys_scene_t *keys, int status, const char *words)
{
    char         *verb, *word, *rest;
    size_t        i;
    static char   copy[1024];

    static const struct {
        const char  *verb;
        int        (*run)(const ctl_t *ctl);
    } verbs[] = {
        { "add", ctl_keys_add }, { "list", ctl_keys_list },
        { "revoke", ctl_keys_revoke }, { "rotate", ctl_keys_rotate },
        { "check", ctl_keys_check }
    };

    snprintf(copy, sizeof(copy), "%s", words);
    verb = strtok_r(copy, " ", &rest);
    keys->ctl.nwords = 0;

    while ((word = strtok_r(NULL, " ", &rest)) != NULL) {
        keys->ctl.words[keys->ctl.nwords++] = word;
    }

    for (i = 0; strcmp(verbs[i].verb, verb) != 0; i++) { /* void */ }

    memset(&scene, 0, sizeof(scene));

    return scene_run(verbs[i].run, &keys->ctl, status);
}


static const char *
content(keys_scene_t *keys)
{
    FILE    *file;
    size_t   len;

    file = fopen(keys->path, "r");
    assert_non_null(file);
    len = fread(keys->text, 1, sizeof(keys->text) - 1, file);
    keys->text[len] = '\0';
    fclose(file);

    return keys->text;
}


static void
write_file(keys_scene_t *keys, const char *text)
{
    FILE  *file;

    file = fopen(keys->path, "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}


/* How nginx would judge that key at unix_ms, with the file as it is. */
static llmgw_key_state_t
accepts(keys_scene_t *keys, const char *key, uint64_t unix_ms,
    const char *account)
{
    char                 *text;
    llmgw_keys_t         *set;
    llmgw_key_state_t     state;
    const llmgw_key_t    *found;
    llmgw_keys_error_t    error;

    text = strdup(content(keys));
    set = llmgw_keys_create(text, strlen(text));

    while (llmgw_keys_step(set, 100, &error) == LLMGW_KEYS_MORE) {
        /* void */
    }

    state = llmgw_keys_find(set, key, KEY_CHARS, unix_ms, &found);

    if (state != LLMGW_KEY_UNKNOWN) {
        assert_int_equal(set->accounts[found->account].name.len,
                         strlen(account));
        assert_memory_equal(set->accounts[found->account].name.text, account,
                            strlen(account));
    }

    llmgw_keys_destroy(set);

    return state;
}


static void
key_is_shown_once_and_in_no_file(void **state)
{
    char           key[KEY_CHARS + 1];
    struct stat    st;
    keys_scene_t  *keys = *state;

    snprintf(key, sizeof(key), "%s",
             run(keys, CTL_DONE, "add alice models=qwen* rpm=5 admin"));
    assert_memory_equal(key, "sk-llmgw-", 9);
    assert_int_equal(strspn(key + 9, "abcdefghijklmnopqrstuvwxyz"
                            "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_"), 43);
    assert_non_null(strstr(scene.said, "is not shown again"));
    assert_null(strstr(content(keys), key + 9));
    assert_non_null(strstr(keys->text, " models=qwen* rpm=5 admin\n"));
    assert_int_equal(accepts(keys, key, keys_file_now_ms(), "alice"),
                     LLMGW_KEY_VALID);
    assert_int_equal(stat(keys->path, &st), 0);
    assert_int_equal(st.st_mode & 07777, 0640);

    (void) run(keys, CTL_DONE, "list");
    assert_non_null(strstr(scene.said, "alice  "));
    assert_non_null(strstr(scene.said, "models=qwen* rpm=5 admin\n"));
    assert_null(strstr(scene.said, key + 9));
    assert_true(strspn(strstr(scene.said, "alice  ") + 7,
                       "0123456789abcdef") == 8);
}


static void
programs_get_key_and_id(void **state)
{
    json_t        *object;
    keys_scene_t  *keys = *state;

    keys->ctl.is_json = 1;
    object = json_loads(run(keys, CTL_DONE, "add alice"), 0, NULL);
    assert_string_equal(json_string_value(json_object_get(object, "name")),
                        "alice");
    assert_int_equal(json_string_length(json_object_get(object, "key")),
                     KEY_CHARS);
    assert_int_equal(json_string_length(json_object_get(object, "id")), 8);
    json_decref(object);

    object = json_loads(run(keys, CTL_DONE, "list"), 0, NULL);
    assert_int_equal(json_array_size(object), 1);
    assert_non_null(strstr(scene.said, "\"valid\":true,\"valid_until\":null,"
                           "\"may\":\"\"}]"));
    json_decref(object);

    object = json_loads(run(keys, CTL_DONE, "rotate alice"), 0, NULL);
    assert_int_equal(json_string_length(json_object_get(object, "key")),
                     KEY_CHARS);
    json_decref(object);
    assert_string_equal(run(keys, CTL_DONE, "revoke alice"),
                        "{\"revoked\":2}\n");
    assert_non_null(strstr(run(keys, CTL_DONE, "list"),
                           "\"valid\":false,\"valid_until\":\"20"));

    object = json_loads(run(keys, CTL_DONE, "check"), 0, NULL);
    assert_true(json_is_true(json_object_get(object, "ok")));
    json_decref(object);
}


static void
identity_has_no_key(void **state)
{
    keys_scene_t  *keys = *state;

    keys->ctl.options.is_identity = 1;
    assert_string_equal(run(keys, CTL_DONE, "add * rpm=10"), "");
    assert_string_equal(content(keys), "* - rpm=10\n");
    (void) run(keys, CTL_FAILED, "add * rpm=10");
    assert_non_null(strstr(scene.said, "line 2: a second line of \"*\""));
    assert_string_equal(content(keys), "* - rpm=10\n");
}


static void
what_nginx_would_refuse_is_not_written(void **state)
{
    keys_scene_t  *keys = *state;

    (void) run(keys, CTL_FAILED, "add alice rpm=x");
    assert_non_null(strstr(scene.said, "nothing was changed"));
    assert_null(strstr(scene.said, "sk-llmgw"));
    assert_int_equal(access(keys->path, F_OK), -1);

    (void) run(keys, CTL_DONE, "add alice rpm=5");
    (void) run(keys, CTL_FAILED, "add alice rpm=6");
    assert_non_null(strstr(scene.said, "differs from line 1"));
    (void) run(keys, CTL_USAGE, "add #alice");
    assert_null(strchr(strchr(content(keys), '\n') + 1, '\n'));
}


static void
revoked_key_is_expired_and_its_limits_stay(void **state)
{
    char           first[KEY_CHARS + 1], second[KEY_CHARS + 1];
    char           id[9];
    keys_scene_t  *keys = *state;

    snprintf(first, sizeof(first), "%s",
             run(keys, CTL_DONE, "add alice rpm=5 expires=2099-01-01"));
    snprintf(second, sizeof(second), "%s", run(keys, CTL_DONE, "add alice"));
    snprintf(id, sizeof(id), "%s", content(keys) + strlen("alice "));

    (void) run(keys, CTL_NOT_FOUND, "revoke alice 00000000");
    (void) run(keys, CTL_NOT_FOUND, "revoke bob");
    snprintf(keys->text, sizeof(keys->text), "revoke alice %s", id);
    (void) run(keys, CTL_DONE, keys->text);
    assert_non_null(strstr(scene.said, "1 key of \"alice\" revoked"));
    assert_int_equal(accepts(keys, first, keys_file_now_ms(), "alice"),
                     LLMGW_KEY_EXPIRED);
    assert_int_equal(accepts(keys, second, keys_file_now_ms(), "alice"),
                     LLMGW_KEY_VALID);
    assert_non_null(strstr(keys->text, "rpm=5 expires=2099-01-01 until=20"));

    (void) run(keys, CTL_DONE, "revoke alice");
    assert_int_equal(accepts(keys, second, keys_file_now_ms(), "alice"),
                     LLMGW_KEY_EXPIRED);
    (void) run(keys, CTL_NOT_FOUND, "revoke alice");
    (void) run(keys, CTL_DONE, "list");
    assert_non_null(strstr(scene.said, "expired"));
}


static void
rotated_key_is_valid_for_a_while(void **state)
{
    char           old[KEY_CHARS + 1], new[KEY_CHARS + 1];
    keys_scene_t  *keys = *state;

    snprintf(old, sizeof(old), "%s",
             run(keys, CTL_DONE, "add alice rpm=5 admin"));
    snprintf(new, sizeof(new), "%s", run(keys, CTL_DONE, "rotate alice"));
    assert_int_equal(accepts(keys, old, keys_file_now_ms(), "alice"),
                     LLMGW_KEY_VALID);
    assert_int_equal(accepts(keys, old, keys_file_now_ms()
                             + 8ull * 24 * 3600000, "alice"),
                     LLMGW_KEY_EXPIRED);
    assert_int_equal(accepts(keys, new, FOREVER_MS, "alice"),
                     LLMGW_KEY_VALID);

    /* the next rotation replaces the new key */

    snprintf(old, sizeof(old), "%s", run(keys, CTL_DONE, "rotate alice"));
    assert_int_equal(accepts(keys, new, FOREVER_MS, "alice"),
                     LLMGW_KEY_EXPIRED);
    assert_int_equal(accepts(keys, old, FOREVER_MS, "alice"),
                     LLMGW_KEY_VALID);
    assert_non_null(strstr(strrchr(keys->text, '\n') - 20, " rpm=5 admin\n"));

    (void) run(keys, CTL_DONE, "add alice");
    (void) run(keys, CTL_USAGE, "rotate alice");
    assert_non_null(strstr(scene.said, "an ID is needed"));
}


static void
validity_is_not_made_longer(void **state)
{
    char           old[KEY_CHARS + 1], command[64];
    keys_scene_t  *keys = *state;

    snprintf(old, sizeof(old), "%s", run(keys, CTL_DONE, "add alice"));
    snprintf(command, sizeof(command), "rotate alice %.8s",
             content(keys) + strlen("alice "));
    keys->ctl.options.grace_ms = 3600000;
    (void) run(keys, CTL_DONE, command);
    keys->ctl.options.grace_ms = 7ull * 24 * 3600000;
    (void) run(keys, CTL_DONE, command);
    assert_int_equal(accepts(keys, old, keys_file_now_ms() + 3500000, "alice"),
                     LLMGW_KEY_VALID);
    assert_int_equal(accepts(keys, old, keys_file_now_ms() + 3600001, "alice"),
                     LLMGW_KEY_EXPIRED);
}


static void
rest_of_the_file_stays_as_it_is(void **state)
{
    keys_scene_t  *keys = *state;

    write_file(keys, "# keys\n\n  bob\t-   rpm=1   # Bob\r\nalice "
               "9f86d081884c7d659a2feaa0c55ad015"
               "a3bf4f1b2b0b822cd15d6c15b0f00A08 until=2099-01-01 tpm=5 # x");
    (void) run(keys, CTL_DONE, "add carol");
    assert_ptr_equal(strstr(content(keys), "# keys\n\n  bob\t-   rpm=1   # Bob"
                            "\r\n"), keys->text);
    assert_non_null(strstr(keys->text, " tpm=5 # x\ncarol "));
    (void) run(keys, CTL_DONE, "list");
    assert_non_null(strstr(scene.said,
        "bob    -         -                  rpm=1\n"));
    assert_non_null(strstr(scene.said,
        "alice  9f86d081  2099-01-02T00:00Z  until=2099-01-01 tpm=5\n"));
    (void) run(keys, CTL_DONE, "revoke alice 9f86d081");
    assert_non_null(strstr(content(keys), "A08 tpm=5 until=20"));
    assert_non_null(strstr(keys->text, "Z  # x\ncarol "));
}


static void
each_wrong_line_is_shown(void **state)
{
    keys_scene_t  *keys = *state;

    write_file(keys, "alice\nbob - rpm=x\ncarol -\ncarol -\n");
    (void) run(keys, CTL_FAILED, "check");
    assert_non_null(strstr(scene.said, "/keys:1: the SHA-256"));
    assert_non_null(strstr(scene.said, "/keys:2: \"rpm=x\" is not valid"));
    assert_non_null(strstr(scene.said, "/keys:4: a second line of"));

    keys->ctl.is_json = 1;
    (void) run(keys, CTL_FAILED, "check");
    assert_non_null(strstr(scene.said, "{\"ok\":false,\"keys\":0,"
                           "\"accounts\":1,\"errors\":[{\"line\":1,"));
    keys->ctl.is_json = 0;
    write_file(keys, "");
    (void) run(keys, CTL_FAILED, "check");
    assert_non_null(strstr(scene.said, "/keys: there is no key in it"));
    (void) unlink(keys->path);
    (void) run(keys, CTL_FAILED, "check");
    assert_non_null(strstr(scene.said, "No such file"));
}


static void
link_and_mode_are_kept(void **state)
{
    char           target[160];
    struct stat    st;
    keys_scene_t  *keys = *state;

    snprintf(target, sizeof(target), "%s.data", keys->path);
    assert_int_equal(symlink(target, keys->path), 0);
    write_file(keys, "bob -\n");
    assert_int_equal(chmod(target, 0604), 0);
    (void) run(keys, CTL_DONE, "add alice");

    assert_int_equal(lstat(keys->path, &st), 0);
    assert_true(S_ISLNK(st.st_mode));
    assert_int_equal(stat(target, &st), 0);
    assert_int_equal(st.st_mode & 07777, 0604);
    assert_non_null(strstr(content(keys), "alice "));
}


static void
changes_at_once_are_all_kept(void **state)
{
    int            i, k, status;
    pid_t          pids[4];
    const char    *p;
    keys_scene_t  *keys = *state;

    (void) run(keys, CTL_DONE, "add first");

    for (i = 0; i < 4; i++) {
        pids[i] = fork();
        assert_int_not_equal(pids[i], -1);

        if (pids[i] == 0) {
            for (k = 0; k < 10; k++) {
                (void) run(keys, CTL_DONE, "add alice");
            }

            _exit(0);
        }
    }

    for (i = 0; i < 4; i++) {
        assert_int_equal(waitpid(pids[i], &status, 0), pids[i]);
        assert_int_equal(status, 0);
    }

    for (i = 0, p = content(keys); (p = strchr(p, '\n')) != NULL; p++) {
        i++;
    }

    assert_int_equal(i, 41);
}


#define test(name)  cmocka_unit_test_setup_teardown(name, setup, teardown)

int
main(void)
{
    const struct CMUnitTest  tests[] = {
        test(key_is_shown_once_and_in_no_file),
        test(programs_get_key_and_id),
        test(identity_has_no_key),
        test(what_nginx_would_refuse_is_not_written),
        test(revoked_key_is_expired_and_its_limits_stay),
        test(rotated_key_is_valid_for_a_while),
        test(validity_is_not_made_longer),
        test(rest_of_the_file_stays_as_it_is),
        test(each_wrong_line_is_shown),
        test(link_and_mode_are_kept),
        test(changes_at_once_are_all_kept)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
