
#include <ev.h>
#include <stdio.h>
#include <string.h>

#include "common/tls/door.h"


#define TLS_DOOR_LINES  10


static void
tls_door_on_refused(void *data, const address_t *peer, const char *reason)
{
    char         text[ADDRESS_TEXT_BYTES], others[64];
    double       now;
    tls_door_t  *door;

    door = data;
    now = ev_time();
    door->lines += now > door->told_at ? now - door->told_at : 0;
    door->told_at = now;

    if (door->lines > TLS_DOOR_LINES) {
        door->lines = TLS_DOOR_LINES;
    }

    if (door->lines < 1) {
        door->untold++;
        return;
    }

    door->lines--;
    others[0] = '\0';

    if (door->untold > 0) {
        snprintf(others, sizeof(others), ", and %u before it", door->untold);
    }

    address_format(peer, text);
    log_write(door->log, LOG_WARN, "a connection from %s was refused%s: %s",
              text, others, reason);
    door->untold = 0;
}


int
tls_door_open(tls_door_t *door, const tls_files_t *files, const log_t *log,
    char *error)
{
    memset(door, 0, sizeof(tls_door_t));
    door->log = log;
    door->conn.on_refused = tls_door_on_refused;
    door->conn.refused_data = door;

    if (files->ca == NULL) {
        return 0;
    }

    door->tls = tls_open(files, log, error);

    if (door->tls == NULL) {
        return -1;
    }

    door->conn.channel = &tls_channel;
    door->conn.channel_context = door->tls;

    return 0;
}


void
tls_door_close(tls_door_t *door)
{
    tls_close(door->tls);
    door->tls = NULL;
}
