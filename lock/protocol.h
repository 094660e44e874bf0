
/*
 * The lines of the lock service: docs/lock-protocol.md has them all.
 */

#ifndef LOCK_PROTOCOL_H
#define LOCK_PROTOCOL_H

#include <stddef.h>

#include <jansson.h>

#include "lock/machine.h"


#define PROTOCOL_LINE_BYTES   4096      /* ten times a command */
#define PROTOCOL_ERROR_BYTES  256

typedef enum {
    PROTOCOL_ACQUIRE = 0,
    PROTOCOL_TAKE,
    PROTOCOL_WORKER,
    PROTOCOL_PONG,
    PROTOCOL_PING,
    PROTOCOL_RELEASE,
    PROTOCOL_STATUS
} protocol_verb_t;

typedef struct {
    protocol_verb_t       verb;
    machine_claim_t       claim;        /* acquire; without the process */
    uint64_t              epoch;        /* take */
    uint64_t              seq;          /* ping, pong */
    uint64_t              pid;          /* worker: its pid in its own
                                           namespace */
    llmgw_group_state_t   state;        /* pong, all that follow */
    uint64_t              progress;
    uint64_t              streams;
} protocol_command_t;


/* NULL, or the reason of a refusal, with a text for people in error
   (PROTOCOL_ERROR_BYTES). */
const char *protocol_decode(protocol_command_t *command, const char *line,
    size_t len, char *error);

/* The answer to `status`; id: of the service's instance, 16 hex. */
json_t *protocol_status(const machine_t *m, const char *id);

#endif /* LOCK_PROTOCOL_H */
