
#include <stdlib.h>
#include <string.h>

#include "common/grpc/asker.h"
#include "supervise/health.h"
#include "health.pb-c.h"


/*
 * A replica that reports does so within 200 ms of the agent's start; before
 * that, no health check counts.
 */
#define HEALTH_FIRST_S            0.3
#define HEALTH_INTERVAL_S         1.0
#define HEALTH_SILENT_TICKS       3       /* ticks without an answer */
#define HEALTH_CONNECT_MS         1000
#define HEALTH_MAX_MESSAGE_BYTES  4096

typedef Grpc__Health__V1__HealthCheckResponse  health_response_t;

struct health_s {
    asker_t               asker;
    grpc_conn_options_t   options;
    ev_timer              timer;
    int                   is_waiting;   /* for the answer to a question, */
    int                   waited_ticks; /* for this many ticks since the first
                                           one */
    int                   has_answered; /* there was an answer on this
                                           connection */
    int                   is_serving;   /* from the answer's message */
    health_verdict_pt     on_verdict;
    void                 *data;
};


static void
health_message(void *data, const uint8_t *message, size_t len)
{
    health_t           *health = data;
    health_response_t  *response;

    response = grpc__health__v1__health_check_response__unpack(NULL, len,
                                                               message);
    if (response == NULL) {
        return;
    }

    health->is_serving = response->status
        == GRPC__HEALTH__V1__HEALTH_CHECK_RESPONSE__SERVING_STATUS__SERVING;

    grpc__health__v1__health_check_response__free_unpacked(response, NULL);
}


static void
health_answered(health_t *health, int status)
{
    health->has_answered = 1;
    health->is_waiting = 0;

    if (status == LLMGW_GRPC_UNIMPLEMENTED
        || (status == LLMGW_GRPC_OK && health->is_serving))
    {
        health->on_verdict(health->data, HEALTH_SERVING, NULL);

    } else {
        health->on_verdict(health->data, HEALTH_NOT_SERVING, NULL);
    }
}


static int
health_connect(health_t *health)
{
    health->has_answered = 0;

    return asker_connect(&health->asker, &health->options, HEALTH_CONNECT_MS);
}


/*
 * The connection broke.  As health.h says, a replica that had answered is
 * connected to again before it counts as gone.  The new connection waits for
 * the next question.
 */
static void
health_broken(health_t *health, const char *why)
{
    health->is_waiting = 0;

    if (health->has_answered && health_connect(health) == 0) {
        return;
    }

    health->on_verdict(health->data, HEALTH_GONE, why);
}


/* A question that was reset has no answer, and is asked again. */
static void
health_end(void *data, asker_end_t end, int status, const char *text)
{
    if (end == ASKER_ANSWERED) {
        health_answered(data, status);

    } else if (end == ASKER_BROKEN) {
        health_broken(data, text);
    }
}


static const asker_use_t  health_use = {
    .max_message_bytes = HEALTH_MAX_MESSAGE_BYTES,
    .on_message = health_message,
    .on_end = health_end
};


/*
 * Asks for "", the server as a whole, by an empty HealthCheckRequest.  The
 * question has no limit of its own: silence is measured over several questions.
 */
static void
health_ask(health_t *health)
{
    static const asker_question_t  question = {
        .path = "/grpc.health.v1.Health/Check",
        .authority = "localhost"
    };

    health->is_serving = 0;

    if (asker_ask(&health->asker, &question) == 0 && !health->is_waiting) {
        health->is_waiting = 1;
        health->waited_ticks = 0;
    }
}


static void
health_tick(struct ev_loop *loop, ev_timer *timer, int events)
{
    health_t  *health = timer->data;

    if (health->is_waiting && ++health->waited_ticks == HEALTH_SILENT_TICKS) {
        asker_drop(&health->asker);
        health->is_waiting = 0;
        health->on_verdict(health->data, HEALTH_SILENT, NULL);
        return;
    }

    if (health->asker.conn == NULL && health_connect(health) != 0) {
        return;
    }

    if (!asker_is_asked(&health->asker)) {
        health_ask(health);
    }
}


health_t *
health_create(struct ev_loop *loop, const address_t *address,
    const grpc_conn_options_t *options, health_verdict_pt on_verdict,
    void *data)
{
    health_t  *health;

    health = calloc(1, sizeof(health_t));
    if (health == NULL) {
        return NULL;
    }

    asker_init(&health->asker, loop, address, &health_use, health);
    health->options = *options;
    health->on_verdict = on_verdict;
    health->data = data;

    ev_timer_init(&health->timer, health_tick, HEALTH_FIRST_S,
                  HEALTH_INTERVAL_S);
    health->timer.data = health;
    ev_timer_start(loop, &health->timer);

    return health;
}


void
health_destroy(health_t *health)
{
    ev_timer_stop(health->asker.loop, &health->timer);
    asker_drop(&health->asker);
    free(health);
}
