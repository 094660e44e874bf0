
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "state/epoch.h"
#include "common/packet_header.h"
#include "proto/members/members.h"
#include "state/state_file.h"


/*
 * Reads the last epoch.  0 also for a file that is not ours: the clock is above
 * that anyway.
 */
static uint64_t
epoch_read(const char *state_dir, const char *id)
{
    char      text[STATE_FILE_BYTES];
    uint64_t  epoch;

    return state_file_read(state_dir, id, EPOCH_FILE, text) == 1
           && sscanf(text, "%" SCNu64, &epoch) == 1 ? epoch : 0;
}


static int
epoch_write(const char *state_dir, const char *id, uint64_t epoch)
{
    char  text[STATE_FILE_BYTES];

    snprintf(text, sizeof(text), "%" PRIu64, epoch);

    return state_file_write(state_dir, id, EPOCH_FILE, text);
}


epoch_rc_t
epoch_next(const char *state_dir, const char *id, uint64_t wall_us,
    uint64_t *epoch, uint64_t *ahead_us, char *error)
{
    uint64_t  stored, next;

    *ahead_us = 0;

    if (state_dir == NULL) {
        *epoch = wall_us;
        return EPOCH_KEPT;
    }

    stored = epoch_read(state_dir, id);
    next = stored + 1 > wall_us ? stored + 1 : wall_us;

    if (next > wall_us + PACKET_MAX_AHEAD_US) {
        *ahead_us = next - wall_us;
        next = wall_us;
    }

    if (epoch_write(state_dir, id, next) == 0) {
        *epoch = next;
        return EPOCH_KEPT;
    }

    if (!llmgw_disk_refuses(errno)) {
        snprintf(error, EPOCH_ERROR_BYTES,
                 "cannot write epoch in \"%.128s\": %s", state_dir,
                 strerror(errno));
        return EPOCH_REFUSED;
    }

    *epoch = next;

    return EPOCH_UNKEPT;
}
