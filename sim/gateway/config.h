
/*
 * The settings of a run through our own gateway: settings of nginx's
 * directives, how news of replicas travels, and the faults with their times.
 *
 * Names follow the directives (docs/directives.md), values are their defaults
 * unless a file says otherwise (docs/simulator.md has the keys).
 */

#ifndef GATEWAY_CONFIG_H
#define GATEWAY_CONFIG_H

#include "core/breaker.h"
#include "sim/fleet/policy/policy.h"
#include "sim/work/yaml.h"


#define GATEWAY_MAX_GATEWAYS  64
#define GATEWAY_MAX_FAULTS    10000

typedef enum {
    GATEWAY_CRASH = 0,          /* its process dies; its machine says so */
    GATEWAY_DIE,                /* its machine dies, silently */
    GATEWAY_STALL,              /* its process hangs */
    GATEWAY_SLOW,               /* its steps take `factor` as long */
    GATEWAY_DRAIN               /* it accepts no new requests */
} gateway_fault_kind_t;

#define GATEWAY_FAULT_KINDS  5

typedef struct {
    work_yaml_t           at;           /* of a file */
    gateway_fault_kind_t  kind;
    int                   has_kind;
    uint32_t              replica;      /* the first */
    uint32_t              count;        /* of replicas, from it on */
    int64_t               at_us;
    int64_t               for_us;       /* 0: for good */
    int64_t               every_us;     /* mean time to the next one, at any
                                           replica; 0: it happens once */
    double                factor;
} gateway_fault_t;

/* A rolling update: replicas drain, restart and come back, one after another.
 * for_us: of a restart; drain_us: the longest that running streams may take
 * to end by themselves. */
typedef struct {
    int                   is_on;
    int64_t               at_us;
    int64_t               drain_us;
    int64_t               restart_us;
    uint32_t              parallel;
} gateway_update_t;

typedef enum {
    GATEWAY_GOSSIP_DELAY = 0,   /* a change reaches all after the same time */
    GATEWAY_GOSSIP_SWIM         /* agents on a simulated network */
} gateway_gossip_kind_t;

typedef struct {
    gateway_gossip_kind_t  kind;
    int64_t                delay_us;    /* of news; with SWIM of a datagram */
    int64_t                jitter_us;   /* SWIM */
    uint32_t               loss_permille;       /* SWIM */
    int64_t                detect_us;   /* from a machine's death to DEAD */
    int64_t                period_us;   /* SWIM */
} gateway_gossip_t;

typedef struct {
    uint32_t              gateways;
    uint32_t              capacity;     /* requests at a replica; 0: any */
    uint32_t              queue_size;
    int64_t               queue_us;
    int64_t               hold_us;      /* 0: nothing is held */
    uint32_t              key_tokens;   /* of a prompt, that make its key */
    uint32_t              vnodes;
    uint32_t              load_factor_permille;
    uint32_t              min_load;
    fleet_policy_t        policy;
    int64_t               facts_us;     /* their greatest age */
    llmgw_breaker_conf_t  breaker;
    int64_t               hedge_us;     /* 0: none */
    uint32_t              hedge_permille;
    uint32_t              tries;
    uint32_t              failovers;
    int64_t               connect_us;
    int64_t               first_token_us;
    int64_t               token_us;
    int64_t               network_us;   /* one way, gateway to replica */
    gateway_gossip_t      gossip;
    gateway_fault_t      *faults;       /* in the arena */
    size_t                nfaults;
    gateway_update_t      update;
} gateway_config_t;


void gateway_config_init(gateway_config_t *config);

/*
 * Reads a file, beyond the defaults, for a fleet of that many replicas.  0, or
 * -1 and *error with file and line.  Lists live in the arena.
 */
int gateway_config_read(gateway_config_t *config, const char *path,
    uint32_t replicas, work_arena_t *arena, work_error_t *error);

#endif /* GATEWAY_CONFIG_H */
