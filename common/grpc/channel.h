
/*
 * What may stand between a connection's socket and its session: encryption.
 *
 * conn.c moves bytes by these functions instead of recv(2) and send(2), and
 * knows nothing else of it; so only a program that asks for TLS
 * (common/tls/tls.h) is linked with a library for it.
 */

#ifndef GRPC_CHANNEL_H
#define GRPC_CHANNEL_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "common/address.h"


typedef enum {
    CHANNEL_DONE = 0,
    CHANNEL_WANTS_READ,         /* call again when the socket is readable */
    CHANNEL_WANTS_WRITE,
    CHANNEL_BROKEN              /* reason() says why */
} channel_rc_t;

typedef struct {
    /*
     * For a socket that is connected and does not block.  It stays the
     * caller's.  names: of grpc_conn_options_t.  NULL: out of memory.
     */
    void *(*open)(void *context, int fd, const address_t *peer,
                  const char *names, int is_server);

    /* Until it is DONE nothing is read or written. */
    channel_rc_t (*handshake)(void *channel);

    /*
     * Like recv(2) and send(2), with as many bytes as there are, or a part of
     * them: 0 is the end of what the peer says, -1 with EAGAIN means later,
     * -1 with another errno is broken.  A write that took less, or nothing, is
     * repeated with the same bytes first.
     */
    ssize_t (*read)(void *channel, uint8_t *buf, size_t capacity);
    ssize_t (*write)(void *channel, const uint8_t *data, size_t len);

    /* The read that said EAGAIN waits for a socket that can be written. */
    int (*read_wants_write)(void *channel);

    /* Nothing more will be written: tells the peer, if the socket takes it. */
    void (*finish)(void *channel);

    /* One line, valid as long as the channel; "": nothing worth a word. */
    const char *(*reason)(void *channel);

    void (*close)(void *channel);
} grpc_channel_t;

#endif /* GRPC_CHANNEL_H */
