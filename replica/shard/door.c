
#include <ev.h>
#include <stdio.h>
#include <string.h>

#include "replica/shard/door.h"


/*
 * Lines about refused handshakes, which anybody who reaches the port causes:
 * so many at once, and one a second.
 */
#define SHARD_DOOR_LINES  10


int
shard_door_check(const tls_files_t *files, char *error)
{
    int  n;

    n = (files->cert != NULL) + (files->key != NULL) + (files->ca != NULL);

    if (n != 0 && n != 3) {
        snprintf(error, SHARD_DOOR_ERROR_BYTES, "%s: is missing; "
                 "--shard-tls-cert, --shard-tls-key and --shard-tls-ca go "
                 "together", files->cert == NULL ? "--shard-tls-cert"
                             : files->key == NULL ? "--shard-tls-key"
                             : "--shard-tls-ca");
        return -1;
    }

    return 0;
}


int
shard_door_check_address(const tls_files_t *files, const char *key_file,
    const address_t *address, char *error)
{
    char  text[ADDRESS_TEXT_BYTES];

    if (files->cert != NULL || key_file != NULL
        || address_is_loopback(address))
    {
        return 0;
    }

    address_format(address, text);
    snprintf(error, SHARD_DOOR_ERROR_BYTES, "--listen: \"%s\" is not "
             "loopback, so a shard needs --shard-tls-cert, --shard-tls-key "
             "and --shard-tls-ca, or at least --shard-key FILE", text);

    return -1;
}


static void
shard_door_on_refused(void *data, const address_t *peer, const char *reason)
{
    char           text[ADDRESS_TEXT_BYTES], others[64];
    double         now;
    shard_door_t  *door;

    door = data;
    now = ev_time();
    door->lines += now > door->told_at ? now - door->told_at : 0;
    door->told_at = now;

    if (door->lines > SHARD_DOOR_LINES) {
        door->lines = SHARD_DOOR_LINES;
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
shard_door_open(shard_door_t *door, const tls_files_t *files,
    const log_t *log, char *error)
{
    memset(door, 0, sizeof(shard_door_t));
    door->log = log;
    door->conn.ping_ms = SHARD_PING_MS;
    door->conn.answer_ms = SHARD_PING_MS;

    if (files->cert == NULL) {
        return 0;
    }

    door->tls = tls_open(files, log, error);

    if (door->tls == NULL) {
        return -1;
    }

    door->conn.channel = &tls_channel;
    door->conn.channel_context = door->tls;
    door->conn.on_refused = shard_door_on_refused;
    door->conn.refused_data = door;

    return 0;
}


void
shard_door_close(shard_door_t *door)
{
    tls_close(door->tls);
    door->tls = NULL;
}
