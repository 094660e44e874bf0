
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "up/host/bound.h"
#include "up/host/tools.h"


#define TOOLS_MODULE     "ngx_http_llmgw_module.so"
#define TOOLS_SBIN       "/usr/local/sbin:/usr/sbin:/sbin:/usr/bin"
#define TOOLS_SAID_BYTES 16384


static int
tools_is_file(const char *path, int mode)
{
    struct stat  st;

    return stat(path, &st) == 0 && S_ISREG(st.st_mode)
           && access(path, mode) == 0;
}


/* Finds a program in directories separated by colons.  1: found. */
static int
tools_in(const char *dirs, const char *name, char path[PATH_MAX])
{
    size_t  len;

    for ( /* void */ ; *dirs != '\0'; dirs += len + (dirs[len] == ':')) {
        len = strcspn(dirs, ":");

        if (len > 0 && snprintf(path, PATH_MAX, "%.*s/%s", (int) len, dirs,
                                name) < PATH_MAX
            && tools_is_file(path, X_OK))
        {
            return 1;
        }
    }

    return 0;
}


/* Sets dir to this program's directory.  0, or -1. */
static int
tools_own_dir(const tools_t *t, char dir[PATH_MAX])
{
    char  *slash;

    strcpy(dir, t->own);
    slash = strrchr(dir, '/');

    if (slash == NULL) {
        return -1;
    }

    *slash = '\0';

    return 0;
}


static int
tools_find_program(const tools_t *t, const char *name, char path[PATH_MAX])
{
    char         dir[PATH_MAX];
    const char  *dirs;

    if (tools_own_dir(t, dir) == 0 && tools_in(dir, name, path)) {
        return 0;
    }

    dirs = getenv("PATH");

    return (dirs != NULL && tools_in(dirs, name, path))
           || tools_in(TOOLS_SBIN, name, path) ? 0 : -1;
}


static int
tools_find_nginx(tools_t *t, const char *given, char error[TOOLS_ERROR_BYTES])
{
    if (given != NULL) {

        if (strchr(given, '/') != NULL && tools_is_file(given, X_OK)
            && realpath(given, t->nginx) != NULL)
        {
            return 0;
        }

        snprintf(error, TOOLS_ERROR_BYTES, "--nginx: \"%s\" is not a program; "
                 "give its path", given);
        return -1;
    }

    if (tools_find_program(t, "nginx", t->nginx) == 0) {
        return 0;
    }

    snprintf(error, TOOLS_ERROR_BYTES, "there is no nginx in PATH or /usr/sbin;"
             " install it (\"apt install nginx\" on Debian), or give its path "
             "with --nginx");

    return -1;
}


/*
 * The value of an argument of nginx's configure, from the output of nginx -V.
 */
static void
tools_configured(const char *said, const char *name, char value[PATH_MAX])
{
    const char  *p;

    p = strstr(said, name);
    value[0] = '\0';

    if (p != NULL) {
        p += strlen(name);
        snprintf(value, PATH_MAX, "%.*s", (int) strcspn(p, " '\n"), p);
    }
}


static int
tools_module_in(tools_t *t, const char *dir, const char *below)
{
    return dir[0] != '\0'
           && snprintf(t->module, PATH_MAX, "%s%s/" TOOLS_MODULE, dir, below)
              < PATH_MAX
           && tools_is_file(t->module, R_OK);
}


static int
tools_find_module(tools_t *t, const char *given,
    char error[TOOLS_ERROR_BYTES])
{
    char         dir[PATH_MAX], modules[PATH_MAX], prefix[PATH_MAX];
    char         said[TOOLS_SAID_BYTES];
    char *const  argv[] = { t->nginx, (char *) "-V", NULL };

    if (given != NULL) {

        if (tools_is_file(given, R_OK) && realpath(given, t->module) != NULL) {
            return 0;
        }

        snprintf(error, TOOLS_ERROR_BYTES, "--module: \"%s\" is not a file",
                 given);
        return -1;
    }

    if (tools_own_dir(t, dir) == 0 && tools_module_in(t, dir, "")) {
        return 0;
    }

    if (bound_ask(argv, said, sizeof(said)) != 0) {
        snprintf(error, TOOLS_ERROR_BYTES, "\"%s -V\" failed: %.200s",
                 t->nginx, said);
        return -1;
    }

    tools_configured(said, "--modules-path=", modules);
    tools_configured(said, "--prefix=", prefix);

    if (tools_module_in(t, modules, "")
        || tools_module_in(t, prefix, "/modules")
        || tools_module_in(t, "/usr/lib/nginx/modules", ""))
    {
        return 0;
    }

    snprintf(error, TOOLS_ERROR_BYTES, "nginx's module " TOOLS_MODULE " is not "
             "beside this program, and not in \"%s\"; give its path with "
             "--module", modules[0] != '\0' ? modules
                                            : "/usr/lib/nginx/modules");

    return -1;
}


int
tools_find(tools_t *tools, const char *nginx, const char *module,
    char error[TOOLS_ERROR_BYTES])
{
    size_t   i;
    ssize_t  n;

    const struct {
        const char  *name;
        char        *path;
    } ours[] = {
        { "llmgw-agent", tools->agent },
        { "llmgw-replica", tools->replica },
        { "llmgwctl", tools->ctl }
    };

    n = readlink("/proc/self/exe", tools->own, PATH_MAX - 1);
    tools->own[n > 0 ? n : 0] = '\0';

    for (i = 0; i < sizeof(ours) / sizeof(ours[0]); i++) {
        if (tools_find_program(tools, ours[i].name, ours[i].path) != 0) {
            snprintf(error, TOOLS_ERROR_BYTES, "%s is neither beside this "
                     "program nor in PATH", ours[i].name);
            return -1;
        }
    }

    return tools_find_nginx(tools, nginx, error) == 0
           ? tools_find_module(tools, module, error) : -1;
}
