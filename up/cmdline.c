
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "up/cmdline.h"
#include "up/fleet/fleet.h"


#define FIELD(name)  offsetof(cmdline_t, name)

/* With less than a second, no stream would have time to end. */
#define CMDLINE_DRAIN_MIN_MS  1000
#define CMDLINE_DRAIN_MAX_MS  86400000

static const option_t  cmdline_up_table[] = {

    { "listen", OPTION_ADDRESS, FIELD(listen), "127.0.0.1:8080", NULL,
      "where clients connect", 0, 0, 0 },

    { "keys", OPTION_STRING, FIELD(keys), NULL, "FILE",
      "clients need a key of this file (docs/keys.md)", 0, 0, 0 },

    { "open", OPTION_FLAG, FIELD(is_open), NULL, NULL,
      "answer all clients without a key, other hosts too", 0, 0, 0 },

    { "dir", OPTION_STRING, FIELD(dir), NULL, "DIR",
      "configuration and logs; else a directory for each --listen", 0, 0, 0 },

    { "log-stderr", OPTION_FLAG, FIELD(is_log_stderr), NULL, NULL,
      "all logs to standard error, as in a container; else to files", 0, 0,
      0 },

    { "demo", OPTION_FLAG, FIELD(is_demo), NULL, NULL,
      "three simulated engines", 0, 0, 0 },

    { "engine-key-file", OPTION_STRING, FIELD(engine_key_file), NULL, "FILE",
      "file with the key that the engines ask for", 0, 0, 0 },

    { "drain-timeout", OPTION_DURATION, FIELD(drain_timeout_ms), "25s", NULL,
      "time for running streams at the end", CMDLINE_DRAIN_MIN_MS,
      CMDLINE_DRAIN_MAX_MS, 0 },

    { "nginx", OPTION_STRING, FIELD(nginx), NULL, "PATH",
      "nginx's program; else found in PATH and /usr/sbin", 0, 0, 0 },

    { "module", OPTION_STRING, FIELD(module), NULL, "PATH",
      "the module; else beside this program, or among nginx's", 0, 0, 0 },

    { "test-dns-period", OPTION_DURATION, FIELD(dns_period_ms), "5s", NULL,
      NULL, 10, CMDLINE_DRAIN_MAX_MS, 0 },

    { "print", OPTION_STRING, FIELD(print), NULL, "DIR",
      "start nothing: write what systemd would run", 0, 0, 0 },

    { .name = NULL }
};

static const options_spec_t  cmdline_up_spec = {
    "llmgw up",
    "URL... [options]",
    "Starts a gateway before engines, until Ctrl-C: nginx, its agent, and for\n"
    "each URL an adapter with its agent.",
    "URL:\n"
    "  http://HOST:PORT             an engine with OpenAI's API\n"
    "  dns:NAME:PORT                an engine at each address of a name\n"
    "  'exec:COMMAND'               an engine to be started here (docs/up.md)",
    cmdline_up_table
};

static const option_t  cmdline_ask_table[] = {

    { "dir", OPTION_STRING, FIELD(dir), NULL, "DIR",
      "the gateway's directory; else that of the only one running", 0, 0, 0 },

    { "json", OPTION_FLAG, FIELD(is_json), NULL, NULL,
      "print JSON, for programs", 0, 0, 0 },

    { .name = NULL }
};


static const options_spec_t  cmdline_ask_spec = {
    "llmgw",
    "add URL | remove URL | status [options]",
    "Adds an engine to a running gateway, removes one when its streams have\n"
    "ended, or shows all.",
    NULL,
    cmdline_ask_table
};


/* Whether the next word is this option's value. */
static int
cmdline_takes_value(const options_spec_t *spec, const char *word)
{
    const option_t  *o;

    if (strcmp(word, "-c") == 0) {
        return 1;
    }

    for (o = spec->table; o->name != NULL; o++) {
        if (o->kind != OPTION_FLAG && strncmp(word, "--", 2) == 0
            && strcmp(word + 2, o->name) == 0)
        {
            return 1;
        }
    }

    return 0;
}


/* Moves a word of argv from one place to an earlier one. */
static void
cmdline_move(char **argv, int from, int to)
{
    char  *word;

    word = argv[from];
    memmove(argv + to + 1, argv + to, (size_t) (from - to) * sizeof(char *));
    argv[to] = word;
}


/* Sorts argv: options first, then the other words, each in their order. */
static void
cmdline_sort(const options_spec_t *spec, int argc, char **argv)
{
    int  i, n;

    n = 1;

    for (i = 1; i < argc && strcmp(argv[i], "--") != 0; i++) {

        if (argv[i][0] != '-') {
            continue;
        }

        cmdline_move(argv, i, n++);

        if (cmdline_takes_value(spec, argv[n - 1]) && i + 1 < argc) {
            cmdline_move(argv, ++i, n++);
        }
    }
}


static options_rc_t
cmdline_read(const options_spec_t *spec, cmdline_t *o, int argc, char **argv)
{
    int           rest;
    options_rc_t  rc;

    memset(o, 0, sizeof(cmdline_t));
    cmdline_sort(spec, argc, argv);
    rc = options_parse(spec, o, argc, argv, 1, &rest);

    if (rc == OPTIONS_DONE) {
        o->words = argv + rest;
        o->nwords = argc - rest;
    }

    return rc;
}


/* Checks what the table cannot check. */
static const char *
cmdline_fault(const cmdline_t *o)
{
    if (o->nwords == 0 && !o->is_demo) {
        return "give the URL of an engine, as http://gpu1:8000, or --demo for "
               "simulated ones";
    }

    if (o->nwords > 0 && o->is_demo) {
        return "--demo has engines of its own: leave the URLs out";
    }

    if (o->nwords > FLEET_ENGINES_MAX) {
        return "more than 256 engines";
    }

    if (o->is_open && o->keys != NULL) {
        return "--open answers all clients, --keys only clients with a key: "
        "give one of them";
    }

    return NULL;
}


options_rc_t
cmdline_read_up(cmdline_t *o, int argc, char **argv)
{
    const char    *fault;
    options_rc_t   rc;

    rc = cmdline_read(&cmdline_up_spec, o, argc, argv);

    if (rc != OPTIONS_DONE) {
        return rc;
    }

    fault = cmdline_fault(o);

    if (fault == NULL) {
        return OPTIONS_DONE;
    }

    fprintf(stderr, "llmgw up: %s\n", fault);
    options_done(&cmdline_up_spec, o);

    return OPTIONS_EUSAGE;
}


options_rc_t
cmdline_read_ask(cmdline_t *o, int argc, char **argv)
{
    int           is_status;
    options_rc_t  rc;

    is_status = strcmp(argv[0], "status") == 0;
    rc = cmdline_read(&cmdline_ask_spec, o, argc, argv);

    if (rc != OPTIONS_DONE || o->nwords == !is_status) {
        return rc;
    }

    fprintf(stderr, "llmgw %s: %s\n", argv[0], is_status
            ? "it takes no words, see --help"
            : "it takes one URL, see --help");
    options_done(&cmdline_ask_spec, o);

    return OPTIONS_EUSAGE;
}


void
cmdline_done_up(cmdline_t *o)
{
    options_done(&cmdline_up_spec, o);
}


void
cmdline_done_ask(cmdline_t *o)
{
    options_done(&cmdline_ask_spec, o);
}
