
/*
 * Preloaded into a daemon: a disk that is slow.  While the file that
 * $SLOW_FOPEN names exists, fopen(3) of a model does not return.
 */

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>


FILE *
fopen(const char *path, const char *mode)
{
    size_t            len;
    const char       *gate;
    struct timespec   pause = { 0, 5000000 };

    static FILE *(*next)(const char *path, const char *mode);

    len = strlen(path);
    gate = getenv("SLOW_FOPEN");

    while (gate != NULL && len > 5 && strcmp(path + len - 5, ".gguf") == 0
           && access(gate, F_OK) == 0)
    {
        nanosleep(&pause, NULL);
    }

    if (next == NULL) {
        next = (FILE *(*)(const char *, const char *))
               dlsym(RTLD_NEXT, "fopen");
    }

    return next(path, mode);
}
