
/*
 * Ports of members, and replicas at them.
 *
 * Each port is connected to first.  Then a replica is asked for its health, as
 * nginx would ask it: with the files of llmgw_ssl, or else those of the agent;
 * its certificate must have the member's id as a name.  A replica's host need
 * not reach other replicas, so from there only its own is asked.
 */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/grpc/asker.h"
#include "ctl/doctor/gather_net.h"


struct net_port_s {
    net_t               *net;
    net_port_t          *next;
    json_t              *entry;         /* of the fact "ports" */
    const char          *id;
    int                  is_replica;    /* its replica is asked for its health,
                                           too */
    int                  fd;            /* -1: closed */
    address_t            address;
    ev_io                io;
    ev_timer             limit;
    asker_t              asker;
    grpc_conn_options_t  options;
};


static void
net_replica_say(net_port_t *port, const char *text, int was_asked)
{
    json_array_append_new(json_object_get(port->net->facts, "replicas"),
                          json_pack("{s:s, s:O, s:s, s:b}", "id", port->id,
                                    "address",
                                    json_object_get(port->entry, "address"),
                                    "error", text, "was_asked", was_asked));
}


static void
net_replica_end(void *data, asker_end_t end, int status, const char *text)
{
    char         said[512];
    net_port_t  *port = data;

    said[0] = '\0';

    if (end != ASKER_ANSWERED) {
        snprintf(said, sizeof(said), "%s", text);

    } else if (status != LLMGW_GRPC_OK && status != LLMGW_GRPC_UNIMPLEMENTED) {
        snprintf(said, sizeof(said), "it answers a question about its health "
                 "with status %d: %s", status, text != NULL ? text : "");
    }

    net_replica_say(port, said, 1);
    asker_drop(&port->asker);
    net_end(port->net);
}


static const asker_use_t  net_replica_use = {
    .on_end = net_replica_end
};


static void
net_ask_replica(net_port_t *port)
{
    net_t  *net = port->net;

    static const asker_question_t  question = {
        .path = "/grpc.health.v1.Health/Check",
        .authority = "localhost",
        .limit_ms = GATHER_LIMIT_MS
    };

    asker_init(&port->asker, net->loop, &port->address, &net_replica_use,
               port);

    if (net->tls != NULL) {
        port->options.channel = &tls_channel;
        port->options.channel_context = net->tls;
        port->options.names = net->tls_name != NULL ? net->tls_name
                                                    : port->id;
    }

    if (asker_connect(&port->asker, &port->options, GATHER_LIMIT_MS) != 0
        || asker_ask(&port->asker, &question) != 0)
    {
        net_replica_say(port, strerror(errno), 1);
        return;
    }

    net->npending++;
}


static void
net_port_done(net_port_t *port, const char *error)
{
    ev_io_stop(port->net->loop, &port->io);
    ev_timer_stop(port->net->loop, &port->limit);
    close(port->fd);
    port->fd = -1;
    json_object_set_new(port->entry, "error", json_string(error));

    if (port->is_replica && error[0] == '\0') {
        net_ask_replica(port);

    } else if (port->is_replica) {
        net_replica_say(port, "its port takes no connection", 0);
    }

    net_end(port->net);
}


static void
net_port_ready(struct ev_loop *loop, ev_io *io, int events)
{
    int          error;
    socklen_t    len;
    net_port_t  *port = io->data;

    error = 0;
    len = sizeof(error);
    getsockopt(port->fd, SOL_SOCKET, SO_ERROR, &error, &len);
    net_port_done(port, error != 0 ? strerror(error) : "");
}


static void
net_port_late(struct ev_loop *loop, ev_timer *timer, int events)
{
    net_port_done(timer->data, "no answer");
}


static void
net_ask_port(net_t *net, const json_t *member, const char *of,
    const char *address, int is_replica)
{
    net_port_t  *port;

    port = calloc(1, sizeof(net_port_t));

    if (port == NULL || address_parse(address, &port->address) != 0) {
        free(port);
        return;
    }

    port->entry = json_pack("{s:s, s:s, s:s, s:s}", "id",
                            ctl_text(member, "id"), "of", of, "address",
                            address, "error", "");
    json_array_append_new(json_object_get(net->facts, "ports"), port->entry);
    port->net = net;
    port->id = ctl_text(member, "id");
    port->is_replica = is_replica;
    port->next = net->ports;
    net->ports = port;
    port->fd = socket(port->address.ss.ss_family,
                      SOCK_STREAM|SOCK_NONBLOCK|SOCK_CLOEXEC, 0);

    if (port->fd == -1
        || (connect(port->fd, (struct sockaddr *) &port->address.ss,
                    port->address.len) == -1 && errno != EINPROGRESS))
    {
        json_object_set_new(port->entry, "error",
                            json_string(strerror(errno)));
        return;
    }

    ev_io_init(&port->io, net_port_ready, port->fd, EV_WRITE);
    ev_timer_init(&port->limit, net_port_late, GATHER_LIMIT_MS / 1e3, 0.);
    port->io.data = port;
    port->limit.data = port;
    ev_io_start(net->loop, &port->io);
    ev_timer_start(net->loop, &port->limit);
    net->npending++;
}


/* --- the files by which replicas are asked */

static void
net_tls_path(net_t *net, size_t i, const json_t *conf, const json_t *directive)
{
    char         path[GATHER_PATH_BYTES];
    const char  *full;

    full = gather_path(conf, conf_word(directive, 0), path);
    free(net->paths[i]);
    net->paths[i] = full != NULL ? strdup(full) : NULL;
}


static void
net_tls_of_conf(const json_t *directive, const conf_scope_t *scope, void *data)
{
    json_t      *conf;
    net_t       *net = data;
    const char  *name;

    if (strcmp(conf_word(directive, 0), "on") != 0 || net->paths[2] != NULL) {
        return;
    }

    conf = gather_had(net->facts, "conf");
    net_tls_path(net, 0, conf, conf_in_force(scope, "llmgw_ssl_certificate"));
    net_tls_path(net, 1, conf,
                 conf_in_force(scope, "llmgw_ssl_certificate_key"));
    net_tls_path(net, 2, conf,
                 conf_in_force(scope, "llmgw_ssl_trusted_certificate"));
    name = conf_word(conf_in_force(scope, "llmgw_ssl_name"), 0);
    net->tls_name = name[0] != '\0' && strcmp(name, "member") != 0 ? name
                                                                   : NULL;
}


static void
net_tls_of_agent(net_t *net)
{
    size_t       i;
    json_t      *files;
    const char  *path;

    static const char  *options[] = { "tls-cert", "tls-key", "tls-ca" };

    files = json_object_get(gather_had(net->facts, "agent"), "files");

    for (i = 0; i < TLS_NFILES; i++) {
        path = ctl_text(files, options[i]);
        net->paths[i] = path[0] != '\0' ? strdup(path) : NULL;
    }
}


static void
net_tls_open(net_t *net)
{
    size_t              i;

    static const log_t  log = { "llmgwctl", NULL, LOG_ERROR };

    conf_walk(gather_had(net->facts, "conf"), "llmgw_ssl", net_tls_of_conf,
              net);

    if (net->paths[2] == NULL) {
        net_tls_of_agent(net);
    }

    if (net->paths[2] == NULL) {
        return;
    }

    for (i = 0; i < TLS_NFILES; i++) {
        if (net->paths[i] != NULL && access(net->paths[i], R_OK) == -1) {
            snprintf(net->tls_error, sizeof(net->tls_error),
                     "%.400s: %s: replicas are not asked", net->paths[i],
                     strerror(errno));
            return;
        }
    }

    net->files = (tls_files_t) { .cert = net->paths[0], .key = net->paths[1],
                                 .ca = net->paths[2] };
    net->tls = tls_open(&net->files, &log, net->tls_error);
}


/* --- the members to ask */

static int
net_is_present(const json_t *member)
{
    const char  *state;

    state = ctl_text(member, "state");

    return strcmp(state, "ALIVE") == 0 || strcmp(state, "SUSPECT") == 0;
}


static void
net_ask_member(net_t *net, const json_t *agent, const json_t *member)
{
    int  is_own, is_gateway;

    is_own = strcmp(ctl_text(member, "id"), ctl_text(agent, "id")) == 0;
    is_gateway = strcmp(ctl_text(agent, "role"), "gateway") == 0;

    if (!is_own) {
        net_ask_port(net, member, "gossip", ctl_text(member, "address"), 0);
    }

    if (strcmp(ctl_text(member, "role"), "replica") == 0
        && strcmp(ctl_text(member, "service"), "STARTING") != 0
        && (is_own || is_gateway))
    {
        net_ask_port(net, member, "gRPC", ctl_text(member, "grpc"),
                     net->tls_error[0] == '\0');
    }
}


void
net_ask_members(net_t *net)
{
    size_t   i, nleft;
    json_t  *agent, *member, *members;

    agent = gather_had(net->facts, "agent");
    members = gather_had(net->facts, "members");

    if (agent == NULL || members == NULL) {
        json_object_set_new(net->facts, "ports",
                            gather_why("members are not known"));
        json_object_set_new(net->facts, "replicas",
                            gather_why("members are not known"));
        return;
    }

    net_tls_open(net);
    json_object_set_new(net->facts, "ports", json_array());
    json_object_set_new(net->facts, "replicas",
                        net->tls_error[0] != '\0'
                        ? gather_why("%s", net->tls_error) : json_array());
    nleft = 0;

    json_array_foreach(members, i, member) {

        if (!net_is_present(member)) {
            continue;
        }

        if (i < GATHER_MAX_MEMBERS) {
            net_ask_member(net, agent, member);

        } else {
            nleft++;
        }
    }

    if (nleft > 0) {
        json_array_append_new(json_object_get(net->facts, "ports"),
                              json_pack("{s:I}", "unasked",
                                        (json_int_t) nleft));
    }
}


void
net_forget_members(net_t *net)
{
    size_t       i;
    net_port_t  *port;

    while ((port = net->ports) != NULL) {
        net->ports = port->next;

        if (port->asker.loop != NULL) {
            asker_drop(&port->asker);
        }

        free(port);
    }

    tls_close(net->tls);

    for (i = 0; i < TLS_NFILES; i++) {
        free(net->paths[i]);
    }
}
