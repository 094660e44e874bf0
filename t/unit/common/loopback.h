
/*
 * Addresses for this process alone.  All of 127/8 is loopback, and the pid is
 * a part of the address: no other test listens there, neither before this one
 * listens nor when it has stopped.
 */

#ifndef LOOPBACK_H
#define LOOPBACK_H

#include <stdio.h>
#include <unistd.h>


#define LOOPBACK_BYTES  24


/* "127.1.2.3:80"; valid until the next call.  A pid has at most 22 bits. */
static inline const char *
loopback(unsigned port)
{
    unsigned     pid;
    static char  text[LOOPBACK_BYTES];

    pid = (unsigned) getpid();
    snprintf(text, sizeof(text), "127.%u.%u.%u:%u", 1 + (pid >> 16),
             pid >> 8 & 255, pid & 255, port);

    return text;
}

#endif /* LOOPBACK_H */
