
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "epoch.h"
#include "packet.h"


/* 0, also for a file that is none of ours: the clock is above it anyway. */
static uint64_t
epoch_read(const char *path)
{
    FILE      *file;
    uint64_t   epoch;

    file = fopen(path, "re");
    if (file == NULL) {
        return 0;
    }

    if (fscanf(file, "%" SCNu64, &epoch) != 1) {
        epoch = 0;
    }

    fclose(file);

    return epoch;
}


static int
epoch_write(const char *path, uint64_t epoch)
{
    int    rc;
    char   temporary[PATH_MAX + 8];
    FILE  *file;

    snprintf(temporary, sizeof(temporary), "%s.new", path);

    file = fopen(temporary, "we");
    if (file == NULL) {
        return -1;
    }

    rc = fprintf(file, "%" PRIu64 "\n", epoch) < 0 || fflush(file) != 0
         || fsync(fileno(file)) != 0 ? -1 : 0;

    if (fclose(file) != 0 || rc != 0) {
        unlink(temporary);
        return -1;
    }

    return rename(temporary, path);
}


int
epoch_next(const char *state_dir, const char *id, uint64_t wall_us,
    uint64_t *epoch, char *error)
{
    int       n;
    char      path[PATH_MAX];
    uint64_t  stored, next;

    if (state_dir == NULL) {
        *epoch = wall_us;
        return 0;
    }

    n = snprintf(path, sizeof(path), "%s/%s.epoch", state_dir, id);

    if (n >= (int) sizeof(path)) {
        snprintf(error, EPOCH_ERROR_BYTES, "state directory: name too long");
        return -1;
    }

    stored = epoch_read(path);
    next = stored + 1 > wall_us ? stored + 1 : wall_us;

    /* All others would refuse it, in silence. */
    if (next > wall_us + PACKET_MAX_AHEAD_US) {
        snprintf(error, EPOCH_ERROR_BYTES,
                 "epoch in \"%.128s\" is more than a day ahead of the clock: "
                 "set the clock, or remove the file", path);
        return -1;
    }

    if (epoch_write(path, next) != 0) {
        snprintf(error, EPOCH_ERROR_BYTES,
                 "cannot write epoch in \"%.128s\": %s", state_dir,
                 strerror(errno));
        return -1;
    }

    *epoch = next;

    return 0;
}
