
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "common/duration.h"
#include "common/keys/keyring_file.h"
#include "common/os/atomic_file.h"
#include "up/fleet/files.h"
#include "up/host/place.h"


/* A file that is made in memory and written as a whole. */
typedef struct {
    FILE    *out;
    char    *text;
    size_t   len;
} files_draft_t;


void
files_path(char path[PATH_MAX], const char *dir, const char *name,
    const char *suffix)
{
    snprintf(path, PATH_MAX, "%s/%s%s", dir, name, suffix);
}


void
files_log(char path[PATH_MAX], const files_t *files, const char *name,
    const char *suffix)
{
    if (files->logs != NULL) {
        files_path(path, files->logs, name, suffix);

    } else {
        path[0] = '\0';
    }
}


static int
files_begin(files_draft_t *draft, char error[FILES_ERROR_BYTES])
{
    draft->out = open_memstream(&draft->text, &draft->len);

    if (draft->out == NULL) {
        snprintf(error, FILES_ERROR_BYTES, "out of memory");
        return -1;
    }

    return 0;
}


static int
files_end(files_draft_t *draft, const files_t *f, const char *name,
    const char *suffix, char error[FILES_ERROR_BYTES])
{
    int   rc;
    char  path[PATH_MAX];

    files_path(path, f->dir, name, suffix);
    rc = fclose(draft->out) == 0
         && atomic_file_write(path, draft->text, draft->len) == 0 ? 0 : -1;

    if (rc != 0) {
        snprintf(error, FILES_ERROR_BYTES, "file \"%s\": %s", path,
                 strerror(errno));
    }

    free(draft->text);

    return rc;
}


/*
 * Gossip is encrypted even on one host, since any of its users could send
 * datagrams.
 */
int
files_write_keyring(const files_t *files, char error[FILES_ERROR_BYTES])
{
    size_t          i;
    char            path[PATH_MAX], hex[2 * KEYRING_KEY_BYTES + 1];
    char            why[KEYRING_ERROR_BYTES];
    uint8_t         chance[KEYRING_KEY_BYTES];
    keyring_ring_t  ring;

    files_path(path, files->dir, "keyring", "");
    memset(&ring, 0, sizeof(ring));
    why[0] = '\0';
    ring.n = 1;

    if (getrandom(chance, sizeof(chance), 0) != sizeof(chance)) {
        snprintf(error, FILES_ERROR_BYTES, "no random numbers for a keyring: "
                 "%s", strerror(errno));
        return -1;
    }

    for (i = 0; i < sizeof(chance); i++) {
        snprintf(hex + 2 * i, 3, "%02x", chance[i]);
    }

    if (keyring_key_decode(&ring.keys[0], hex) != 0
        || keyring_file_write(&ring, path, why) != 0)
    {
        snprintf(error, FILES_ERROR_BYTES, "keyring \"%s\": %s", path, why);
        return -1;
    }

    explicit_bzero(chance, sizeof(chance));
    explicit_bzero(hex, sizeof(hex));
    explicit_bzero(&ring, sizeof(ring));

    return 0;
}


/* --- nginx */

static void
files_put_upstream(FILE *out, const files_t *f)
{
    fprintf(out,
            "    # All engines, as the agent beside this nginx knows them.\n"
            "    upstream llm {\n"
            "        llmgw_members %s/members;\n"
            "    }\n\n", f->run);
}


static void
files_put_server(FILE *out, const files_t *f)
{
    fprintf(out,
            "    server {\n"
            "        listen %s;\n", f->listen);

    if (f->local != NULL) {
        fprintf(out, "        listen %s;\n", f->local);
    }

    fprintf(out, "        keepalive_requests 1000000;\n");

    if (f->keys != NULL) {
        fprintf(out,
                "\n        # Who may ask: \"llmgwctl keys --file %s list\".\n"
                "        llmgw_keys %s zone=keys:16m;\n", f->keys, f->keys);
    }

    fprintf(out,
            "\n"
            "        location / {\n"
            "            client_max_body_size 63m;\n"
            "            llmgw_openai llm;\n"
            "        }\n"
            "\n"
            "        # For clients of this host alone: docs/directives.md,"
            " llmgw_status.\n"
            "        location = /dashboard { llmgw_dashboard; }\n"
            "        location = /status { llmgw_status; }\n"
            "        location = /metrics { llmgw_metrics; }\n"
            "\n"
            "        # 200 when an engine can serve; for load balancers.\n"
            "        location = /ready { llmgw_ready llm; }\n"
            "    }\n");
}


static void
files_put_main(FILE *out, const files_t *f)
{
    char  drain[24], log[PATH_MAX];

    duration_format(drain, f->drain_timeout_ms);
    files_log(log, f, "nginx", ".log");
    fprintf(out,
            "# Written by \"llmgw up\" at each start: changes here are lost.\n"
            "# \"llmgw up --print DIR\" writes one to keep.\n"
            "\n"
            "load_module %s;\n"
            "daemon off;\n", f->module);

    if (f->user != NULL) {
        fprintf(out, "user %s;\n", f->user);
    }

    fprintf(out,
            "worker_processes auto;\n"
            "worker_shutdown_timeout %s;\n"
            "pid %s/nginx.pid;\n"
            "error_log %s notice;\n"
            "\n"
            "events {\n"
            "    worker_connections %u;\n"
            "}\n"
            "\n", drain, f->run, log[0] != '\0' ? log : "stderr",
            f->connections);
}


int
files_write_nginx(const files_t *files, char error[FILES_ERROR_BYTES])
{
    size_t         i;
    files_draft_t  draft;

    static const char *const  kinds[] = {
        "client_body", "proxy", "fastcgi", "uwsgi", "scgi"
    };

    if (files_begin(&draft, error) != 0) {
        return -1;
    }

    files_put_main(draft.out, files);
    fprintf(draft.out, "http {\n    access_log off;\n");

    for (i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        fprintf(draft.out, "    %s_temp_path %s/%s;\n", kinds[i], files->run,
                kinds[i]);
    }

    fprintf(draft.out, "\n");
    files_put_upstream(draft.out, files);
    files_put_server(draft.out, files);
    fprintf(draft.out, "}\n");

    return files_end(&draft, files, "nginx", ".conf", error);
}


int
files_write_snippet(const files_t *files, char error[FILES_ERROR_BYTES])
{
    files_draft_t  draft;

    if (files_begin(&draft, error) != 0) {
        return -1;
    }

    fprintf(draft.out,
            "    # For /etc/nginx/conf.d.  The module is loaded by its package"
            " (/etc/nginx/\n"
            "    # modules-enabled), or else by a line at the beginning of"
            " nginx.conf:\n"
            "    #     load_module %s;\n\n", files->module);
    files_put_upstream(draft.out, files);
    files_put_server(draft.out, files);

    return files_end(&draft, files, "llmgw-nginx", ".conf", error);
}


/* --- agents and adapters: files for -c */

static void
files_put_member(FILE *out, const files_t *f, const char *id,
    const char *role, unsigned port)
{
    char  drain[24];

    duration_format(drain, f->drain_timeout_ms);
    fprintf(out,
            "id             %s\n"
            "role           %s\n"
            "cluster        " FILES_CLUSTER "\n"
            "gossip         %s:%u\n"
            "control        %s/%s.sock\n"
            "keyring        %s/keyring\n"
            "drain-timeout  %s\n", id, role, f->host, port, f->run, id,
            f->etc, drain);
}


int
files_write_agent(const files_t *files, char error[FILES_ERROR_BYTES])
{
    files_draft_t  draft;

    if (files_begin(&draft, error) != 0) {
        return -1;
    }

    fprintf(draft.out, "# llmgw-agent: the agent beside nginx.\n\n");
    files_put_member(draft.out, files, FILES_GATEWAY, "gateway",
                     PLACE_GOSSIP_PORT);
    fprintf(draft.out, "members        %s/members\n", files->run);

    return files_end(&draft, files, FILES_GATEWAY, ".conf", error);
}


static void
files_put_engine(FILE *out, const files_t *f, const files_engine_t *e)
{
    char  stop[24];

    switch (e->kind) {

    case SOURCE_SIM:
        fprintf(out,
                "engine         sim\n"
                "model          sim\n"
                "token-delay    30ms\n"
                "max-capacity   32\n");
        return;

    case SOURCE_EXEC:
        fprintf(out,
                "engine         auto\n"
                "engine-command %s\n", e->target);

        if (f->stop_timeout_ms != 0) {
            duration_format(stop, f->stop_timeout_ms);
            fprintf(out, "engine-stop-timeout %s\n", stop);
        }

        break;

    default:
        fprintf(out,
                "engine         auto\n"
                "engine-url     %s\n", e->target);
    }

    if (f->engine_key != NULL) {
        fprintf(out, "engine-key-file %s\n", f->engine_key);
    }
}


static int
files_write_adapter(const files_t *f, const files_engine_t *e,
    char error[FILES_ERROR_BYTES])
{
    char           drain[24];
    files_draft_t  draft;

    if (files_begin(&draft, error) != 0) {
        return -1;
    }

    duration_format(drain, f->drain_timeout_ms);
    fprintf(draft.out,
            "# llmgw-replica: what nginx asks instead of the engine.\n"
            "\n"
            "id             %s\n"
            "listen         %s:%u\n"
            "agent          %s/%s.sock\n"
            "drain-timeout  %s\n", e->id, f->host, PLACE_GRPC_PORT + e->slot,
            f->run, e->id, drain);
    files_put_engine(draft.out, f, e);

    return files_end(&draft, f, e->id, "-adapter.conf", error);
}


static int
files_write_sidecar(const files_t *f, const files_engine_t *e,
    const char *suffix, char error[FILES_ERROR_BYTES])
{
    files_draft_t  draft;

    if (files_begin(&draft, error) != 0) {
        return -1;
    }

    fprintf(draft.out, "# llmgw-agent: beside the adapter of this name.\n\n");
    files_put_member(draft.out, f, e->id, "replica",
                     PLACE_GOSSIP_PORT + 1 + e->slot);
    fprintf(draft.out,
            "grpc           %s:%u\n"
            "join           %s:%u\n", f->host, PLACE_GRPC_PORT + e->slot,
            f->host, PLACE_GOSSIP_PORT);

    return files_end(&draft, f, e->id, suffix, error);
}


int
files_write_engine(const files_t *files, const files_engine_t *engine,
    char error[FILES_ERROR_BYTES])
{
    return files_write_adapter(files, engine, error) == 0
           ? files_write_sidecar(files, engine, "-agent.conf", error) : -1;
}


int
files_write_unit(const files_t *files, const files_engine_t *engine,
    char error[FILES_ERROR_BYTES])
{
    files_draft_t  draft;

    if (files_write_adapter(files, engine, error) != 0
        || files_write_sidecar(files, engine, ".conf", error) != 0
        || files_begin(&draft, error) != 0)
    {
        return -1;
    }

    fprintf(draft.out,
            "# Read by llmgw-agent@%s.service: what its agent runs.\n"
            "LLMGW_COMMAND=-- llmgw-replica -c %s/%s-adapter.conf\n",
            engine->id, files->etc, engine->id);

    return files_end(&draft, files, engine->id, ".env", error);
}


void
files_remove_engine(const files_t *files, const char *id)
{
    size_t  i;
    char    path[PATH_MAX];

    static const char *const  suffixes[] = { "-adapter.conf", "-agent.conf" };

    for (i = 0; i < sizeof(suffixes) / sizeof(suffixes[0]); i++) {
        files_path(path, files->dir, id, suffixes[i]);
        (void) unlink(path);
    }
}
