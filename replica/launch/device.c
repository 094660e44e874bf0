
#include <dlfcn.h>
#include <string.h>

#include "replica/launch/device.h"


/* The library's own types, as its header documents them; 0 is success. */
typedef struct {
    unsigned long long  total;
    unsigned long long  free;
    unsigned long long  used;
} device_nvml_memory_t;

typedef int (*device_init_pt)(void);
typedef int (*device_count_pt)(unsigned *count);
typedef int (*device_handle_pt)(unsigned index, void **device);
typedef int (*device_memory_pt)(void *device, device_nvml_memory_t *memory);


static void *
device_symbol(const devices_t *d, const char *name)
{
    return d->library != NULL ? dlsym(d->library, name) : NULL;
}


/* 0, or -1: unknown. */
static int
device_read(const devices_t *d, int i, device_memory_t *memory)
{
    void                  *device;
    device_handle_pt       handle;
    device_memory_pt       ask;
    device_nvml_memory_t   got;

    handle = (device_handle_pt) device_symbol(
                 d, "nvmlDeviceGetHandleByIndex_v2");
    ask = (device_memory_pt) device_symbol(d, "nvmlDeviceGetMemoryInfo");

    if (handle == NULL || ask == NULL || handle((unsigned) i, &device) != 0
        || ask(device, &got) != 0)
    {
        return -1;
    }

    memory->free_bytes = got.free;
    memory->used_bytes = got.used;

    return 0;
}


void
devices_open(devices_t *d)
{
    unsigned         count;
    device_init_pt   init;
    device_count_pt  tell;

    memset(d, 0, sizeof(*d));
    d->library = dlopen(DEVICE_LIBRARY, RTLD_NOW|RTLD_LOCAL);
    init = (device_init_pt) device_symbol(d, "nvmlInit_v2");
    tell = (device_count_pt) device_symbol(d, "nvmlDeviceGetCount_v2");

    if (init != NULL && tell != NULL && init() == 0 && tell(&count) == 0) {
        d->count = count < DEVICES_MAX ? (int) count : DEVICES_MAX;
    }
}


void
devices_close(devices_t *d)
{
    device_init_pt  end;

    end = (device_init_pt) device_symbol(d, "nvmlShutdown");

    if (end != NULL) {
        (void) end();
    }

    if (d->library != NULL) {
        dlclose(d->library);
    }

    d->library = NULL;
    d->count = 0;
}


int
devices_are_free(devices_t *d, int *lacking, uint64_t *free_bytes)
{
    int              i;
    device_memory_t  memory;

    for (i = 0; i < d->count; i++) {

        if (device_read(d, i, &memory) != 0) {
            d->before[i] = UINT64_MAX;      /* nothing is learnt of it */
            continue;
        }

        if (memory.free_bytes < d->took[i] - d->took[i] / DEVICE_SLACK) {
            *lacking = i;
            *free_bytes = memory.free_bytes;
            return -1;
        }

        d->before[i] = memory.used_bytes;
    }

    return 0;
}


void
devices_measure(devices_t *d)
{
    int              i;
    device_memory_t  memory;

    for (i = 0; i < d->count; i++) {

        if (device_read(d, i, &memory) == 0 && d->before[i] != UINT64_MAX) {
            d->took[i] = memory.used_bytes > d->before[i]
                         ? memory.used_bytes - d->before[i] : 0;
        }
    }
}
