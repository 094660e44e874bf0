
/*
 * The programs that are started, and nginx's module: where they are.
 */

#ifndef TOOLS_H
#define TOOLS_H

#include <limits.h>


#define TOOLS_ERROR_BYTES  (PATH_MAX + 512)

typedef struct {
    char  own[PATH_MAX];        /* this program */
    char  nginx[PATH_MAX];
    char  module[PATH_MAX];
    char  agent[PATH_MAX];
    char  replica[PATH_MAX];
    char  ctl[PATH_MAX];
} tools_t;


/*
 * Finds our own programs beside this one, else in PATH or the directories of
 * daemons; nginx in PATH or those directories; the module beside this program,
 * or where nginx has its modules.  nginx and module are paths that were given;
 * NULL: to be found.  0; or -1 and a reason that tells which option to give.
 */
int tools_find(tools_t *tools, const char *nginx, const char *module,
    char error[TOOLS_ERROR_BYTES]);

#endif /* TOOLS_H */
