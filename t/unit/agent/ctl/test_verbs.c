
/*
 * llmgwctl's command line: which command it names, and what is missing in it.
 */

#include "ctl/verbs.h"
#include "t/unit/agent/ctl/ctl_scene.h"


#define ARGS  8

typedef struct {
    const ctl_verb_t  *verb;
    ctl_t              ctl;
    char               line[256];
} parsed_t;

static parsed_t  parsed;


/* Parses the words of parsed.line, which blanks separate, as main() does. */
static int
parse(const ctl_t *ctl)
{
    int    argc;
    char  *word, *rest, *argv[ARGS + 1];

    argc = 0;

    for (word = strtok_r(parsed.line, " ", &rest); word != NULL && argc < ARGS;
         word = strtok_r(NULL, " ", &rest))
    {
        argv[argc++] = word;
    }

    argv[argc] = NULL;

    return ctl_verb_parse(&parsed.verb, &parsed.ctl, argc, argv);
}


static const char *
said_of(const char *line, int status)
{
    memset(&parsed, 0, sizeof(parsed));
    snprintf(parsed.line, sizeof(parsed.line), "%s", line);

    return scene_run(parse, &parsed.ctl, status);
}


static void
assert_runs(const char *line, int (*run)(const ctl_t *ctl), int nwords)
{
    assert_string_equal(said_of(line, -1), "");
    assert_ptr_equal(parsed.verb->run, run);
    assert_int_equal(parsed.ctl.nwords, nwords);
}


static void
name_and_verb_choose_the_function(void **state)
{
    assert_runs("members", ctl_members, 0);
    assert_runs("keyring list", ctl_keyring_list, 0);
    assert_runs("keyring add KEY", ctl_keyring_add, 1);
    assert_string_equal(parsed.ctl.words[0], "KEY");
    assert_runs("certs issue DIR NAME", ctl_certs_issue, 2);
    ctl_verb_done(parsed.verb, &parsed.ctl);
    assert_runs("keys add alice rpm=1 tpm=2", ctl_keys_add, 3);
    assert_string_equal(parsed.ctl.words[2], "tpm=2");
    ctl_verb_done(parsed.verb, &parsed.ctl);
    assert_runs("keyring add -", ctl_keyring_add, 1);
}


static void
group_without_a_verb_lists(void **state)
{
    assert_runs("group", ctl_group_list, 0);
    assert_runs("group list", ctl_group_list, 0);
    assert_runs("group switch g --timeout 5s", ctl_group_switch, 1);
    assert_int_equal(parsed.ctl.options.switch_timeout_ms, 5000);
}


static void
words_come_before_options_or_behind_them(void **state)
{
    assert_runs("drain r1 --force", ctl_drain, 1);
    assert_true(parsed.ctl.options.is_forced);
    assert_runs("drain --force r1", ctl_drain, 1);
    assert_string_equal(parsed.ctl.words[0], "r1");
    assert_runs("keys --file /f revoke alice", ctl_keys_revoke, 1);
    assert_string_equal(parsed.ctl.words[0], "alice");
    assert_string_equal(parsed.ctl.options.keys_file, "/f");
    ctl_verb_done(parsed.verb, &parsed.ctl);
}


static void
wrong_lines_are_refused_by_what_is_wrong(void **state)
{
    static const struct {
        const char  *line, *said;
    } lines[] = {
        { "stray", "usage: there is no command stray\n" },
        { "members x", "usage: unexpected word x\n" },
        { "undrain", "usage: words are missing of undrain ID\n" },
        { "undrain r1 r2", "usage: unexpected word r2\n" },
        { "undrain r1 --force", "usage: unexpected option --force\n" },
        { "keyring", "usage: a word is missing after keyring\n" },
        { "keyring x", "usage: there is no command keyring x\n" },
        { "keyring use", "usage: words are missing of keyring use ID\n" },
        { "keyring list x", "usage: unexpected word x\n" },
        { "group x", "usage: there is no command group x\n" },
        { "group list x", "usage: unexpected word x\n" },
        { "group switch", "usage: words are missing of group switch GROUP\n" },
        { "lock", "usage: a word is missing after lock\n" },
        { "lock x", "usage: there is no command lock x\n" },
        { "certs issue DIR",
          "usage: words are missing of certs issue DIR NAME\n" },
        { "keys add", "usage: words are missing of keys add NAME\n" },
        { "keys forget alice", "usage: there is no command keys forget\n" },
        { "keys revoke alice 1 2", "usage: unexpected word 2\n" }
    };

    size_t  i;

    for (i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
        assert_string_equal(said_of(lines[i].line, CTL_USAGE), lines[i].said);
    }
}


static void
files_need_no_socket_and_the_doctor_can_do_without(void **state)
{
    assert_runs("usage FILE", ctl_usage_logs, 1);
    assert_int_equal(parsed.verb->needs, CTL_NEEDS_FILES);
    ctl_verb_done(parsed.verb, &parsed.ctl);
    assert_runs("doctor", ctl_doctor, 0);
    assert_int_equal(parsed.verb->needs, CTL_TAKES_SOCKET);
    ctl_verb_done(parsed.verb, &parsed.ctl);
    assert_runs("members", ctl_members, 0);
    assert_int_equal(parsed.verb->needs, CTL_NEEDS_SOCKET);
}


static int
help(const ctl_t *ctl)
{
    ctl_verbs_help(stdout);

    return CTL_DONE;
}


static void
help_has_a_line_for_each_command_but_the_hidden(void **state)
{
    const ctl_t  ctl = { 0 };

    scene_run(help, &ctl, CTL_DONE);
    assert_non_null(strstr(scene.said,
        "  drain ID [options]        send it nothing new"));
    assert_non_null(strstr(scene.said, "  group [list]              list"));
    assert_non_null(strstr(scene.said, "  keyring add KEY           add a"));
    assert_non_null(strstr(scene.said, "  leave                     leave"));
    assert_null(strstr(scene.said, "inject"));
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(name_and_verb_choose_the_function),
        cmocka_unit_test(group_without_a_verb_lists),
        cmocka_unit_test(words_come_before_options_or_behind_them),
        cmocka_unit_test(wrong_lines_are_refused_by_what_is_wrong),
        cmocka_unit_test(files_need_no_socket_and_the_doctor_can_do_without),
        cmocka_unit_test(help_has_a_line_for_each_command_but_the_hidden)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
