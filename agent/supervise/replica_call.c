
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/grpc/asker.h"
#include "supervise/replica_call.h"


#define REPLICA_CALL_MAX_MESSAGE_BYTES  4096

struct replica_call_s {
    asker_t                asker;
    ev_timer               pause;       /* between tries */
    address_t              source;      /* a loopback address */
    grpc_conn_options_t    options;
    replica_call_verb_t    verb;
    unsigned               tries;       /* tries left; 0: no call is under
                                           way */
    replica_call_done_pt   on_done;
    void                  *data;
};

static const char *const  replica_call_paths[] = {
    "/llmgateway.LLMReplica/Drain",
    "/llmgateway.LLMReplica/Undrain"
};


static void
replica_call_end(replica_call_t *call, int status, const char *message)
{
    replica_call_drop(call);
    call->on_done(call->data, call->verb, status, message);
}


/*
 * A try has ended without an answer; if there is a next one, it follows after a
 * pause.
 */
static void
replica_call_failed(replica_call_t *call, const char *reason)
{
    asker_drop(&call->asker);

    if (--call->tries == 0) {
        replica_call_end(call, -1, reason);
        return;
    }

    ev_timer_set(&call->pause, REPLICA_CALL_PAUSE_S, 0.);
    ev_timer_start(call->asker.loop, &call->pause);
}


static void
replica_call_heard(void *data, asker_end_t end, int status, const char *text)
{
    replica_call_t  *call = data;

    if (end == ASKER_ANSWERED) {
        replica_call_end(call, status, text);

    } else {
        replica_call_failed(call, text);
    }
}


static const asker_use_t  replica_call_use = {
    .max_message_bytes = REPLICA_CALL_MAX_MESSAGE_BYTES,
    .on_end = replica_call_heard
};


/* The address to call from; NULL: the kernel chooses. */
static const address_t *
replica_call_source(const replica_call_t *call)
{
    return (REPLICA_CALL_TRIES - call->tries) % 2 == 0 ? &call->source : NULL;
}


/* DrainRequest and UndrainRequest are empty. */
static void
replica_call_try(replica_call_t *call)
{
    asker_question_t  question = {
        .path = replica_call_paths[call->verb],
        .authority = "localhost",
        .limit_ms = REPLICA_CALL_TIMEOUT_MS
    };

    call->options.source = replica_call_source(call);

    if (asker_connect(&call->asker, &call->options, REPLICA_CALL_TIMEOUT_MS)
            != 0
        || asker_ask(&call->asker, &question) != 0)
    {
        replica_call_failed(call, strerror(errno));
    }
}


static void
replica_call_due(struct ev_loop *loop, ev_timer *pause, int events)
{
    replica_call_try(pause->data);
}


void
replica_call_say(replica_call_t *call, replica_call_verb_t verb)
{
    replica_call_drop(call);
    call->verb = verb;
    call->tries = REPLICA_CALL_TRIES;
    replica_call_try(call);
}


void
replica_call_drop(replica_call_t *call)
{
    call->tries = 0;
    ev_timer_stop(call->asker.loop, &call->pause);
    asker_drop(&call->asker);
}


replica_call_t *
replica_call_create(struct ev_loop *loop, const address_t *address,
    const grpc_conn_options_t *options, replica_call_done_pt on_done,
    void *data)
{
    replica_call_t  *call;

    call = calloc(1, sizeof(replica_call_t));
    if (call == NULL) {
        return NULL;
    }

    asker_init(&call->asker, loop, address, &replica_call_use, call);
    address_parse(address->ss.ss_family == AF_INET6 ? "[::1]:1"
                                                    : "127.0.0.1:1",
                  &call->source);
    address_set_port(&call->source, 0);
    call->options = *options;
    call->on_done = on_done;
    call->data = data;

    ev_init(&call->pause, replica_call_due);
    call->pause.data = call;

    return call;
}


void
replica_call_destroy(replica_call_t *call)
{
    replica_call_drop(call);
    free(call);
}
