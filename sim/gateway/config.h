
/*
 * The settings of a run through our own gateway: those of nginx's directives,
 * how reports about replicas reach gateways, and faults with their times.
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
    GATEWAY_CRASH = 0,          /* its process dies, and its agent reports it */
    GATEWAY_DIE,                /* its machine dies, silently */
    GATEWAY_STALL,              /* its process hangs */
    GATEWAY_SLOW,               /* its steps take `factor` as long */
    GATEWAY_DRAIN               /* it accepts no new requests */
} gateway_fault_kind_t;

#define GATEWAY_FAULT_KINDS  5

typedef struct {
    work_yaml_t           at;           /* its place in a file, for errors */
    gateway_fault_kind_t  kind;
    int                   has_kind;
    uint32_t              replica;      /* the first one affected */
    uint32_t              count;        /* replicas affected */
    int64_t               at_us;
    int64_t               for_us;       /* 0: for ever */
    int64_t               every_us;     /* mean time from one fault to the next,
                                           each at a random replica; 0: it
                                           happens once */
    double                factor;
} gateway_fault_t;

/*
 * A rolling update: replicas drain, restart and come back, one after another.
 * restart_us is how long a restart takes; drain_us how long running streams may
 * take to end.
 */
typedef struct {
    int                   is_on;
    int64_t               at_us;
    int64_t               drain_us;
    int64_t               restart_us;
    uint32_t              parallel;
} gateway_update_t;

typedef enum {
    GATEWAY_GOSSIP_DELAY = 0,   /* gateways learn all after delay_us */
    GATEWAY_GOSSIP_SWIM         /* agents gossip on a simulated network */
} gateway_gossip_kind_t;

typedef struct {
    gateway_gossip_kind_t  kind;
    int64_t                delay_us;    /* of a report; SWIM: of a datagram */
    int64_t                jitter_us;   /* only with SWIM */
    uint32_t               loss_permille;       /* only with SWIM */
    int64_t                detect_us;   /* machine's death to DEAD; not SWIM */
    int64_t                period_us;   /* of pings; only with SWIM */
} gateway_gossip_t;

typedef struct {
    uint32_t              gateways;
    uint32_t              capacity;     /* requests at a replica; 0: no limit */
    uint32_t              queue_size;
    int64_t               queue_us;
    int64_t               hold_us;      /* 0: no request is held */
    uint32_t              key_tokens;   /* prompt tokens that make the key */
    uint32_t              vnodes;
    uint32_t              load_factor_permille;
    uint32_t              min_load;
    fleet_policy_t        policy;
    int64_t               facts_us;     /* greatest age of the policy's facts */
    llmgw_breaker_conf_t  breaker;
    int64_t               hedge_us;     /* 0: no hedging */
    uint32_t              hedge_permille;
    uint32_t              tries;
    uint32_t              failovers;
    int64_t               connect_us;
    int64_t               first_token_us;
    int64_t               token_us;
    int64_t               network_us;   /* one way, gateway to replica */
    gateway_gossip_t      gossip;
    gateway_fault_t      *faults;       /* in the reader's arena */
    size_t                nfaults;
    gateway_update_t      update;
} gateway_config_t;


void gateway_config_init(gateway_config_t *config);

/*
 * Reads a file over the defaults that config has, for a fleet of that many
 * replicas.  0, or -1 and *error with file and line.  Lists are in the arena.
 */
int gateway_config_read(gateway_config_t *config, const char *path,
    uint32_t replicas, work_arena_t *arena, work_error_t *error);

#endif /* GATEWAY_CONFIG_H */
