
/*
 * An optional layer between a connection's socket and its session: encryption.
 *
 * conn.c moves bytes by these functions instead of recv(2) and send(2), and
 * nothing else; so only a program that uses TLS (common/tls/tls.h) is linked
 * with a library for it.
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
     * them: 0 means the peer's end of stream, -1 with EAGAIN later, -1 with
     * another errno a broken connection.  A write that took less, or nothing,
     * is repeated with the same bytes first.
     */
    ssize_t (*read)(void *channel, uint8_t *buf, size_t capacity);
    ssize_t (*write)(void *channel, const uint8_t *data, size_t len);

    /* 1: the read that returned EAGAIN waits until the socket is writable. */
    int (*read_wants_write)(void *channel);

    /*
     * Nothing more will be written: notifies the peer, if the socket takes
     * that.
     */
    void (*finish)(void *channel);

    /*
     * The reason in one line, valid as long as the channel; "": none worth
     * logging.
     */
    const char *(*reason)(void *channel);

    void (*close)(void *channel);
} grpc_channel_t;

#endif /* GRPC_CHANNEL_H */
