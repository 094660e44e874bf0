
#include <stdio.h>
#include <string.h>

#include "sim/gateway/gateway.h"


int
gateway_serve(const char *file, const fleet_config_t *fleet, work_t *work,
    const fleet_watch_t *watch, fleet_result_t *result, char *error,
    size_t bytes)
{
    int                rc;
    work_arena_t       arena;
    work_error_t       wrong;
    gateway_config_t   config;
    gateway_counts_t   counts;

    if (file == NULL) {
        return fleet_run(fleet, work, watch, result, error, bytes);
    }

    memset(&arena, 0, sizeof(arena));
    gateway_config_init(&config);
    rc = gateway_config_read(&config, file, fleet->replicas, &arena, &wrong);

    if (rc != 0) {
        (void) snprintf(error, bytes, "%s", wrong.text);

    } else {
        rc = gateway_run(fleet, &config, work, watch, result, &counts, error,
                         bytes);
    }

    work_arena_done(&arena);

    return rc;
}
