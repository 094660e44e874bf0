
/*
 * Preloaded into nginx: while the file that $FAILING_MALLOC names exists,
 * allocations of half a megabyte or more fail.
 */

#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>


#define LARGE  (512 * 1024)

static char  while_there[4096];     /* nginx clears its environment */


__attribute__((constructor)) static void
remember(void)
{
    const char  *path;

    path = getenv("FAILING_MALLOC");
    snprintf(while_there, sizeof(while_there), "%s", path ? path : "");
}


void *
malloc(size_t size)
{
    static void  *(*real)(size_t);

    if (real == NULL) {
        real = (void *(*)(size_t)) dlsym(RTLD_NEXT, "malloc");
    }

    if (size >= LARGE && while_there[0] && access(while_there, F_OK) == 0) {
        errno = ENOMEM;
        return NULL;
    }

    return real(size);
}
