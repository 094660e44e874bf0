
/*
 * Command lines.  What the parser prints is read back from a file that
 * stands in for stdout and stderr while it runs.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "common/options.h"


typedef struct {
    const char  *id;
    const char  *listen;
    const char  *prompt;
    const char  *socket;
    uint64_t     delay_ms;
    int64_t      capacity;
    uint64_t     memory;
    double       rate;
    int          remote;
} values_t;

typedef struct {
    values_t      values;
    options_rc_t  rc;
    int           rest;
    char          out[4096];
    char          err[4096];
} run_t;


static const option_t  table[] = {
    { "id", OPTION_NAME, offsetof(values_t, id), NULL, "ID",
      "name of the replica", 0, 0, 1 },
    { "listen", OPTION_ADDRESS, offsetof(values_t, listen), "127.0.0.1:80",
      NULL, "where to listen", 0, 0, 0 },
    { "prompt", OPTION_STRING, offsetof(values_t, prompt), NULL, NULL,
      "what to say", 0, 0, 0 },
    { "s", OPTION_STRING, offsetof(values_t, socket), "/run/x", "PATH",
      "control socket", 0, 0, 0 },
    { "token-delay", OPTION_DURATION, offsetof(values_t, delay_ms), "50ms",
      NULL, "time between tokens", 0, 60000, 0 },
    { "capacity", OPTION_INT, offsetof(values_t, capacity), "0", NULL,
      "most streams at once", 0, 100000, 0 },
    { "memory", OPTION_SIZE, offsetof(values_t, memory), "1GiB", NULL,
      "most memory", 4096, 2199023255552, 0 },
    { "Errors", OPTION_HEADING, 0, NULL, NULL, NULL, 0, 0, 0 },
    { "rate", OPTION_DOUBLE, offsetof(values_t, rate), "0", NULL,
      "share of errors", 0, 1, 0 },
    { "remote", OPTION_FLAG, offsetof(values_t, remote), NULL, NULL,
      NULL, 0, 0, 0 },
    { .name = NULL }
};

static const options_spec_t  spec = {
    "prog", "--id ID [options]", "Does things.", "The end.", table
};


static int
divert(int fd, FILE *to)
{
    int  saved;

    fflush(NULL);
    saved = dup(fd);
    dup2(fileno(to), fd);

    return saved;
}


static void
restore(int fd, int saved, FILE *from, char *buf, size_t capacity)
{
    size_t  n;

    fflush(NULL);
    dup2(saved, fd);
    close(saved);

    rewind(from);
    n = fread(buf, 1, capacity - 1, from);
    buf[n] = '\0';
    fclose(from);
}


/* Parses "prog " + line, cut at blanks. */
static run_t *
run(const char *line, int has_rest)
{
    int    argc, out, err;
    char   copy[1024], *argv[64], *word;
    FILE  *out_file, *err_file;

    static run_t  r;

    memset(&r, 0, sizeof(r));
    snprintf(copy, sizeof(copy), "prog %s", line);

    argc = 0;

    for (word = strtok(copy, " "); word != NULL; word = strtok(NULL, " ")) {
        argv[argc++] = word;
    }

    argv[argc] = NULL;

    out_file = tmpfile();
    err_file = tmpfile();
    out = divert(STDOUT_FILENO, out_file);
    err = divert(STDERR_FILENO, err_file);

    r.rc = options_parse(&spec, &r.values, argc, argv, has_rest, &r.rest);

    restore(STDOUT_FILENO, out, out_file, r.out, sizeof(r.out));
    restore(STDERR_FILENO, err, err_file, r.err, sizeof(r.err));

    return &r;
}


/* Checks a refusal: one line on stderr, nothing on stdout. */
static void
refused(const char *line, const char *error)
{
    run_t  *r;

    r = run(line, 0);
    assert_int_equal(r->rc, OPTIONS_EUSAGE);
    assert_string_equal(r->err, error);
    assert_string_equal(r->out, "");
    options_done(&spec, &r->values);
}


static const char *
config(const char *text)
{
    FILE  *file;

    static char  path[] = "/tmp/llmgw-test-options-XXXXXX";

    strcpy(path + sizeof(path) - 7, "XXXXXX");
    file = fdopen(mkstemp(path), "w");
    fputs(text, file);
    fclose(file);

    return path;
}


static void
defaults_stand_where_nothing_is_given(void **state)
{
    run_t  *r;

    r = run("--id r1", 0);
    assert_int_equal(r->rc, OPTIONS_DONE);
    assert_string_equal(r->values.id, "r1");
    assert_string_equal(r->values.listen, "127.0.0.1:80");
    assert_string_equal(r->values.socket, "/run/x");
    assert_null(r->values.prompt);
    assert_int_equal(r->values.delay_ms, 50);
    assert_int_equal(r->values.memory, 1 << 30);
    assert_int_equal(r->values.remote, 0);
    assert_int_equal(r->rest, 2 + 1);
    assert_string_equal(r->err, "");
    options_done(&spec, &r->values);
    assert_null(r->values.id);
}


static void
every_form_is_understood(void **state)
{
    run_t  *r;

    r = run("--id=r1 --listen [::1]:99 -s /tmp/y --token-delay=2s --capacity 4 "
            "--rate 0.25 --remote --prompt --id", 0);
    assert_int_equal(r->rc, OPTIONS_DONE);
    assert_string_equal(r->values.listen, "[::1]:99");
    assert_string_equal(r->values.socket, "/tmp/y");
    assert_string_equal(r->values.prompt, "--id");
    assert_int_equal(r->values.delay_ms, 2000);
    assert_int_equal(r->values.capacity, 4);
    assert_true(r->values.rate == 0.25);
    assert_int_equal(r->values.remote, 1);
    options_done(&spec, &r->values);

    r = run("--remote --remote=off --id a --id b --prompt=", 0);
    assert_int_equal(r->values.remote, 0);
    assert_string_equal(r->values.id, "b");
    assert_string_equal(r->values.prompt, "");
    options_done(&spec, &r->values);

    r = run("--id a --memory 4096", 0);
    assert_int_equal(r->values.memory, 4096);
    options_done(&spec, &r->values);

    r = run("--id a --memory 300MiB", 0);
    assert_int_equal(r->values.memory, 300 << 20);
    options_done(&spec, &r->values);

    r = run("--id a --memory 2TiB", 0);
    assert_true(r->values.memory == 1ULL << 41);
    options_done(&spec, &r->values);
}


static void
bad_values_are_named_with_what_would_do(void **state)
{
    refused("--id r1 --token-delay 5",
            "prog: --token-delay: \"5\" is not a time like 50ms, 2s, 1m or "
            "1h, from 0 to 1m\n");
    refused("--id r1 --memory 3KiB",
            "prog: --memory: \"3KiB\" is not a size like 512MiB or 8GiB, from "
            "4KiB to 2TiB\n");
    refused("--id r1 --memory 1GB",
            "prog: --memory: \"1GB\" is not a size like 512MiB or 8GiB, from "
            "4KiB to 2TiB\n");
    refused("--id r1 --memory -1GiB",
            "prog: --memory: \"-1GiB\" is not a size like 512MiB or 8GiB, "
            "from 4KiB to 2TiB\n");
    refused("--id r1 --memory 16777216TiB",
            "prog: --memory: \"16777216TiB\" is not a size like 512MiB or "
            "8GiB, from 4KiB to 2TiB\n");
    refused("--id r1 --token-delay 60001ms",
            "prog: --token-delay: \"60001ms\" is not a time like 50ms, 2s, "
            "1m or 1h, from 0 to 1m\n");
    refused("--id r1 --capacity -1",
            "prog: --capacity: \"-1\" is not a whole number, from 0 to "
            "100000\n");
    refused("--id r1 --capacity 100001",
            "prog: --capacity: \"100001\" is not a whole number, from 0 to "
            "100000\n");
    refused("--id r1 --rate nan",
            "prog: --rate: \"nan\" is not a number, from 0 to 1\n");
    refused("--id r1 --listen nowhere",
            "prog: --listen: \"nowhere\" is not HOST:PORT\n");
    refused("--id r1 --remote=maybe",
            "prog: --remote: \"maybe\" is not on or off\n");
    refused("--id -x",
            "prog: --id: \"-x\" is not a name (letters, digits, '.', '_', "
            "'-'; 63 at most, the first a letter or digit)\n");
}


static void
wrong_words_are_named(void **state)
{
    refused("--id r1 --nonsense",
            "prog: unknown option \"--nonsense\", see --help\n");
    refused("--id r1 -id", "prog: unknown option \"-id\", see --help\n");
    refused("--id r1 --s x", "prog: unknown option \"--s\", see --help\n");
    refused("--id r1 --Errors=1",
            "prog: unknown option \"--Errors=1\", see --help\n");
    refused("--id", "prog: --id needs a value\n");
    refused("-c", "prog: -c needs a value\n");
    refused("", "prog: --id is required, see --help\n");
    refused("--id r1 stray", "prog: unexpected word \"stray\", see --help\n");
    refused("--id r1 -- stray",
            "prog: unexpected word \"stray\", see --help\n");
}


static void
the_rest_is_left_to_the_caller(void **state)
{
    run_t  *r;

    r = run("--id r1 drain --capacity x", 1);
    assert_int_equal(r->rc, OPTIONS_DONE);
    assert_int_equal(r->rest, 3);
    options_done(&spec, &r->values);

    r = run("--id r1 -- --help", 1);
    assert_int_equal(r->rc, OPTIONS_DONE);
    assert_int_equal(r->rest, 4);
    options_done(&spec, &r->values);
}


static void
the_command_line_wins_over_the_file(void **state)
{
    char         line[256];
    run_t       *r;
    const char  *path;

    path = config("# a comment\n\n  id   filed # why\nprompt two  words\n"
                  "remote\ncapacity 7\ntoken-delay 1s");
    snprintf(line, sizeof(line), "--capacity 9 -c %s", path);
    r = run(line, 0);
    unlink(path);

    assert_int_equal(r->rc, OPTIONS_DONE);
    assert_string_equal(r->values.id, "filed");
    assert_string_equal(r->values.prompt, "two  words");
    assert_int_equal(r->values.capacity, 9);
    assert_int_equal(r->values.delay_ms, 1000);
    assert_int_equal(r->values.remote, 1);
    options_done(&spec, &r->values);
}


static void
errors_in_the_file_name_its_line(void **state)
{
    char         line[256], error[512], long_line[5000];
    size_t       i;
    const char  *path;

    static const struct {
        const char  *text;
        const char  *error;
    } cases[] = {
        { "id x\nnonsense 1\n", "2: unknown key \"nonsense\", see --help" },
        { "\n\ncapacity\n", "3: capacity needs a value" },
        { "rate 2\n", "1: rate: \"2\" is not a number, from 0 to 1" }
    };

    for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        path = config(cases[i].text);
        snprintf(line, sizeof(line), "-c %s --id r1", path);
        snprintf(error, sizeof(error), "prog: %s:%s\n", path, cases[i].error);
        refused(line, error);
        unlink(path);
    }

    memset(long_line, 'x', sizeof(long_line) - 1);
    long_line[sizeof(long_line) - 1] = '\0';
    path = config(long_line);
    snprintf(line, sizeof(line), "-c %s --id r1", path);
    snprintf(error, sizeof(error), "prog: %s:1: line longer than 4094 bytes\n",
             path);
    refused(line, error);
    unlink(path);

    refused("-c /nonexistent/file --id r1",
            "prog: -c: \"/nonexistent/file\": No such file or directory\n");
}


static void
another_tables_options_are_passed_over_where_that_is_asked(void **state)
{
    size_t        i;
    values_t      v;
    const char   *path;

    static const option_t  few[] = {
        { "prompt", OPTION_STRING, offsetof(values_t, prompt), NULL, NULL,
          NULL, 0, 0, 0 },
        { .name = NULL }
    };

    static const options_spec_t  some = { "prog", "", NULL, NULL, few };

    const struct {
        const char  *argv[8];
        const char  *prompt;
    } cases[] = {
        { { "prog", "--id", "r1", "--prompt", "a", "--prompt=b" }, "b" },
        { { "prog", "--nonsense", "--help", "word", "--prompt", "a" }, "a" },
        { { "prog", "-c", NULL, "--capacity=4" }, "of the file" },
        { { "prog", "-c", NULL, "--prompt", "a", "--", "--prompt" }, "a" },
        { { "prog", "--id", "r1", "--", "--prompt", "a" }, NULL },
        { { "prog" }, NULL }
    };

    path = config("capacity many\nprompt of the file\nnonsense\n");

    for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        int    argc;
        char  *argv[9] = { NULL };

        for (argc = 0; argc < 8; argc++) {
            argv[argc] = (char *) (argc == 2 && cases[i].argv[2] == NULL
                                   && cases[i].argv[1] != NULL
                                   ? path : cases[i].argv[argc]);

            if (argv[argc] == NULL) {
                break;
            }
        }

        memset(&v, 0, sizeof(v));
        assert_int_equal(options_parse_some(&some, &v, argc, argv),
                         OPTIONS_DONE);

        if (cases[i].prompt == NULL) {
            assert_null(v.prompt);
        } else {
            assert_string_equal(v.prompt, cases[i].prompt);
        }

        options_done(&some, &v);
    }

    unlink(path);
}


static void
help_lists_the_table_and_version_prints_it(void **state)
{
    run_t  *r;

    r = run("--capacity 4 --help --nonsense", 0);
    assert_int_equal(r->rc, OPTIONS_EXIT);
    assert_string_equal(r->err, "");
    assert_string_equal(r->out,
        "usage: prog --id ID [options]\n\nDoes things.\n\n"
        "  --id ID                      name of the replica (required)\n"
        "  --listen HOST:PORT           where to listen (127.0.0.1:80)\n"
        "  --prompt TEXT                what to say\n"
        "  -s PATH                      control socket (/run/x)\n"
        "  --token-delay TIME           time between tokens (50ms)\n"
        "  --capacity N                 most streams at once (0)\n"
        "  --memory SIZE                most memory (1GiB)\n"
        "\nErrors:\n"
        "  --rate X                     share of errors (0)\n"
        "  -c FILE                      read options from FILE, \"key value\" "
        "lines\n"
        "  --help                       print this help\n"
        "  --version                    print the version\n"
        "\nThe end.\n");

    r = run("--version", 0);
    assert_int_equal(r->rc, OPTIONS_EXIT);
    assert_string_equal(r->out, "prog " LLMGW_VERSION "\n");
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(defaults_stand_where_nothing_is_given),
        cmocka_unit_test(every_form_is_understood),
        cmocka_unit_test(bad_values_are_named_with_what_would_do),
        cmocka_unit_test(wrong_words_are_named),
        cmocka_unit_test(the_rest_is_left_to_the_caller),
        cmocka_unit_test(the_command_line_wins_over_the_file),
        cmocka_unit_test(errors_in_the_file_name_its_line),
        cmocka_unit_test(
            another_tables_options_are_passed_over_where_that_is_asked),
        cmocka_unit_test(help_lists_the_table_and_version_prints_it),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
