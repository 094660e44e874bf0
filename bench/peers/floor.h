
/*
 * What floor.c (connections, the loop) and floor_relay.c (streams) share.
 */

#ifndef FLOOR_H
#define FLOOR_H

#include <nghttp2/nghttp2.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>


#define FIELDS         32
#define FIELDS_BYTES   4096
#define UPSTREAMS      64

typedef struct floor_s  floor_t;
typedef struct conn_s   conn_t;

typedef struct {
    uint8_t  *data;
    size_t    start;
    size_t    end;
    size_t    capacity;
    int       is_ended;         /* no more bytes will be added */
    int       is_deferred;      /* nghttp2 waits for more bytes */
} pipe_t;

/* A header block that is being received. */
typedef struct {
    size_t      n;
    size_t      used;
    nghttp2_nv  nv[FIELDS];
    uint8_t     bytes[FIELDS_BYTES];
} block_t;

typedef struct {
    conn_t   *down;             /* NULL: that side is closed */
    conn_t   *up;
    int32_t   down_id;
    int32_t   up_id;
    pipe_t    to_up;
    pipe_t    to_down;
    block_t  *trailers;
    int       is_answered;
} relay_t;

struct conn_s {
    floor_t          *floor;
    nghttp2_session  *h2;
    conn_t           *next_dirty;
    uint8_t          *rest;     /* output that the socket did not accept */
    size_t            rest_start;
    size_t            rest_end;
    int               fd;
    int               is_up;
    int               is_dirty;
    int               is_connecting;
    int               is_dead;
    uint16_t          port;
    block_t           block;
};

struct floor_s {
    int        epoll;
    int        listener;
    size_t     nup;
    size_t     turn;
    uint16_t   ports[UPSTREAMS];
    conn_t    *up[UPSTREAMS];
    conn_t    *dirty;
};


static inline void *
must(void *p)
{
    if (p == NULL) {
        perror("floor");
        exit(1);
    }

    return p;
}


static inline void
touch(conn_t *c)
{
    if (!c->is_dirty) {
        c->is_dirty = 1;
        c->next_dirty = c->floor->dirty;
        c->floor->dirty = c;
    }
}


/* floor.c: connects to an upstream; exits the process on failure. */
conn_t *floor_connect(floor_t *floor, size_t i);

/* floor_relay.c */
void floor_callbacks(nghttp2_session_callbacks *callbacks);
int floor_on_close(nghttp2_session *h2, int32_t id, uint32_t error,
    void *data);

#endif /* FLOOR_H */
