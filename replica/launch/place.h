
/*
 * The address of an engine that is started here, and its command with that
 * address: a port of this host that is free, or a socket in the engine's
 * folder, which no other user can open.
 */

#ifndef PLACE_H
#define PLACE_H

#include "replica/launch/folder.h"


/* Marks in a command, which place_words() replaces. */
#define PLACE_PORT    "{port}"
#define PLACE_SOCKET  "{socket}"

#define PLACE_URL_BYTES    64
#define PLACE_ERROR_BYTES  256

typedef struct {
    char      **words;                      /* of the command */
    unsigned    port;                       /* 0: the engine listens on the
                                               socket */
    char        url[PLACE_URL_BYTES];
    char        socket[FOLDER_SOCKET_BYTES];    /* "": the engine listens on the
                                                   port */
} place_t;


/* Checks a command: 0, or -1 and a reason. */
int place_check(const char *command, char error[PLACE_ERROR_BYTES]);

/* 0, or -1 and a reason. */
int place_open(place_t *place, const char *command, const folder_t *folder,
    char error[PLACE_ERROR_BYTES]);
void place_close(place_t *place);

/*
 * To be called before each start: takes another port if the last one is in use,
 * and removes the socket that the last engine has left.  0; 1: the URL has
 * changed; -1 and a reason.
 */
int place_renew(place_t *place, const folder_t *folder,
    char error[PLACE_ERROR_BYTES]);

/* The command for this start, for words_destroy(); NULL: out of memory. */
char **place_words(const place_t *place);

#endif /* PLACE_H */
