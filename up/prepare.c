
/*
 * Checks everything that can be checked before a process runs, so that a fault
 * is one line and not a process that is started again and again.
 */

#include <errno.h>
#include <jansson.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/keys/key.h"
#include "common/listener.h"
#include "common/os/descriptors.h"
#include "up/host/bound.h"
#include "up/up.h"


#define PREPARE_SAID_BYTES   8192
#define PREPARE_KEYS         "keys"
#define PREPARE_ACCOUNT      "default"

/* Connections of nginx's worker, if it may have enough descriptors: one per
   connection, and PREPARE_SPARE more. */
#define PREPARE_CONNECTIONS  8192
#define PREPARE_SPARE        64

/* How long an engine that is started here may take to end.  With what follows,
   all processes have ended 5 s after the drain, even if this process is
   killed. */
#define PREPARE_STOP_MS      3000

/* Where an installation has what `llmgw up` keeps in its directories. */
#define PREPARE_ETC          "/etc/llmgw"
#define PREPARE_RUN          "/run/llmgw"
#define PREPARE_HOST         "127.0.0.1"

/* The user of root's nginx workers, if it exists; key files have its group
   (llmgwctl keys). */
#define PREPARE_USER         "www-data"


static int
prepare_fail(const char *error)
{
    fprintf(stderr, "llmgw up: %s\n", error);

    return -1;
}


/* --- the address */

static void
prepare_set_url(char url[UP_BASE_BYTES], const address_t *address)
{
    strcpy(url, "http://");
    address_format(address, url + strlen(url));
}


/*
 * A wildcard address includes the loopback address.  For other addresses there
 * is a second socket, since pages for operators are served only to clients of
 * this host.
 */
static int
prepare_resolve(up_t *up)
{
    int        is_six;
    char       error[256], reason[128];
    address_t  local;

    if (address_resolve(up->options->listen, &up->address, reason) != 0) {
        snprintf(error, sizeof(error), "--listen: %s", reason);
        return prepare_fail(error);
    }

    address_format(&up->address, up->listen);
    prepare_set_url(up->base, &up->address);
    strcpy(up->pages, up->base);

    if (address_is_loopback(&up->address)) {
        return 0;
    }

    is_six = address_is_wildcard(&up->address)
             && up->address.ss.ss_family == AF_INET6;
    (void) address_parse(is_six ? "[::1]:1" : "127.0.0.1:1", &local);
    address_set_port(&local, address_port(&up->address));
    prepare_set_url(up->pages, &local);

    if (address_is_wildcard(&up->address)) {
        strcpy(up->base, up->pages);

    } else {
        up->local_address = local;
        address_format(&local, up->local);
    }

    return 0;
}


static int
prepare_check_address(const address_t *address)
{
    int   fd, failed;
    char  error[256], text[ADDRESS_TEXT_BYTES];

    fd = listener_socket(address);
    failed = fd == -1 || listen(fd, 1) != 0 ? errno : 0;
    address_format(address, text);

    if (fd != -1) {
        close(fd);
    }

    switch (failed) {

    case 0:
        return 0;

    case EADDRINUSE:
        snprintf(error, sizeof(error), "%s is in use: end what listens there, "
                 "or give another address with --listen", text);
        break;

    case EACCES:
        snprintf(error, sizeof(error), "%s: this user may not listen there; "
                 "give a port from 1024 on with --listen", text);
        break;

    default:
        snprintf(error, sizeof(error), "--listen: %s: %s", text,
                 strerror(failed));
    }

    return prepare_fail(error);
}


static int
prepare_check_listen(const up_t *up)
{
    return prepare_check_address(&up->address) == 0
           && (up->local[0] == '\0'
               || prepare_check_address(&up->local_address) == 0) ? 0 : -1;
}


/* --- keys */

static int
prepare_find_file(const char *option, const char *given, char path[PATH_MAX])
{
    char  error[PATH_MAX + 128];

    if (realpath(given, path) != NULL && access(path, R_OK) == 0) {
        return 0;
    }

    snprintf(error, sizeof(error), "%s: \"%s\": %s", option, given,
             strerror(errno));

    return prepare_fail(error);
}


/* Makes a key with llmgwctl, as people do. */
static int
prepare_make_key(up_t *up)
{
    char          said[PREPARE_SAID_BYTES];
    char          error[PATH_MAX + PREPARE_SAID_BYTES];
    json_t       *answer;
    const char   *key;
    char *const   argv[] = {
        up->tools.ctl, (char *) "--json", (char *) "keys", (char *) "add",
        (char *) PREPARE_ACCOUNT, (char *) "--file", up->keys, NULL
    };

    if (bound_ask(argv, said, sizeof(said)) != 0) {
        snprintf(error, sizeof(error), "no key was made in \"%s\": %.*s",
                 up->keys, (int) strcspn(said, "\n"), said);
        return prepare_fail(error);
    }

    answer = json_loads(said, 0, NULL);
    key = json_string_value(json_object_get(answer, "key"));
    snprintf(up->new_key, sizeof(up->new_key), "%s", key != NULL ? key : "");
    explicit_bzero(said, sizeof(said));
    json_decref(answer);

    return 0;
}


/*
 * Decides which clients may send requests: with keys, those that have one; else
 * all, which is the case on a loopback address or with --open.
 */
static int
prepare_keys(up_t *up)
{
    const cmdline_t  *o;

    o = up->options;

    if (o->keys != NULL) {
        return prepare_find_file("--keys", o->keys, up->keys);
    }

    if (o->is_open || address_is_loopback(&up->address)) {
        return 0;
    }

    files_path(up->keys, up->place.dir, PREPARE_KEYS, "");

    return access(up->keys, F_OK) == 0 ? 0 : prepare_make_key(up);
}


static int
prepare_engine_key(up_t *up)
{
    char         error[KEY_ERROR_BYTES];
    const char  *file;

    file = up->options->engine_key_file;

    if (file == NULL) {
        return 0;
    }

    if (prepare_find_file("--engine-key-file", file, up->engine_key_file)
        != 0)
    {
        return -1;
    }

    return key_read(up->engine_key_file, up->engine_key, error) == 0
           ? 0 : prepare_fail(error);
}


/* --- files */

static unsigned
prepare_connections(void)
{
    struct rlimit  limit;

    descriptors_raise();

    if (getrlimit(RLIMIT_NOFILE, &limit) != 0
        || limit.rlim_cur > PREPARE_CONNECTIONS + PREPARE_SPARE)
    {
        return PREPARE_CONNECTIONS;
    }

    return limit.rlim_cur > 2 * PREPARE_SPARE
           ? (unsigned) limit.rlim_cur - PREPARE_SPARE : PREPARE_SPARE;
}


static void
prepare_set_files(up_t *up)
{
    files_t  *f;

    f = &up->files;
    f->dir = up->place.dir;
    f->etc = up->place.dir;
    f->run = up->place.run;
    f->logs = up->options->is_log_stderr ? NULL : up->place.dir;
    f->host = up->place.host;
    f->listen = up->listen;
    f->local = up->local[0] != '\0' ? up->local : NULL;
    f->keys = up->keys[0] != '\0' ? up->keys : NULL;
    f->engine_key = up->engine_key_file[0] != '\0' ? up->engine_key_file
                                                   : NULL;
    f->module = up->tools.module;
    f->user = geteuid() == 0 && getpwnam(PREPARE_USER) != NULL ? PREPARE_USER
                                                               : NULL;
    f->connections = prepare_connections();
    f->drain_timeout_ms = up->options->drain_timeout_ms;
    f->stop_timeout_ms = PREPARE_STOP_MS;
}


/*
 * Tests the configuration; the first line that nginx -t prints is the reason.
 */
static int
prepare_test_nginx(up_t *up)
{
    char         said[PREPARE_SAID_BYTES], error[PREPARE_SAID_BYTES + 512];
    char         conf[PATH_MAX], log[PATH_MAX];
    char *const  argv[] = {
        up->tools.nginx, (char *) "-t", (char *) "-q", (char *) "-p",
        up->place.dir, (char *) "-e", log, (char *) "-c", conf, NULL
    };

    files_path(conf, up->place.dir, "nginx", ".conf");
    files_log(log, &up->files, "nginx", ".log");

    if (log[0] == '\0') {
        strcpy(log, "stderr");
    }

    if (bound_ask(argv, said, sizeof(said)) == 0) {
        return 0;
    }

    said[strcspn(said, "\n")] = '\0';
    snprintf(error, sizeof(error), "nginx refuses its configuration, "
             "\"%.1000s\": %.2000s", conf, said);

    return prepare_fail(error);
}


int
prepare(up_t *up)
{
    char              error[UP_ERROR_BYTES];
    const cmdline_t  *o;

    o = up->options;

    if (tools_find(&up->tools, o->nginx, o->module, error) != 0) {
        return prepare_fail(error);
    }

    if (prepare_resolve(up) != 0) {
        return -1;
    }

    if (place_find(&up->place, o->dir, up->listen, error) != 0
        || place_take(&up->place, error) != 0)
    {
        return prepare_fail(error);
    }

    if (prepare_check_listen(up) != 0 || prepare_keys(up) != 0
        || prepare_engine_key(up) != 0)
    {
        return -1;
    }

    prepare_set_files(up);

    if (files_write_keyring(&up->files, error) != 0
        || files_write_nginx(&up->files, error) != 0
        || files_write_agent(&up->files, error) != 0)
    {
        return prepare_fail(error);
    }

    return prepare_test_nginx(up);
}


/* --- for an installation */

static int
prepare_print_source(up_t *up, const char *word, unsigned slot)
{
    char            id[SOURCE_ID_BYTES], error[SOURCE_ERROR_BYTES + PATH_MAX];
    source_t        source;
    files_engine_t  engine = { id, SOURCE_HTTP, source.target, slot };

    if (source_read(&source, word, error) != 0) {
        return prepare_fail(error);
    }

    if (source.kind == SOURCE_DNS) {
        return prepare_fail("--print: of a name there is nothing to write: "
                            "its addresses change; give URLs");
    }

    source_id(source.target, id);
    engine.kind = source.kind;

    if (files_write_unit(&up->files, &engine, error) != 0) {
        return prepare_fail(error);
    }

    printf("    systemctl enable --now llmgw-agent@%s\n", id);

    return 0;
}


static void
prepare_print_begin(const up_t *up)
{
    printf("Written to %s; to install it:\n\n"
           "    install -d " PREPARE_ETC "\n"
           "    install -m 640 -g llmgw %s/*.conf %s/*.env " PREPARE_ETC "\n"
           "    install -m 600 -o llmgw %s/keyring " PREPARE_ETC "\n"
           "    nginx -T 2>&1 | grep -q '^ *load_module.*ngx_http_llmgw_module'"
           " ||\n"
           "        sed -i '1i load_module %s;' /etc/nginx/nginx.conf\n"
           "    mv " PREPARE_ETC "/llmgw-nginx.conf /etc/nginx/conf.d/\n"
           "    systemctl enable --now llmgw-agent@" FILES_GATEWAY "\n",
           up->place.dir, up->place.dir, up->place.dir, up->place.dir,
           up->tools.module);
}


int
prepare_print(up_t *up)
{
    int               i;
    char              error[UP_ERROR_BYTES];
    const cmdline_t  *o;

    o = up->options;

    if (tools_find(&up->tools, o->nginx, o->module, error) != 0
        || prepare_resolve(up) != 0)
    {
        return prepare_fail(error);
    }

    if (place_find(&up->place, o->print, up->listen, error) != 0) {
        return prepare_fail(error);
    }

    prepare_set_files(up);
    up->files.etc = PREPARE_ETC;
    up->files.run = PREPARE_RUN;
    up->files.host = PREPARE_HOST;
    up->files.user = NULL;
    up->files.stop_timeout_ms = 0;
    up->files.engine_key = o->engine_key_file;
    up->files.keys = o->keys != NULL || o->is_open
                     || address_is_loopback(&up->address)
                     ? o->keys : PREPARE_ETC "/" PREPARE_KEYS;

    if (files_write_keyring(&up->files, error) != 0
        || files_write_snippet(&up->files, error) != 0
        || files_write_agent(&up->files, error) != 0)
    {
        return prepare_fail(error);
    }

    prepare_print_begin(up);

    if (up->files.keys != NULL && o->keys == NULL) {
        printf("    llmgwctl keys add NAME\n");
    }

    for (i = 0; i < o->nwords; i++) {
        if (prepare_print_source(up, o->words[i], (unsigned) i) != 0) {
            return -1;
        }
    }

    printf("    nginx -t && systemctl reload nginx\n\n"
           "The units are of the packages, or of \"make install\".\n");

    return 0;
}
