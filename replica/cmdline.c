
/*
 * The options that each replica has, and checks that the table of options
 * cannot express.
 */

#include <errno.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "replica/cmdline.h"


#define FIELD(name)    offsetof(cmdline_t, name)
#define HEADING(text)  { text, OPTION_HEADING, 0, NULL, NULL, NULL, 0, 0, 0 }

static const option_t  cmdline_table[] = {

    HEADING("Serving"),

    { "id", OPTION_NAME, FIELD(id), NULL, "ID",
      "name of the replica", 0, 0, 1 },

    { "listen", OPTION_ADDRESS, FIELD(listen), NULL, NULL,
      "where gRPC is served", 0, 0, 1 },

    { "agent", OPTION_STRING, FIELD(agent), NULL, "PATH",
      "control socket of the agent to report to", 0, 0, 0 },

    { "max-capacity", OPTION_STRING, FIELD(max_capacity), "auto", "auto|N",
      "concurrent streams; 0: no limit", 0, 0, 0 },

    { "model-version", OPTION_NAME, FIELD(engine.model_version), "v1",
      "VERSION", "version of the model, as reported", 0, 0, 0 },

    { "drain-timeout", OPTION_DURATION, FIELD(drain_timeout_ms), "25s", NULL,
      "time for running streams after SIGTERM", 0, ENGINE_DELAY_MAX_MS, 0 },

    { "remote-drain", OPTION_FLAG, FIELD(is_remote_drain), NULL, NULL,
      "accept Drain and Undrain from other hosts too", 0, 0, 0 },

    HEADING("Access control (docs/tls.md)"),

    { "tls-cert", OPTION_STRING, FIELD(tls.cert), NULL, "FILE",
      "mutual TLS: this replica's certificate", 0, 0, 0 },

    { "tls-key", OPTION_STRING, FIELD(tls.key), NULL, "FILE",
      "and its key", 0, 0, 0 },

    { "tls-client-ca", OPTION_STRING, FIELD(tls.ca), NULL, "FILE",
      "the CA that signs certificates of gateways and agents", 0, 0, 0 },

    { "tls-client-name", OPTION_STRING, FIELD(tls_clients), NULL,
      "PATTERN[,PATTERN]", "names accepted in those certificates, as gw*; else "
      "all", 0, 0,
      0 },

    { "insecure", OPTION_FLAG, FIELD(is_insecure), NULL, NULL,
      "serve other hosts without TLS", 0, 0, 0 },

    HEADING("Weights in memory that engines share"),

    { "weights", OPTION_STRING, FIELD(engine.weights.sockets), NULL,
      "PATH[,PATH]", "sockets of weights services, one for each file",
      0, 0, 0 },

    { "weights-role", OPTION_STRING, FIELD(engine.weights.role), "rw_or_ro",
      "rw_or_ro|ro", "rw_or_ro: load missing weights; ro: wait for them",
      0, 0, 0 },

    { "weights-timeout", OPTION_DURATION, FIELD(engine.weights.timeout_ms),
      "2h", NULL, "time to wait for weights at the start", 1,
      CMDLINE_LONG_MAX_MS, 0 },

    { "sleep", OPTION_STRING, FIELD(engine.weights.sleep), "mapped",
      "mapped|unmapped", "in standby: keep weights mapped, or map them on "
      "waking", 0, 0, 0 },

    { "remap-timeout", OPTION_DURATION, FIELD(engine.weights.remap_timeout_ms),
      "30s", NULL, "time to map weights again", 1,
      CMDLINE_LONG_MAX_MS, 0 },

    { "mlock", OPTION_FLAG, FIELD(engine.weights.is_locked), NULL, NULL,
      "lock weights in memory: never swap them out", 0, 0, 0 },

    HEADING("Hot standby (docs/standby.md)"),

    { "standby", OPTION_FLAG, FIELD(engine.is_standby), NULL, NULL,
      "wait, warm, until no other engine of the group serves", 0, 0, 0 },

    { "group", OPTION_STRING, FIELD(standby.group), NULL, "GROUP",
      "engines of this host, of which one serves", 0, 0, 0 },

    { "lock", OPTION_STRING, FIELD(standby.lock), NULL, "PATH",
      "socket of llmgw-lock, which grants the right to serve", 0, 0, 0 },

    { "wait-for", OPTION_STRING, FIELD(standby.wait_for), NULL,
      "PATH[,PATH]", "sockets that must exist before the engine starts",
      0, 0, 0 },

    { "waking-timeout", OPTION_DURATION, FIELD(standby.waking_timeout_ms),
      "60s", NULL, "an engine that takes longer to wake exits", 10,
      ENGINE_DELAY_MAX_MS, 0 },

    { "probe-listen", OPTION_ADDRESS, FIELD(standby.probe_listen), NULL, NULL,
      "HTTP: /livez, /startupz, /readyz", 0, 0, 0 },

    { .name = NULL }
};


int
cmdline_wrong(char error[CMDLINE_ERROR_BYTES], const char *format, ...)
{
    va_list  args;

    va_start(args, format);
    vsnprintf(error, CMDLINE_ERROR_BYTES, format, args);
    va_end(args);

    return -1;
}


static int
cmdline_check_capacity(cmdline_t *o, char error[CMDLINE_ERROR_BYTES])
{
    long   n;
    char  *end;

    if (strcmp(o->max_capacity, "auto") == 0) {
        o->engine.max_capacity = ENGINE_CAPACITY_AUTO;
        return 0;
    }

    errno = 0;
    n = strtol(o->max_capacity, &end, 10);

    if (errno != 0 || end == o->max_capacity || *end != '\0' || n < 0
        || n > ENGINE_CAPACITY_MAX)
    {
        return cmdline_wrong(error, "--max-capacity: \"%.80s\" is not auto or "
                             "an integer from 0 to %d", o->max_capacity,
                             ENGINE_CAPACITY_MAX);
    }

    o->engine.max_capacity = (int32_t) n;

    return 0;
}


/* The first option that only an engine that stands by has. */
static const char *
cmdline_standby_option(const standby_options_t *s)
{
    return s->group != NULL ? "--group"
           : s->lock != NULL ? "--lock"
           : s->wait_for != NULL ? "--wait-for"
           : s->probe_listen != NULL ? "--probe-listen" : NULL;
}


static int
cmdline_check_standby(const cmdline_t *o, char error[CMDLINE_ERROR_BYTES])
{
    const char               *other;
    const standby_options_t  *s;

    s = &o->standby;
    other = cmdline_standby_option(s);

    if (!o->engine.is_standby) {
        return other == NULL ? 0
               : cmdline_wrong(error, "%s needs --standby", other);
    }

    if (s->group == NULL || s->lock == NULL) {
        return cmdline_wrong(error, "--standby needs --group GROUP and --lock "
                             "PATH, the socket of llmgw-lock");
    }

    if (!llmgw_group_is_valid(s->group, strlen(s->group))) {
        return cmdline_wrong(error, "--group: \"%.80s\" is not 1 to 31 of "
                             "letters, digits, \".\", \"_\" and \"-\", the "
                             "first no dot", s->group);
    }

    if (strchr(s->lock, ',') != NULL || !startup_wait_list_is_valid(s->lock)) {
        return cmdline_wrong(error, "--lock: a socket's path has 1 to 107 "
                             "bytes");
    }

    if (s->wait_for != NULL && !startup_wait_list_is_valid(s->wait_for)) {
        return cmdline_wrong(error, "--wait-for: not paths of 1 to 107 bytes "
                             "with commas between them");
    }

    return 0;
}


static int
cmdline_check_tls(cmdline_t *o, char error[CMDLINE_ERROR_BYTES])
{
    char  why[TLS_ERROR_BYTES];

    static const char *const  names[TLS_NFILES] = {
        "--tls-cert", "--tls-key", "--tls-client-ca"
    };

    if (tls_files_check(&o->tls, names, 1, why) != 0) {
        return cmdline_wrong(error, "%s", why);
    }

    if (o->tls_clients != NULL && o->tls.cert == NULL) {
        return cmdline_wrong(error, "--tls-client-name: needs --tls-cert, "
                             "--tls-key and --tls-client-ca");
    }

    o->tls.has_tickets = 1;

    return 0;
}


static int
cmdline_check_weights(cmdline_t *o, char error[CMDLINE_ERROR_BYTES])
{
    uint64_t  waking_timeout_ms;

    o->engine.weights.engine = o->id;
    waking_timeout_ms = o->engine.is_standby ? o->standby.waking_timeout_ms : 0;

    return weights_options_check(&o->engine.weights, waking_timeout_ms, error);
}


int
cmdline_check_services(const cmdline_t *o, size_t files,
    char error[CMDLINE_ERROR_BYTES])
{
    size_t  services;

    if (o->engine.weights.sockets == NULL) {
        return 0;
    }

    services = weights_count(o->engine.weights.sockets);

    return files == services ? 0
           : cmdline_wrong(error, "--weights: %zu sockets for %zu files: each "
                           "file has a service of its own", services, files);
}


/* Checks that the table of options cannot express. */
static int
cmdline_check(cmdline_t *o, const cmdline_program_t *program,
    const engine_kind_t **kind)
{
    char  error[CMDLINE_ERROR_BYTES];

    if (cmdline_check_capacity(o, error) == 0
        && cmdline_check_tls(o, error) == 0
        && cmdline_check_standby(o, error) == 0
        && cmdline_check_weights(o, error) == 0)
    {
        *kind = program->choose(o, error);

        if (*kind != NULL) {
            return 0;
        }
    }

    fprintf(stderr, "%s: %s\n", program->name, error);

    return -1;
}


/* First what all replicas have, then what the program has. */
static void
cmdline_join(cmdline_t *o, const option_t *more)
{
    size_t  n;

    for (n = 0; cmdline_table[n].name != NULL; n++) {
        o->table[n] = cmdline_table[n];
    }

    while (more->name != NULL && n < CMDLINE_OPTIONS_MAX - 1) {
        o->table[n++] = *more++;
    }

    memset(&o->table[n], 0, sizeof(option_t));
}


options_rc_t
cmdline_read(cmdline_t *o, const cmdline_program_t *program, int argc,
    char **argv, const engine_kind_t **kind)
{
    int           rest;
    options_rc_t  rc;

    cmdline_join(o, program->options);
    o->spec.program = program->name;
    o->spec.synopsis = program->synopsis;
    o->spec.summary = program->summary;
    o->spec.table = o->table;

    rc = options_parse(&o->spec, o, argc, argv, 0, &rest);

    if (rc != OPTIONS_DONE) {
        return rc;
    }

    return cmdline_check(o, program, kind) == 0 ? OPTIONS_DONE
                                                : OPTIONS_EUSAGE;
}


void
cmdline_done(cmdline_t *o)
{
    options_done(&o->spec, o);
}
