
/*
 * In place of libnvidia-ml.so.1: one device, whose memory is the directory
 * $NVML_BUDGET (t/llmgw/engine/budget.py).
 */

#include <ctype.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>


typedef struct {
    unsigned long long  total;
    unsigned long long  free;
    unsigned long long  used;
} nvml_memory_t;


static int
lives(const char *pid)
{
    char   path[64], state;
    FILE  *f;

    snprintf(path, sizeof(path), "/proc/%.20s/stat", pid);
    f = fopen(path, "re");

    if (f == NULL) {
        return 0;
    }

    if (fscanf(f, "%*d %*[^)]) %c", &state) != 1) {
        state = 'X';
    }

    fclose(f);

    return state != 'Z' && state != 'X';
}


static unsigned long long
number(const char *dir, const char *name)
{
    char                 path[512];
    FILE                *f;
    unsigned long long   value;

    snprintf(path, sizeof(path), "%s/%s", dir, name);
    f = fopen(path, "re");

    if (f == NULL) {
        return 0;
    }

    if (fscanf(f, "%llu", &value) != 1) {
        value = 0;
    }

    fclose(f);

    return value;
}


int
nvmlInit_v2(void)
{
    return getenv("NVML_BUDGET") != NULL ? 0 : 1;
}


int
nvmlShutdown(void)
{
    return 0;
}


int
nvmlDeviceGetCount_v2(unsigned *count)
{
    *count = 1;

    return 0;
}


int
nvmlDeviceGetHandleByIndex_v2(unsigned index, void **device)
{
    *device = getenv("NVML_BUDGET");

    return index != 0;
}


int
nvmlDeviceGetMemoryInfo(void *device, nvml_memory_t *memory)
{
    int             is_late;
    DIR            *dir;
    char            path[512];
    struct dirent  *entry;

    snprintf(path, sizeof(path), "%s/late", (char *) device);
    is_late = access(path, F_OK) == 0;
    memory->total = number(device, "total");
    memory->used = 0;
    dir = opendir(device);

    while (dir != NULL && (entry = readdir(dir)) != NULL) {

        if (isdigit((unsigned char) entry->d_name[0])
            && (is_late || lives(entry->d_name)))
        {
            memory->used += number(device, entry->d_name);
        }
    }

    if (dir != NULL) {
        closedir(dir);
    }

    memory->free = memory->used < memory->total ? memory->total - memory->used
                                                : 0;
    return 0;
}
