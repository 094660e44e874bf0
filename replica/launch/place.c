
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/address.h"
#include "common/child/words.h"
#include "replica/launch/place.h"


#define PLACE_HOST  "127.0.0.1"


/* The port `wanted` if it is free, else another port that is free at this
   moment.  0: there is none. */
static unsigned
place_free_port(unsigned wanted)
{
    int        fd, one, rc;
    address_t  address;

    one = 1;
    (void) address_parse(PLACE_HOST ":1", &address);
    address_set_port(&address, wanted);
    fd = socket(AF_INET, SOCK_STREAM|SOCK_CLOEXEC, 0);

    if (fd == -1) {
        return 0;
    }

    (void) setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
    rc = bind(fd, (struct sockaddr *) &address.ss, address.len) == 0
         ? getsockname(fd, (struct sockaddr *) &address.ss, &address.len) : -1;
    close(fd);

    if (rc != 0) {
        return wanted != 0 ? place_free_port(0) : 0;
    }

    return address_port(&address);
}


int
place_check(const char *command, char error[PLACE_ERROR_BYTES])
{
    int     has_port, has_socket;
    char    why[WORDS_ERROR_BYTES];
    char  **words;

    words = words_split(command, why);

    if (words == NULL) {
        snprintf(error, PLACE_ERROR_BYTES, "--engine-command: %s", why);
        return -1;
    }

    has_port = words_have(words, PLACE_PORT);
    has_socket = words_have(words, PLACE_SOCKET);
    words_destroy(words);

    if (has_port == has_socket) {
        snprintf(error, PLACE_ERROR_BYTES, "--engine-command: write "
                 PLACE_PORT " where it says the port to listen on, or "
                 PLACE_SOCKET " for a unix socket%s",
                 has_port ? ", and not both" : "");
        return -1;
    }

    return 0;
}


int
place_open(place_t *p, const char *command, const folder_t *folder,
    char error[PLACE_ERROR_BYTES])
{
    p->words = words_split(command, error);

    if (p->words == NULL) {
        return -1;
    }

    if (words_have(p->words, PLACE_SOCKET)) {
        strcpy(p->url, "http://localhost");
        p->socket[0] = '/';             /* marks that there is a socket */
    }

    return place_renew(p, folder, error) < 0 ? -1 : 0;
}


void
place_close(place_t *p)
{
    words_destroy(p->words);
    p->words = NULL;
}


int
place_renew(place_t *p, const folder_t *folder, char error[PLACE_ERROR_BYTES])
{
    unsigned  port;

    if (p->socket[0] != '\0') {

        if (folder_socket(folder, p->socket) != 0) {
            snprintf(error, PLACE_ERROR_BYTES, "\"%.100s\" is too long for a "
                     "socket: use " PLACE_PORT, folder->path);
            return -1;
        }

        return 0;
    }

    port = place_free_port(p->port);

    if (port == 0) {
        snprintf(error, PLACE_ERROR_BYTES, "no free port on " PLACE_HOST);
        return -1;
    }

    if (port == p->port) {
        return 0;
    }

    p->port = port;
    snprintf(p->url, sizeof(p->url), "http://" PLACE_HOST ":%u", port);

    return 1;
}


char **
place_words(const place_t *p)
{
    char     port[16];
    char   **placed, **words;

    snprintf(port, sizeof(port), "%u", p->port);
    placed = words_fill(p->words, PLACE_PORT, port);

    if (placed == NULL) {
        return NULL;
    }

    words = words_fill(placed, PLACE_SOCKET, p->socket);
    words_destroy(placed);

    return words;
}
