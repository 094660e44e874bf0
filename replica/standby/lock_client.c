
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#include "common/packet_header.h"
#include "replica/standby/lock_client.h"


#define LOCK_CLIENT_TICK_S  1.0
#define LOCK_CLIENT_SILENT  3       /* unanswered PINGs until a log line */

/* Interval at which a successor is looked for.  It is not looked for at once:
   if a whole host shuts down, its standby is told to end at the same moment. */
#define LOCK_CLIENT_SEEK_S  0.1


/* For log lines: what the engine does without the service. */
static const char *
lock_client_meanwhile(const lock_client_t *c)
{
    return c->session.epoch != 0 ? "still serving, retrying" : "retrying";
}


static void
lock_client_fine(lock_client_t *c)
{
    if (redial_fine(&c->service)) {
        log_write(c->log, LOG_INFO, "standby: lock service \"%s\" is there",
                  c->path);
    }
}


static void
lock_client_on_lost(void *data, const char *why)
{
    lock_client_t  *c;

    c = data;
    redial_again(&c->service, why, lock_client_meanwhile(c));
    lock_session_lost(&c->session);
    c->callbacks->on_queue(c->data, 0);
}


/* --- messages to the service */

/* Sends a message, and frees it.  fd: -1 for none. */
static void
lock_client_say(lock_client_t *c, json_t *message, int fd)
{
    if (redial_send(&c->service, message, fd) != 0) {
        c->callbacks->on_fatal(c->data, "out of memory");
    }
}


/* Checks the lock file: an engine that could not use a grant does not wait for
   one. */
static int
lock_client_check_file(lock_client_t *c)
{
    char  error[KEY_FILE_ERROR_BYTES], text[KEY_FILE_ERROR_BYTES + 64];

    if (key_file_check(&c->file, error) == 0) {
        return 0;
    }

    snprintf(text, sizeof(text), "no lock can be taken: %s", error);
    c->callbacks->on_fatal(c->data, text);

    return -1;
}


static void
lock_client_acquire(lock_client_t *c)
{
    if (c->session.epoch == 0 && lock_client_check_file(c) != 0) {
        return;
    }

    lock_client_say(c,
        json_pack("{s:s, s:s, s:s, s:s, s:I, s:I, s:I}",
                  "cmd", "acquire", "group", c->group, "engine", c->engine,
                  "nonce", c->nonce,
                  "last_epoch", (json_int_t) c->session.last_epoch,
                  "epoch", (json_int_t) c->session.epoch,
                  "waking_timeout_ms", (json_int_t) c->waking_timeout_ms),
        -1);
}


/* Checks again and sends TAKE: the file may have been made since the last
   check. */
static void
lock_client_take(lock_client_t *c)
{
    if (lock_client_check_file(c) != 0) {
        return;
    }

    lock_client_say(c, json_pack("{s:s, s:I}", "cmd", "take", "epoch",
                                 (json_int_t) c->session.offered), -1);
}


static void
lock_client_say_worker(lock_client_t *c, const lock_client_worker_t *worker)
{
    lock_client_say(c, json_pack("{s:s, s:I}", "cmd", "worker", "pid",
                                 (json_int_t) worker->pid), worker->fd);
}


static void
lock_client_pong(lock_client_t *c, json_int_t seq)
{
    life_vitals_t         vitals;
    llmgw_group_state_t   state;

    c->callbacks->look(c->data, &state, &vitals);
    lock_client_say(c,
        json_pack("{s:s, s:I, s:s, s:I, s:I}", "cmd", "pong", "seq", seq,
                  "state", llmgw_group_state_name(state),
                  "progress", (json_int_t) vitals.progress,
                  "streams", (json_int_t) vitals.streams), -1);
}


/* --- messages from the service */

/* The service has granted the group: locks the file, and then the grant is
   valid. */
static void
lock_client_begin(lock_client_t *c)
{
    char  error[KEY_FILE_ERROR_BYTES], text[KEY_FILE_ERROR_BYTES + 64];

    if (key_file_take(&c->file, error) != 0) {
        snprintf(text, sizeof(text), "granted epoch %llu, but its lock file "
                 "cannot be locked: %s",
                 (unsigned long long) c->session.epoch, error);
        c->callbacks->on_fatal(c->data, text);
        return;
    }

    c->callbacks->on_granted(c->data, c->session.epoch, c->session.lock);
}


static void
lock_client_go_on(lock_client_t *c)
{
    int  i;

    lock_client_fine(c);
    log_write(c->log, LOG_INFO, "standby: epoch %llu was granted again",
              (unsigned long long) c->session.epoch);
    c->callbacks->on_regranted(c->data, c->session.lock);

    for (i = 0; i < c->nworkers; i++) {
        lock_client_say_worker(c, &c->workers[i]);
    }
}


static void
lock_client_refused(lock_client_t *c, const char *reason, const char *why)
{
    char  text[LOCK_CLIENT_REASON_BYTES];

    snprintf(text, sizeof(text), "the lock service \"%.80s\" refuses group "
             "\"%s\": %s%s%.80s", c->path, c->group, reason,
             why != NULL ? ", " : "", why != NULL ? why : "");
    c->callbacks->on_fatal(c->data, text);
}


static void
lock_client_act(lock_client_t *c, lock_session_act_t act, const char *what,
    const char *why)
{
    switch (act) {

    case LOCK_SESSION_TAKE:
        lock_client_take(c);
        break;

    case LOCK_SESSION_BEGIN:
        lock_client_begin(c);
        break;

    case LOCK_SESSION_GO_ON:
        lock_client_go_on(c);
        break;

    case LOCK_SESSION_RETRY:
        lock_client_on_lost(c, what);
        break;

    case LOCK_SESSION_REFUSED:
        lock_client_refused(c, what, why);
        break;

    default:
        break;
    }
}


static void
lock_client_queued(lock_client_t *c, uint64_t epoch)
{
    lock_session_act_t  act;

    act = lock_session_queued(&c->session, epoch);

    if (act == LOCK_SESSION_NOTHING) {
        lock_client_fine(c);
        c->callbacks->on_queue(c->data, 1);
    }

    lock_client_act(c, act, "it forgot the holder", NULL);
}


static void
lock_client_registered(lock_client_t *c, json_int_t pid)
{
    int                    i;
    lock_client_worker_t  *worker;

    for (i = 0; i < c->nworkers; i++) {
        worker = &c->workers[i];

        if (worker->pid == pid && !worker->is_registered) {
            worker->is_registered = 1;
            c->callbacks->on_registered(c->data, worker->pid);
        }
    }
}


static uint64_t
lock_client_number(const json_t *message, const char *name)
{
    json_int_t  n;

    n = json_integer_value(json_object_get(message, name));

    return n > 0 ? (uint64_t) n : 0;
}


static uint64_t
lock_client_instance(const json_t *message)
{
    const char  *text;

    text = json_string_value(json_object_get(message, "lock"));

    return text != NULL ? strtoull(text, NULL, 16) : 0;
}


static void
lock_client_on_refusal(lock_client_t *c, const json_t *message)
{
    const char  *reason;

    reason = json_string_value(json_object_get(message, "reason"));

    if (reason == NULL) {
        reason = "without a reason";
    }

    lock_client_act(c, lock_session_refused(&c->session, reason), reason,
        json_string_value(json_object_get(message, "error")));
}


/* A PONG after a silence: the service has this engine as before. */
static void
lock_client_ponged(lock_client_t *c, uint64_t seq, uint64_t standbys)
{
    c->pong = seq;
    lock_client_fine(c);

    if (c->is_silent) {
        c->is_silent = 0;
        c->callbacks->on_queue(c->data, 1);
    }

    if (c->has_sought && standbys > 0) {
        c->callbacks->on_successor(c->data);
    }
}


static void
lock_client_on_line(lock_client_t *c, const json_t *message, const char *type)
{
    lock_session_t  *session;
    uint64_t         epoch;

    session = &c->session;
    epoch = lock_client_number(message, "epoch");

    if (strcmp(type, "ping") == 0) {
        lock_client_pong(c, (json_int_t) lock_client_number(message, "seq"));

    } else if (strcmp(type, "pong") == 0) {
        lock_client_ponged(c, lock_client_number(message, "seq"),
                           lock_client_number(message, "standbys"));

    } else if (strcmp(type, "queued") == 0) {
        lock_client_queued(c, epoch);

    } else if (strcmp(type, "offer") == 0) {
        lock_client_act(c, lock_session_offered(session, epoch),
                        "it offers an older epoch", NULL);

    } else if (strcmp(type, "granted") == 0) {
        lock_client_act(c, lock_session_granted(session, epoch,
                                        lock_client_instance(message)),
                        "it granted another epoch", NULL);

    } else if (strcmp(type, "worker") == 0) {
        lock_client_registered(c,
            (json_int_t) lock_client_number(message, "pid"));

    } else if (strcmp(type, "refused") == 0) {
        lock_client_on_refusal(c, message);
    }
}


static void
lock_client_on_message(void *data, const json_t *message)
{
    const char     *type;
    lock_client_t  *c;

    c = data;
    type = json_string_value(json_object_get(message, "type"));

    if (type != NULL) {
        lock_client_on_line(c, message, type);

    } else {
        lock_client_act(c, LOCK_SESSION_RETRY, "it talks nonsense", NULL);
    }
}


/* The greatest epoch that gossip accepts. */
static uint64_t
lock_client_epoch_max(void)
{
    struct timespec  ts;

    clock_gettime(CLOCK_REALTIME, &ts);

    return (uint64_t) ts.tv_sec * 1000000 + (uint64_t) ts.tv_nsec / 1000
           + PACKET_MAX_AHEAD_US;
}


static void
lock_client_on_connected(void *data)
{
    lock_client_t  *c;

    c = data;
    c->pong = c->ping;
    c->is_silent = 0;
    c->has_sought = 0;
    lock_session_forget_above(&c->session, lock_client_epoch_max());
    lock_session_connected(&c->session);
    lock_client_acquire(c);
}


/* --- time */

static void
lock_client_ping(lock_client_t *c)
{
    lock_client_say(c, json_pack("{s:s, s:I}", "cmd", "ping", "seq",
                                 (json_int_t) c->ping), -1);
}


/* The PING has the number of the last tick, so that silence is counted in
   ticks. */
static void
lock_client_on_seek(struct ev_loop *loop, ev_timer *w, int revents)
{
    lock_client_t  *c;

    c = w->data;

    if (c->service.conn != NULL) {
        c->has_sought = 1;
        lock_client_ping(c);
    }
}


static void
lock_client_on_tick(struct ev_loop *loop, ev_timer *w, int revents)
{
    lock_client_t  *c;

    c = w->data;

    if (c->file.fd != -1 && !key_file_is_ours(&c->file)) {
        c->callbacks->on_fatal(c->data, "the lock file was removed or "
                               "replaced: another engine may be granted");
        return;
    }

    if (c->session.epoch > lock_client_epoch_max()) {
        c->callbacks->on_fatal(c->data, "the epoch is more than 24 h ahead of "
                               "the clock: gateways do not ask this engine, "
                               "and the next one gets an epoch by the clock");
        return;
    }

    if (c->service.conn == NULL) {
        return;
    }

    if (c->ping - c->pong == LOCK_CLIENT_SILENT) {
        redial_trouble(&c->service, "it does not answer",
                       lock_client_meanwhile(c));
        c->is_silent = 1;
        c->callbacks->on_queue(c->data, 0);
    }

    c->ping++;
    lock_client_ping(c);
}


/* --- functions of lock_client.h */

int
lock_client_init(lock_client_t *c, char error[LOCK_CLIENT_REASON_BYTES])
{
    uint64_t  random;

    static const redial_callbacks_t  callbacks = {
        lock_client_on_connected, lock_client_on_message, lock_client_on_lost
    };

    if (getrandom(&random, sizeof(random), 0) != sizeof(random)) {
        snprintf(error, LOCK_CLIENT_REASON_BYTES, "no random numbers");
        return -1;
    }

    if (key_file_init(&c->file, c->path, c->group) != 0) {
        snprintf(error, LOCK_CLIENT_REASON_BYTES, "--lock: the path is too "
                 "long");
        return -1;
    }

    snprintf(c->nonce, sizeof(c->nonce), "%016llx",
             (unsigned long long) random);

    c->service = (redial_t) {
        .loop = c->loop, .log = c->log, .name = "standby: lock service",
        .path = c->path, .callbacks = &callbacks, .data = c
    };
    redial_init(&c->service);

    ev_timer_init(&c->tick, lock_client_on_tick, LOCK_CLIENT_TICK_S,
                  LOCK_CLIENT_TICK_S);
    ev_timer_init(&c->seek, lock_client_on_seek, LOCK_CLIENT_SEEK_S,
                  LOCK_CLIENT_SEEK_S);
    c->tick.data = c;
    c->seek.data = c;

    return 0;
}


void
lock_client_ask(lock_client_t *c)
{
    ev_timer_start(c->loop, &c->tick);
    redial_connect(&c->service);
}


void
lock_client_seek(lock_client_t *c)
{
    ev_now_update(c->loop);
    ev_timer_start(c->loop, &c->seek);
}


void
lock_client_worker(lock_client_t *c, pid_t pid, int pidfd)
{
    lock_client_worker_t  *worker;

    worker = &c->workers[c->nworkers++];
    worker->pid = pid;
    worker->fd = pidfd;

    if (c->session.state == LOCK_SESSION_HELD) {
        lock_client_say_worker(c, worker);
    }
}


void
lock_client_close(lock_client_t *c, int is_release)
{
    int  i;

    ev_timer_stop(c->loop, &c->tick);
    ev_timer_stop(c->loop, &c->seek);

    if (is_release) {
        lock_client_say(c, json_pack("{s:s}", "cmd", "release"), -1);
    }

    redial_finish(&c->service);

    for (i = 0; i < c->nworkers; i++) {
        close(c->workers[i].fd);
    }
}
