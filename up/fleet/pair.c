
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "up/fleet/pair.h"


/*
 * Added to the time for streams: for the adapter's goodbye and the agent's
 * leave.
 */
#define PAIR_ADAPTER_S  2.0
#define PAIR_ENGINE_S   5.0     /* for an engine that the adapter started */
#define PAIR_AGENT_S    3.0
#define PAIR_HURRIED_S  1.0

/*
 * Rounds of questions after which a ready engine is shown as it is known then.
 */
#define PAIR_ROUNDS     3


static void
pair_on_adapter_gone(void *data, program_t *program)
{
    pair_t  *p;

    p = data;
    p->state = PAIR_LEAVING;
    program_stop(&p->agent, PAIR_AGENT_S);
}


static void
pair_on_agent_gone(void *data, program_t *program)
{
    pair_t  *p;

    p = data;
    p->on_gone(p->data, p);
}


/* Sets argv, which pair_done() frees.  0, or -1: no memory. */
static int
pair_set_argv(program_t *program, const char *tool, const pair_t *p,
    const char *suffix)
{
    char  path[PATH_MAX];

    files_path(path, p->files->dir, p->id, suffix);
    program->argv[0] = strdup(tool);
    program->argv[1] = strdup("-c");
    program->argv[2] = strdup(path);

    return program->argv[0] != NULL && program->argv[1] != NULL
           && program->argv[2] != NULL ? 0 : -1;
}


static int
pair_init_program(pair_t *p, program_t *program, const char *tool,
    const char *what, program_gone_pt on_gone)
{
    char  suffix[32];

    program_init(program, p->loop, on_gone, p);
    program->end_signal = SIGTERM;
    snprintf(program->name, sizeof(program->name), "%s %s", p->id, what);
    snprintf(suffix, sizeof(suffix), "-%s.log", what);
    files_log(program->log, p->files, p->id, suffix);
    snprintf(suffix, sizeof(suffix), "-%s.conf", what);

    return pair_set_argv(program, tool, p, suffix);
}


static const char *
pair_word(const json_t *member, const char *name)
{
    const char  *word;

    word = json_string_value(json_object_get(member, name));

    return word != NULL ? word : "";
}


/*
 * Reads the detail from the engine's own agent; gossip has only what routing
 * needs.
 */
static void
pair_see_own(void *data, const json_t *members)
{
    size_t   i;
    pair_t  *p;
    json_t  *member;

    p = data;

    json_array_foreach(members, i, member) {
        if (strcmp(pair_word(member, "id"), p->id) == 0) {
            snprintf(p->detail, sizeof(p->detail), "%s",
                     pair_word(member, "detail"));
        }
    }
}


int
pair_begin(pair_t *pair, struct ev_loop *loop, const files_t *files,
    const tools_t *tools, const char *key, char error[FILES_ERROR_BYTES])
{
    char            path[PATH_MAX];
    files_engine_t  engine = {
        pair->id, pair->kind, pair->target, pair->slot
    };

    pair->loop = loop;
    pair->files = files;
    pair->began_at = ev_now(loop);
    pair->said_at = pair->began_at;

    if (files_write_engine(files, &engine, error) != 0) {
        return -1;
    }

    if (pair_init_program(pair, &pair->adapter, tools->replica, "adapter",
                          pair_on_adapter_gone) != 0
        || pair_init_program(pair, &pair->agent, tools->agent, "agent",
                             pair_on_agent_gone) != 0
        || ((pair->kind == SOURCE_HTTP || pair->kind == SOURCE_DNS)
            && probe_init(&pair->probe, loop, pair->target, key,
                          files->engine_key) != 0))
    {
        snprintf(error, FILES_ERROR_BYTES, "out of memory");
        return -1;
    }

    program_start(&pair->agent);
    program_start(&pair->adapter);

    if (pair->kind == SOURCE_EXEC) {
        files_path(path, files->run, pair->id, ".sock");
        members_init(&pair->own, loop, path, pair_see_own, pair);
    }

    return 0;
}


void
pair_retire(pair_t *pair, int is_hurried)
{
    double  drain_s;

    drain_s = (double) pair->files->drain_timeout_ms / 1000;

    if (pair->state == PAIR_LIVE) {
        pair->state = PAIR_DRAINING;
        probe_done(&pair->probe);
        program_stop(&pair->adapter, drain_s + (pair->kind == SOURCE_EXEC
                                              ? PAIR_ENGINE_S
                                              : PAIR_ADAPTER_S));
    }

    if (is_hurried) {
        program_stop(pair->state == PAIR_DRAINING ? &pair->adapter
                                                : &pair->agent,
                   PAIR_HURRIED_S);
    }
}


static void
pair_done_program(program_t *program)
{
    size_t  i;

    program_done(program);

    for (i = 0; program->argv[i] != NULL; i++) {
        free(program->argv[i]);
    }
}


void
pair_done(pair_t *pair)
{
    if (pair->own.loop != NULL) {
        members_done(&pair->own);
    }

    probe_done(&pair->probe);
    pair_done_program(&pair->adapter);
    pair_done_program(&pair->agent);
    files_remove_engine(pair->files, pair->id);
}


/* --- what is known of the engine */

static void
pair_see_member(pair_seen_t *seen, const json_t *member)
{
    const char  *model;

    model = json_string_value(json_array_get(json_object_get(member, "models"),
                                             0));
    seen->is_listed = 1;
    snprintf(seen->service, sizeof(seen->service), "%s",
             pair_word(member, "service"));
    snprintf(seen->model, sizeof(seen->model), "%s",
             model != NULL ? model : "");
    seen->is_ready = strcmp(seen->service, "READY") == 0
                     && strcmp(pair_word(member, "state"), "ALIVE") == 0
                     && !json_is_true(json_object_get(member, "draining"));
    seen->capacity = json_integer_value(json_object_get(member,
                                                        "max_capacity"));
    seen->active = json_integer_value(json_object_get(member,
                                                      "active_requests"));
}


void
pair_see(pair_t *pair, const json_t *members)
{
    int      was_ready;
    size_t   i;
    json_t  *member;

    was_ready = pair->seen.is_ready;
    memset(&pair->seen, 0, sizeof(pair->seen));

    json_array_foreach(members, i, member) {
        if (strcmp(pair_word(member, "id"), pair->id) == 0) {
            pair_see_member(&pair->seen, member);
        }
    }

    if (was_ready && !pair->seen.is_ready && pair->state == PAIR_LIVE) {
        probe_again(&pair->probe);
    }
}


int
pair_is_ready(const pair_t *pair)
{
    return pair->state == PAIR_LIVE && pair->seen.is_ready
           && !pair->probe.is_locked
           && (pair->probe.answer.client == NULL || pair->probe.is_known
               || pair->probe.rounds >= PAIR_ROUNDS);
}


/* "ready: vllm 0.11.0, model qwen, context 40960, 256 places" */
static void
pair_text_ready(const pair_t *p, char *text, size_t bytes)
{
    int          n;
    char         name[DIALECT_VERSION_BYTES + 32];
    const char  *comma;

    probe_name(&p->probe, name, sizeof(name));

    if (name[0] == '\0') {
        snprintf(name, sizeof(name), "%s", p->kind == SOURCE_SIM ? "simulated"
                 : p->kind == SOURCE_EXEC ? "started here" : "");
    }

    n = snprintf(text, bytes, "ready: %s", name);
    comma = name[0] != '\0' ? ", " : "";

    if (p->seen.model[0] != '\0') {
        n += snprintf(text + n, bytes - (size_t) n, "%smodel %s", comma,
                      p->seen.model);
        comma = ", ";
    }

    if (p->probe.is_known && p->probe.facts.context != 0) {
        n += snprintf(text + n, bytes - (size_t) n, "%scontext %u tokens",
                      comma, p->probe.facts.context);
        comma = ", ";
    }

    if (p->seen.capacity > 0) {
        n += snprintf(text + n, bytes - (size_t) n, "%s%d places", comma,
                      (int) p->seen.capacity);
    }

    if (p->probe.is_known && p->probe.is_mute) {
        snprintf(text + n, bytes - (size_t) n, "; it has no metrics, so a hang "
                 "is noticed later: start it with --metrics, if it has that "
                 "option");
    }
}


/* The process that is broken; NULL: both run. */
static const program_t *
pair_broken(const pair_t *p)
{
    return program_is_broken(&p->adapter) ? &p->adapter
           : program_is_broken(&p->agent) ? &p->agent : NULL;
}


void
pair_text(const pair_t *pair, char *text, size_t bytes)
{
    const program_t  *broken;

    broken = pair_broken(pair);

    if (pair->state != PAIR_LIVE) {
        snprintf(text, bytes, pair->state == PAIR_DRAINING
                 ? "draining: %d streams run" : "leaving",
                 (int) pair->seen.active);

    } else if (broken != NULL) {
        snprintf(text, bytes, "%s ended and is started again: %s",
                 broken->name + strlen(pair->id) + 1, broken->why);

    } else if (pair_is_ready(pair)) {
        pair_text_ready(pair, text, bytes);

    } else if (pair->probe.why[0] != '\0') {
        snprintf(text, bytes, "waiting: %s", pair->probe.why);

    } else if (pair->detail[0] != '\0') {
        snprintf(text, bytes, "%s; its output is in %s", pair->detail,
                 program_log_name(&pair->adapter));

    } else if (strcmp(pair->seen.service, "STALLED") == 0) {
        snprintf(text, bytes, "hangs: its streams make no progress");

    } else if (pair->kind == SOURCE_EXEC && pair->seen.is_listed) {
        snprintf(text, bytes, "its engine starts; its output is in %s",
                 program_log_name(&pair->adapter));

    } else if (strcmp(pair->seen.service, "DOWN") == 0) {
        snprintf(text, bytes, "down");

    } else {
        snprintf(text, bytes, PAIR_STARTING);
    }
}
