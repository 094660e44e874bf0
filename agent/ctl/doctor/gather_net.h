
/* Private to the files that ask over the network. */

#ifndef DOCTOR_GATHER_NET_H
#define DOCTOR_GATHER_NET_H

#include <ev.h>

#include "common/http/curl_loop.h"
#include "common/tls/tls.h"
#include "ctl/doctor/gather_inner.h"


typedef struct net_s       net_t;
typedef struct net_port_s  net_port_t;

struct net_s {
    struct ev_loop       *loop;
    const ctl_t          *ctl;
    json_t               *facts;
    unsigned              npending;     /* questions that have not ended */
    curl_loop_t           curl;
    gather_adapter_t      engines;      /* which engines to ask, and how */
    struct curl_slist    *headers;      /* for questions to engines */
    net_port_t           *ports;        /* list of ports to ask */
    tls_t                *tls;          /* NULL: replicas are asked without
                                           TLS */
    tls_files_t           files;
    char                 *paths[TLS_NFILES];
    const char           *tls_name;     /* name of all replicas; NULL: their
                                           ids */
    char                  tls_error[TLS_ERROR_BYTES];   /* "": none */
};


/* A question has ended; the last one ends the loop. */
void net_end(net_t *net);

/* parts of gather_net.c */
void net_ask_members(net_t *net);
void net_forget_members(net_t *net);
void net_ask_page(net_t *net);
void net_ask_engines(net_t *net);
void net_on_got(void *data, CURL *easy, CURLcode rc);

#endif /* DOCTOR_GATHER_NET_H */
