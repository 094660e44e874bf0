
/*
 * Asks a replica over gRPC, on a connection of its own: one question at a time,
 * and each question ends in one of these ways:
 *
 *            asker_ask()          its status
 *     idle -------------> asked --------------> ANSWERED   connection stands
 *                           |    RST_STREAM
 *                           |-----------------> RESET      connection stands
 *                           |    limit_ms
 *                           |-----------------> SILENT     we have closed it
 *                           |    refused, broken, closed
 *                           '-----------------> BROKEN     it is gone
 *
 * BROKEN is reported for an idle connection, too: after an answer the
 * connection is kept until asker_drop(), and its end is an event by itself.
 *
 * Ends come from the loop, never from within a call of these functions.  An
 * asker lies within its user; its callbacks may do anything to it, even free
 * its memory: it is not touched after them.
 */

#ifndef ASKER_H
#define ASKER_H

#include <ev.h>
#include <protobuf-c/protobuf-c.h>

#include "common/grpc/conn.h"


typedef enum {
    ASKER_ANSWERED = 0,
    ASKER_RESET,
    ASKER_SILENT,
    ASKER_BROKEN
} asker_end_t;

/* Settings that all questions of a user share. */
typedef struct {
    size_t    max_message_bytes;    /* 0: a session's default */

    /* A message of the answer.  NULL: only the status is of interest. */
    void    (*on_message)(void *data, const uint8_t *message, size_t len);

    /*
     * The question has ended.  status: only for ANSWERED.  text: the status's
     * message, or what went wrong.
     */
    void    (*on_end)(void *data, asker_end_t end, int status,
                      const char *text);
} asker_use_t;

typedef struct {
    const char              *path;
    const char              *authority;
    const ProtobufCMessage  *message;       /* NULL: an empty one */
    uint64_t                 limit_ms;      /* includes connecting; 0: none */
    uint64_t                 deadline_ms;   /* grpc-timeout to send; 0: none */
} asker_question_t;

typedef struct {
    struct ev_loop       *loop;
    ev_timer              limit;
    uint64_t              limit_ms;         /* of the question under way */
    address_t             address;
    const asker_use_t    *use;
    void                 *data;
    grpc_conn_t          *conn;             /* NULL: none */
    llmgw_grpc_stream_t  *stream;           /* of the question; NULL: none */
} asker_t;


/* `use` must outlive the asker; data is passed to its callbacks. */
void asker_init(asker_t *asker, struct ev_loop *loop,
    const address_t *address, const asker_use_t *use, void *data);

/*
 * Begins to connect if there is no connection, with these options (NULL: none),
 * which are copied.  0, or -1 and errno.
 */
int asker_connect(asker_t *asker, const grpc_conn_options_t *options,
    uint64_t timeout_ms);

/*
 * Asks, on a connection made by asker_connect(), when no other question is
 * under way.  0; or -1 and errno: nothing was asked, and the connection is
 * unchanged.
 */
int asker_ask(asker_t *asker, const asker_question_t *question);

/*
 * Sends the only message of a call (NULL: an empty one), on any connection.  0;
 * or -1: no memory, or the stream has ended.
 */
int asker_send(llmgw_grpc_stream_t *stream, const ProtobufCMessage *message);

int asker_is_asked(const asker_t *asker);

/* Closes the connection; no end is reported after this.  Idempotent. */
void asker_drop(asker_t *asker);

#endif /* ASKER_H */
