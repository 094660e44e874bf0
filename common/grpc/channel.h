
/*
 * An optional layer between a connection's socket and its session: encryption.
 *
 * conn.c calls these functions instead of recv(2) and send(2), and no function
 * of a TLS library; so only a program that uses TLS (common/tls/tls.h) is
 * linked with one.
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
     * Makes a channel for a connected, non-blocking socket, which stays the
     * caller's.  names: as in grpc_conn_options_t.  NULL: out of memory.
     */
    void *(*open)(void *context, int fd, const address_t *peer,
                  const char *names, int is_server);

    /* Until this returns DONE, nothing is read or written. */
    channel_rc_t (*handshake)(void *channel);

    /*
     * Like recv(2) and send(2), for as many bytes as possible: 0 means the
     * peer's end of stream, -1 with EAGAIN means later, -1 with another errno a
     * broken connection.  After a write that took less, or nothing, the next
     * write must begin with the same bytes.
     */
    ssize_t (*read)(void *channel, uint8_t *buf, size_t capacity);
    ssize_t (*write)(void *channel, const uint8_t *data, size_t len);

    /* 1: the read that returned EAGAIN waits until the socket is writable. */
    int (*read_wants_write)(void *channel);

    /*
     * Nothing more will be written: notifies the peer, if the socket has room.
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
