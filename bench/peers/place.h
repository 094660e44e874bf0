/*
 * Reads HOST:PORT or unix:PATH.  The daemons do not accept the latter, since
 * gossip can only announce addresses of hosts.
 */

#ifndef PLACE_H
#define PLACE_H

#include <string.h>
#include <sys/un.h>

#include "common/address.h"


static inline int
place_parse(const char *text, address_t *address)
{
    struct sockaddr_un  *un;

    if (strncmp(text, "unix:", 5) != 0) {
        return address_parse(text, address);
    }

    memset(address, 0, sizeof(address_t));
    un = (struct sockaddr_un *) &address->ss;
    un->sun_family = AF_UNIX;
    address->len = sizeof(struct sockaddr_un);
    text += 5;

    if (strlen(text) >= sizeof(un->sun_path)) {
        return -1;
    }

    strcpy(un->sun_path, text);

    return 0;
}

#endif /* PLACE_H */
