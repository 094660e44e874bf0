
/*
 * A swim joined to a transport and a clock: one running member.
 *
 * The agent and the simulator build it alike, so the code that tests drive is
 * the code that runs.  Sealing and opening (net/crypt.h) are done here, too.
 * Each function reads the clock, calls the swim, and sets the alarm to its next
 * deadline.
 */

#ifndef NODE_H
#define NODE_H

#include "net/clock.h"
#include "net/crypt.h"
#include "swim/swim.h"
#include "net/transport.h"


typedef struct node_s  node_t;

/*
 * The node sets on_send, on_stream and net of config; the callbacks are given
 * to the swim unchanged.  Transport, clock and config->crypt must outlive the
 * node.  With a crypt everything sent is sealed, and plain datagrams are
 * dropped.  NULL: out of memory.
 */
node_t *node_create(const swim_config_t *config, transport_t *transport,
    clock_source_t *clock);
void node_destroy(node_t *node);

/* For reading only; changes are made by the functions below. */
const swim_t *node_swim(const node_t *node);

void node_restore(node_t *node, const llmgw_members_view_t *view);
void node_set_seeds(node_t *node, const address_t *seeds, size_t n);
void node_set_own(node_t *node, const swim_own_t *own);
void node_set_load(node_t *node, uint32_t active_requests,
    const llmgw_engine_load_t *engine);
void node_retire(node_t *node);
void node_leave(node_t *node);
void node_set_update(node_t *node, const char *id);

/* Like swim_order(), swim_kept(), swim_forget_order(), swim_ask(). */
order_rc_t node_order(node_t *node, order_t *order);
void node_kept(node_t *node);
void node_forget_order(node_t *node, uint64_t id);
void node_ask(node_t *node, const char *id);

/* Like swim_inject_suspect(). */
int node_inject_suspect(node_t *node, const char *id);

#endif /* NODE_H */
