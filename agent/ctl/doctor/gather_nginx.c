
/* nginx's configuration and processes, as this host shows them. */

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ctl/doctor/gather_inner.h"


#define GATHER_CONF_BYTES  (64u << 20)
#define GATHER_LINE_BYTES  8192
#define GATHER_PID_FILE    "/run/nginx.pid"
#define GATHER_MODULE      "ngx_http_llmgw_module"

/*
 * The command has a limit of its own: nginx may look up names of hosts, and
 * wait.
 */
#define GATHER_COMMAND                                                        \
    "PATH=$PATH:/usr/sbin:/usr/local/sbin timeout 10 nginx -T 2>/dev/null"


/*
 * nginx's configuration as it prints it, to be freed; NULL: nginx is not on
 * this host, or this user may not run it.
 */
static char *
gather_conf_of_nginx(size_t *len)
{
    int    status;
    char  *text;
    FILE  *pipe;

    pipe = popen(GATHER_COMMAND, "re");

    if (pipe == NULL) {
        return NULL;
    }

    text = malloc(GATHER_CONF_BYTES + 1);
    *len = text != NULL ? fread(text, 1, GATHER_CONF_BYTES, pipe) : 0;
    status = pclose(pipe);

    if (text == NULL || status != 0) {
        free(text);
        return NULL;
    }

    text[*len] = '\0';

    return text;
}


json_t *
gather_conf(const ctl_t *ctl)
{
    int          is_ours;
    char        *text, error[CONF_ERROR_BYTES];
    size_t       len;
    json_t      *conf;
    const char  *path;

    path = ctl->options.nginx_conf;
    text = path != NULL ? gather_read(path, GATHER_CONF_BYTES, &len)
                        : gather_conf_of_nginx(&len);

    if (text == NULL && path != NULL) {
        return gather_why("%s: %s", path, strerror(errno));
    }

    if (text == NULL) {
        return gather_why("\"nginx -T\" failed: run this as root beside nginx, "
                          "or give --nginx-conf what it prints");
    }

    conf = conf_read(text, path ? path : "nginx -T", error);
    is_ours = strstr(text, "llmgw_") != NULL;
    free(text);

    if (conf != NULL && !is_ours) {
        json_decref(conf);
        return gather_why("nginx's configuration here has nothing of llmgw");
    }

    if (conf == NULL) {
        return gather_why("nginx's configuration cannot be read: %s", error);
    }

    return conf;
}


const char *
gather_path(const json_t *conf, const char *word, char *full)
{
    const char  *at, *slash;

    if (word[0] == '\0' || strpbrk(word, "$:") != NULL) {
        return NULL;
    }

    at = ctl_text(json_array_get(conf, 0), "at");
    slash = word[0] != '/' ? strrchr(at, '/') : NULL;
    snprintf(full, GATHER_PATH_BYTES, "%.*s%s",
             slash != NULL ? (int) (slash - at) + 1 : 0, at, word);

    return full;
}


typedef struct {
    char  *url;
    int    is_h2;
} gather_page_t;


/*
 * The URL for a client on this host, from "80", "[::]:80", "*:80", "127.0.0.1".
 */
static char *
gather_listen_url(const json_t *listen, const char *path)
{
    char         host[256];
    char        *url;
    const char  *word, *port;

    word = listen != NULL ? conf_word(listen, 0) : "80";
    port = strrchr(word, ':');

    if (strncmp(word, "unix:", 5) == 0) {
        return NULL;
    }

    if (port == NULL && strspn(word, "0123456789") == strlen(word)) {
        snprintf(host, sizeof(host), "127.0.0.1:%s", word);

    } else if (strncmp(word, "*:", 2) == 0
               || strncmp(word, "0.0.0.0:", 8) == 0)
    {
        snprintf(host, sizeof(host), "127.0.0.1%s", port);

    } else if (strncmp(word, "[::]:", 5) == 0) {
        snprintf(host, sizeof(host), "[::1]%s", port);

    } else {
        snprintf(host, sizeof(host), "%s", word);
    }

    return asprintf(&url, "http%s://%s%s",
                    conf_has_word(listen, "ssl") ? "s" : "", host, path) != -1
           ? url : NULL;
}


/* Takes the page's location; a port with HTTP/1.1 is preferred. */
static void
gather_page_at(const json_t *directive, const conf_scope_t *scope, void *data)
{
    int             is_h2;
    char           *url;
    size_t          i;
    json_t         *one;
    const char     *path;
    gather_page_t  *page = data;

    if (scope->owner == NULL || scope->up == NULL) {
        return;
    }

    path = conf_word(scope->owner, 0);
    path = path[0] == '/' ? path : conf_word(scope->owner, 1);

    json_array_foreach(scope->up->block, i, one) {

        if (path[0] != '/' || strcmp(ctl_text(one, "name"), "listen") != 0) {
            continue;
        }

        is_h2 = conf_has_word(one, "http2") && !conf_has_word(one, "ssl");

        if (page->url != NULL && (is_h2 || !page->is_h2)) {
            continue;
        }

        url = gather_listen_url(one, path);

        if (url != NULL) {
            free(page->url);
            page->url = url;
            page->is_h2 = is_h2;
        }
    }
}


char *
gather_page_url(const json_t *conf, int *is_h2)
{
    gather_page_t  page = { NULL, 0 };

    conf_walk(conf, "llmgw_status", gather_page_at, &page);
    *is_h2 = page.is_h2;

    return page.url;
}


/* Reads the first line of /proc/PID/NAME that contains a text.  0; or -1 and
   errno (0: there is no such line). */
static int
gather_proc_line(pid_t pid, const char *name, const char *has, char *line)
{
    int    rc;
    char   path[64];
    FILE  *f;

    snprintf(path, sizeof(path), "/proc/%d/%s", (int) pid, name);
    f = fopen(path, "re");

    if (f == NULL) {
        return -1;
    }

    rc = -1;
    errno = 0;

    while (rc != 0 && fgets(line, GATHER_LINE_BYTES, f) != NULL) {
        rc = strstr(line, has) != NULL ? 0 : -1;
    }

    fclose(f);

    return rc;
}


/*
 * Compares the file that the process has mapped with the present file of that
 * name.
 */
static void
gather_module(json_t *worker, pid_t pid)
{
    int           is_other;
    char          line[GATHER_LINE_BYTES], path[GATHER_PATH_BYTES];
    char         *at, *gone;
    unsigned      device[2];
    struct stat   st;
    unsigned long inode;

    if (gather_proc_line(pid, "maps", GATHER_MODULE, line) != 0) {
        if (errno != 0) {
            json_object_set_new(worker, "module_why", json_sprintf(
                "/proc/%d/maps: %s (run this as root)", (int) pid,
                strerror(errno)));
        }

        return;
    }

    at = strchr(line, '/');

    if (at == NULL || sscanf(line, "%*s %*s %*s %x:%x %lu", &device[0],
                             &device[1], &inode) != 3)
    {
        return;
    }

    at[strcspn(at, "\n")] = '\0';
    gone = strstr(at, " (deleted)");

    if (gone != NULL) {
        *gone = '\0';
    }

    snprintf(path, sizeof(path), "/proc/%d/root%s", (int) pid, at);
    is_other = gone != NULL || stat(path, &st) == -1 || st.st_ino != inode;
    json_object_set_new(worker, "module", json_string(at));
    json_object_set_new(worker, "is_other_module", json_boolean(is_other));
}


/* 1: the process is a worker that takes connections. */
static int
gather_is_worker(pid_t pid)
{
    char  line[GATHER_LINE_BYTES];

    return gather_proc_line(pid, "cmdline", "nginx: worker process", line) == 0
           && strstr(line, "shutting down") == NULL;
}


static void
gather_worker(json_t *workers, pid_t pid)
{
    char       line[GATHER_LINE_BYTES];
    long       nofile;
    json_t    *worker;

    worker = json_pack("{s:i}", "pid", (int) pid);

    if (gather_proc_line(pid, "limits", "Max open files", line) == 0
        && sscanf(line, "Max open files %ld", &nofile) == 1)
    {
        json_object_set_new(worker, "nofile", json_integer(nofile));
    }

    gather_module(worker, pid);
    json_array_append_new(workers, worker);
}


/*
 * Finds the master by its pid file, or by a worker that has answered; 0:
 * neither exists.
 */
static pid_t
gather_master(const json_t *facts)
{
    int          pid;
    char        *text, line[GATHER_LINE_BYTES];
    size_t       len;
    const char  *path;

    path = conf_word(conf_child(gather_had(facts, "conf"), "pid"), 0);
    text = gather_read(path[0] != '\0' ? path : GATHER_PID_FILE, 32, &len);
    pid = text != NULL ? atoi(text) : 0;
    free(text);

    if (pid > 0 && gather_proc_line(pid, "cmdline", "nginx: ", line) == 0) {
        return pid;
    }

    pid = (int) ctl_number(gather_had(facts, "page"), "worker_pid");

    return pid > 0 && gather_is_worker(pid)
           && gather_proc_line(pid, "status", "PPid:", line) == 0
           ? atoi(line + strlen("PPid:")) : 0;
}


json_t *
gather_workers(const json_t *facts)
{
    int             pid;
    DIR            *proc;
    char            line[GATHER_LINE_BYTES];
    pid_t           master;
    json_t         *workers;
    struct dirent  *entry;

    master = gather_master(facts);
    proc = master > 0 ? opendir("/proc") : NULL;

    if (proc == NULL) {
        return gather_why("no running nginx was found on this host");
    }

    workers = json_array();

    while ((entry = readdir(proc)) != NULL) {
        pid = atoi(entry->d_name);

        if (pid > 0 && gather_is_worker(pid)
            && gather_proc_line(pid, "status", "PPid:", line) == 0
            && atoi(line + strlen("PPid:")) == master)
        {
            gather_worker(workers, pid);
        }
    }

    closedir(proc);

    if (json_array_size(workers) == 0) {
        json_decref(workers);
        return gather_why("nginx has no workers, or this command may not see "
                          "them");
    }

    return workers;
}
