
/*
 * The replica's reports to its agent: JSON lines on the control socket.
 *
 * A report goes out when the connection stands, on every change of load or
 * draining (at most one in AGENT_LINK_GAP_S), and after AGENT_LINK_PERIOD_S
 * without one: the agent takes silence on an open connection for a stall.
 * Nobody has to tell the link of changes: it looks at the engine's counters in
 * each event-loop iteration, which costs three comparisons.
 *
 *                 connected            refused line, broken, end of file
 *   disconnected -----------> reporting ----------------------------.
 *        ^  | failed                                                |
 *        |  v                                                       |
 *       waiting  RETRY_MIN_S, doubling to RETRY_MAX_S <-------------'
 *
 * An agent that was restarted shows nobody a replica before this one has
 * reported to it, so the longest pause between attempts is short: one that
 * nobody listens to costs a system call or two.
 *
 * The replica serves whether its agent is there or not; the log has one line
 * when the link is lost and one when it is back.
 */

#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "proto/members/members.h"
#include "replica/agent_link.h"


#define AGENT_LINK_GAP_S        0.02
#define AGENT_LINK_PERIOD_S     0.5     /* half of what is promised */
#define AGENT_LINK_RETRY_MIN_S  0.05
#define AGENT_LINK_RETRY_MAX_S  0.2


static void agent_link_connect(agent_link_t *link);


static void
agent_link_trouble(agent_link_t *link, const char *what)
{
    if (!link->is_troubled) {
        link->is_troubled = 1;
        log_write(link->log, LOG_WARN,
                  "cannot report to agent \"%s\": %s, trying on", link->path,
                  what);
    }
}


/* Tries again later; the connection is gone or going. */
static void
agent_link_retry(agent_link_t *link)
{
    link->conn = NULL;
    ev_timer_stop(link->loop, &link->report_timer);

    ev_timer_set(&link->retry_timer, link->retry_s, 0);
    ev_timer_start(link->loop, &link->retry_timer);

    link->retry_s *= 2;

    if (link->retry_s > AGENT_LINK_RETRY_MAX_S) {
        link->retry_s = AGENT_LINK_RETRY_MAX_S;
    }
}


static int
agent_link_has_model(const char *models, size_t bytes, const char *name)
{
    size_t  at;

    for (at = 0; at < bytes; at += strlen(models + at) + 1) {
        if (strcmp(models + at, name) == 0) {
            return 1;
        }
    }

    return 0;
}


/* The agent refuses reports with names that it could not pass on. */
static void
agent_link_report_models(json_t *report, const engine_facts_t *f)
{
    size_t       at, bytes;
    json_t      *models;
    const char  *name;

    models = json_array();

    for (at = 0; at < f->models_bytes; at += bytes) {
        name = f->models + at;
        bytes = strlen(name) + 1;

        if (bytes <= LLMGW_MEMBERS_MODELS_BYTES
            && llmgw_members_list_is_valid(name, bytes)
            && !agent_link_has_model(f->models, at, name))
        {
            json_array_append_new(models, json_string(name));
        }
    }

    if (json_array_size(models) > 0) {
        json_object_set(report, "models", models);
    }

    json_decref(models);
}


static void
agent_link_report_count(json_t *report, const char *name, int64_t count,
    int64_t most)
{
    if (count >= 0) {
        json_object_set_new(report, name,
                            json_integer(count < most ? count : most));
    }
}


/* What an engine does not say of itself is left out. */
static void
agent_link_report_facts(json_t *report, const engine_facts_t *f)
{
    agent_link_report_models(report, f);
    agent_link_report_count(report, "running", f->running,
                            LLMGW_ENGINE_MAX_REQUESTS);
    agent_link_report_count(report, "waiting", f->waiting,
                            LLMGW_ENGINE_MAX_REQUESTS);
    agent_link_report_count(report, "kv_permille", f->kv_permille, 1000);
    agent_link_report_count(report, "kv_free_blocks", f->kv_free_blocks,
                            LLMGW_ENGINE_MAX_BLOCKS);
    agent_link_report_count(report, "hit_permille", f->hit_permille, 1000);

    if (f->resume_group[0] != '\0') {
        json_object_set_new(report, "resume_group",
                            json_string(f->resume_group));
    }
}


/* Until an engine is the Active one of its group it is starting, to whoever
   knows nothing of groups. */
static void
agent_link_report_state(json_t *report, const engine_t *e)
{
    engine_state_t  state;

    state = engine_is_active(e) ? e->facts.state : ENGINE_STARTING;

    if (state != ENGINE_READY) {
        json_object_set_new(report, "state",
                            json_string(engine_state_name(state)));
    }
}


static void
agent_link_report_group(json_t *report, const engine_group_t *group)
{
    char  lock[17];

    if (group->name[0] == '\0') {
        return;
    }

    json_object_set_new(report, "group", json_string(group->name));
    json_object_set_new(report, "group_state", json_string(
                            llmgw_group_state_name(group->state)));

    if (group->epoch != 0) {
        snprintf(lock, sizeof(lock), "%016llx",
                 (unsigned long long) group->lock);
        json_object_set_new(report, "group_epoch",
                            json_integer((json_int_t) group->epoch));
        json_object_set_new(report, "group_lock", json_string(lock));
    }
}


/* NULL: out of memory. */
static char *
agent_link_report_text(const agent_link_t *link, int is_goodbye)
{
    char            *text;
    json_t          *report;
    const engine_t  *e;

    e = link->engine;

    report = json_pack("{s:s, s:I, s:i, s:s, s:i, s:i, s:b}",
                       "cmd", "report",
                       "replica_start", (json_int_t) link->start_ms,
                       "pid", (int) getpid(),
                       "model_version", e->facts.model_version,
                       "max_capacity", (int) e->facts.max_capacity,
                       "active_requests", (int) e->stats.active,
                       "draining", engine_is_draining(e));

    if (report == NULL) {
        return NULL;
    }

    agent_link_report_facts(report, &e->facts);
    agent_link_report_state(report, e);
    agent_link_report_group(report, &e->facts.group);

    if (is_goodbye) {
        json_object_set_new(report, "goodbye", json_true());
    }

    text = json_dumps(report, JSON_COMPACT);
    json_decref(report);

    return text;
}


/* Notes what was reported and when the next report is due. */
static void
agent_link_reported(agent_link_t *link)
{
    link->sent_at = ev_now(link->loop);
    link->sent_active = link->engine->stats.active;
    link->sent_facts = link->engine->facts.generation;
    link->sent_draining = engine_is_draining(link->engine);

    ev_timer_set(&link->report_timer, AGENT_LINK_PERIOD_S, 0);
    ev_timer_start(link->loop, &link->report_timer);
}


static void
agent_link_report(agent_link_t *link, int is_goodbye)
{
    char  *text;

    text = agent_link_report_text(link, is_goodbye);

    if (text != NULL) {
        (void) line_conn_send(link->conn, text, strlen(text));
        free(text);
    }

    agent_link_reported(link);
}


/*
 * Sends the line and the lifelock together: a socket that has carried nothing
 * yet takes both.
 */
static int
agent_link_send_first(const agent_link_t *link, int fd, char *line,
    size_t len)
{
    struct iovec     bytes;
    struct msghdr    message;
    struct cmsghdr  *control;

    _Alignas(struct cmsghdr) char  space[CMSG_SPACE(sizeof(int))] = { 0 };

    bytes.iov_base = line;
    bytes.iov_len = len;

    memset(&message, 0, sizeof(message));
    message.msg_iov = &bytes;
    message.msg_iovlen = 1;

    if (link->lifelock.fd != -1) {
        message.msg_control = space;
        message.msg_controllen = sizeof(space);

        control = CMSG_FIRSTHDR(&message);
        control->cmsg_level = SOL_SOCKET;
        control->cmsg_type = SCM_RIGHTS;
        control->cmsg_len = CMSG_LEN(sizeof(int));
        memcpy(CMSG_DATA(control), &link->lifelock.fd, sizeof(int));
    }

    return sendmsg(fd, &message, MSG_NOSIGNAL) == (ssize_t) len ? 0 : -1;
}


static int
agent_link_report_first(const agent_link_t *link, int fd)
{
    int     rc;
    char   *text;
    size_t  len;

    text = agent_link_report_text(link, 0);

    if (text == NULL) {
        errno = ENOMEM;
        return -1;
    }

    len = strlen(text);
    text[len] = '\n';       /* its end is not needed */
    rc = agent_link_send_first(link, fd, text, len + 1);
    free(text);

    return rc;
}


static void
agent_link_on_report_due(struct ev_loop *loop, ev_timer *w, int revents)
{
    agent_link_report(w->data, 0);
}


/* Before each sleep of the loop: has anything changed that is to be told? */
static void
agent_link_on_turn(struct ev_loop *loop, ev_prepare *w, int revents)
{
    double         soonest;
    agent_link_t  *link;

    link = w->data;

    if (link->conn == NULL
        || (link->sent_active == link->engine->stats.active
            && link->sent_facts == link->engine->facts.generation
            && link->sent_draining == engine_is_draining(link->engine)))
    {
        return;
    }

    soonest = link->sent_at + AGENT_LINK_GAP_S - ev_now(loop);

    if (soonest > 0
        && soonest >= ev_timer_remaining(loop, &link->report_timer))
    {
        return;
    }

    ev_timer_stop(loop, &link->report_timer);

    if (soonest <= 0) {
        agent_link_report(link, 0);
        return;
    }

    ev_timer_set(&link->report_timer, soonest, 0);
    ev_timer_start(loop, &link->report_timer);
}


static void
agent_link_on_line(line_conn_t *conn, char *line, size_t len)
{
    json_t        *answer;
    const char    *error;
    agent_link_t  *link;

    link = line_conn_data(conn);
    answer = json_loadb(line, len, 0, NULL);

    if (json_is_true(json_object_get(answer, "ok"))) {
        json_decref(answer);

        if (!link->is_accepted) {
            link->is_accepted = 1;
            link->is_troubled = 0;
            link->retry_s = AGENT_LINK_RETRY_MIN_S;
            log_write(link->log, LOG_INFO, "reporting to agent \"%s\"",
                      link->path);
        }

        return;
    }

    error = json_string_value(json_object_get(answer, "error"));
    agent_link_trouble(link, error != NULL ? error : "it talks nonsense");
    json_decref(answer);

    line_conn_destroy(conn);
    agent_link_retry(link);
}


static void
agent_link_on_close(line_conn_t *conn, const char *reason)
{
    agent_link_t  *link;

    link = line_conn_data(conn);
    agent_link_trouble(link, reason != NULL ? reason : "connection closed");
    agent_link_retry(link);
}


static void
agent_link_connect(agent_link_t *link)
{
    int  fd;

    static const line_conn_callbacks_t  callbacks = {
        agent_link_on_line, agent_link_on_close
    };

    fd = line_conn_connect(link->path);

    if (fd < 0 || agent_link_report_first(link, fd) != 0) {
        agent_link_trouble(link, strerror(errno));

        if (fd >= 0) {
            close(fd);
        }

        agent_link_retry(link);
        return;
    }

    link->conn = line_conn_create(link->loop, fd, &callbacks, link);

    if (link->conn == NULL) {
        close(fd);
        agent_link_trouble(link, "out of memory");
        agent_link_retry(link);
        return;
    }

    link->is_accepted = 0;
    agent_link_reported(link);
}


static void
agent_link_on_retry_due(struct ev_loop *loop, ev_timer *w, int revents)
{
    agent_link_connect(w->data);
}


static uint64_t
agent_link_wall_ms(void)
{
    struct timespec  ts;

    clock_gettime(CLOCK_REALTIME, &ts);

    return (uint64_t) ts.tv_sec * 1000 + (uint64_t) ts.tv_nsec / 1000000;
}


void
agent_link_init(agent_link_t *link, struct ev_loop *loop, const log_t *log,
    const engine_t *engine, const char *path)
{
    memset(link, 0, sizeof(*link));
    link->loop = loop;
    link->log = log;
    link->engine = engine;
    link->path = path;
    link->start_ms = agent_link_wall_ms();
    link->retry_s = AGENT_LINK_RETRY_MIN_S;

    ev_prepare_init(&link->watch, agent_link_on_turn);
    ev_init(&link->report_timer, agent_link_on_report_due);
    ev_init(&link->retry_timer, agent_link_on_retry_due);
    link->watch.data = link;
    link->report_timer.data = link;
    link->retry_timer.data = link;

    link->lifelock.fd = -1;

    if (path != NULL) {
        lifelock_init(&link->lifelock);
        ev_prepare_start(loop, &link->watch);
        agent_link_connect(link);
    }
}


void
agent_link_goodbye(agent_link_t *link)
{
    ev_prepare_stop(link->loop, &link->watch);
    ev_timer_stop(link->loop, &link->retry_timer);

    if (link->conn != NULL) {
        agent_link_report(link, 1);
        line_conn_finish(link->conn);
        link->conn = NULL;
    }

    ev_timer_stop(link->loop, &link->report_timer);
    lifelock_done(&link->lifelock);
}
