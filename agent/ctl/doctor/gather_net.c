
/*
 * Asks over the network, everything at once on one loop: gather_http.c asks the
 * status page and engines, gather_peers.c the ports of members.  Each question
 * has its own limit of time.
 */

#include <signal.h>
#include <stdlib.h>

#include "ctl/doctor/gather_net.h"


void
net_end(net_t *net)
{
    if (--net->npending == 0) {
        ev_break(net->loop, EVBREAK_ALL);
    }
}


void
gather_net(const ctl_t *ctl, json_t *facts)
{
    net_t  net = { .ctl = ctl, .facts = facts, .npending = 1 };

    signal(SIGPIPE, SIG_IGN);
    curl_global_init(CURL_GLOBAL_DEFAULT);
    net.loop = ev_loop_new(EVFLAG_AUTO);

    if (net.loop == NULL
        || curl_loop_init(&net.curl, net.loop, net_on_got, &net) != 0)
    {
        abort();                        /* out of memory, at the very start */
    }

    net_ask_page(&net);
    net_ask_engines(&net);
    net_ask_members(&net);

    if (--net.npending > 0) {
        ev_run(net.loop, 0);
    }

    net_forget_members(&net);
    curl_slist_free_all(net.headers);
    free(net.engines.words);
    curl_loop_done(&net.curl);
    ev_loop_destroy(net.loop);
}
