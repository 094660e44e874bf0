
/*
 * Agents of a simulated fleet: one beside each gateway and each replica, with
 * the agent's own code (node/node.h) on a network in memory (fake_net.h).
 *
 * An agent's report of its replica reaches gateways as in reality: by pings, by
 * delivery to gateways at once, through loss and delay.  A machine that dies
 * takes its agent with it, and the others find out.
 *
 * Times are the caller's, in microseconds from 0: at time 0 the mesh has been
 * up for a while, and all agents know each other.
 */

#ifndef MESH_H
#define MESH_H

#include <stddef.h>
#include <stdint.h>


#define MESH_MAX_MEMBERS  2000  /* each of them has a table of all members */

typedef struct {
    uint32_t  gateways;
    uint32_t  replicas;
    uint64_t  seed;
    uint64_t  delay_us;         /* a datagram takes this and up to jitter_us */
    uint64_t  jitter_us;
    uint32_t  loss_permille;
    uint64_t  period_us;        /* from ping to ping */
} mesh_config_t;

/* A replica's state in the view of a gateway's agent. */
typedef struct {
    uint8_t   service;          /* llmgw_service_t */
    uint8_t   liveness;         /* llmgw_liveness_t */
    uint8_t   is_draining;
    uint32_t  process;          /* `process` as in the last mesh_say() */
    uint32_t  active;           /* requests, by its last report */
} mesh_view_t;

typedef struct mesh_s  mesh_t;

/*
 * Called within mesh_run() when a gateway's view of a replica has changed in
 * more than the load.
 */
typedef void (*mesh_change_pt)(void *data, uint32_t gateway,
    uint32_t replica, const mesh_view_t *view);


/* NULL: no memory, or there are more than MESH_MAX_MEMBERS. */
mesh_t *mesh_create(const mesh_config_t *config, mesh_change_pt change,
    void *data);
void mesh_destroy(mesh_t *mesh);

/* When the next event is due; INT64_MAX: none is. */
int64_t mesh_next_us(const mesh_t *mesh);
void mesh_run(mesh_t *mesh, int64_t until_us);

/* Within a callback: the time of the event. */
int64_t mesh_now_us(const mesh_t *mesh);

/*
 * The replica's agent reports its state; process is the number of the replica's
 * process.
 */
void mesh_say(mesh_t *mesh, uint32_t replica, uint8_t service,
    int is_draining, uint32_t process);
void mesh_say_load(mesh_t *mesh, uint32_t replica, uint32_t active);

/* The replica's machine dies; it is back with a new agent. */
void mesh_kill(mesh_t *mesh, uint32_t replica);
void mesh_revive(mesh_t *mesh, uint32_t replica);

void mesh_view(const mesh_t *mesh, uint32_t gateway, uint32_t replica,
    mesh_view_t *view);

#endif /* MESH_H */
