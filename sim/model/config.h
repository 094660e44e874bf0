
/*
 * The settings of a replica model.  Many replicas may share one.
 */

#ifndef MODEL_CONFIG_H
#define MODEL_CONFIG_H

#include <stddef.h>
#include <stdint.h>

#include "sim/model/latency.h"
#include "sim/model/request.h"


#define MODEL_BLOCKS_MAX  (1u << 30)

typedef enum {
    MODEL_FCFS = 0,             /* as they came */
    MODEL_PRIORITY_FCFS,        /* the most urgent first */
    MODEL_SJF,                  /* the shortest prompt first */
    MODEL_REVERSE_PRIORITY      /* the least urgent first: for tests */
} model_scheduler_t;

typedef enum {
    MODEL_PREEMPT_LAST = 0,     /* "fcfs": the last of the batch */
    MODEL_PREEMPT_PRIORITY      /* the least urgent, among equals the latest */
} model_preemption_t;

typedef struct {
    int64_t             block_tokens;           /* 16 */
    int64_t             total_blocks;           /* 20000 */
    int64_t             max_seqs;               /* of a batch: 256 */
    int64_t             max_batched_tokens;     /* of a step: 2048 */
    int64_t             max_model_len;          /* tokens; 0: no limit */
    int64_t             long_prefill_threshold; /* tokens of a prompt in a
                                                   step; 0: no limit */
    model_scheduler_t   scheduler;
    model_preemption_t  preemption;
    model_latency_t     latency;
    int64_t             horizon_us;             /* no later event counts for
                                                   model_replica_ended() */
    int                 keeps_gaps;             /* for model_replica_gaps() */

    /*
     * Where a frozen view of the cached blocks is wanted: a number that grows
     * whenever all replicas' views are to be taken anew.  NULL: no view.
     */
    const uint64_t     *view;
} model_config_t;


/* The defaults above, and no latency model. */
void model_config_init(model_config_t *config);

/* By name, as on the command line.  -1: not known. */
int model_config_scheduler(const char *name, model_scheduler_t *scheduler);
int model_config_preemption(const char *name, model_preemption_t *preemption);

/*
 * Caps max_model_len to what the blocks hold.  Returns the requested length, or
 * 0: nothing was capped.
 */
int64_t model_config_cap(model_config_t *config);

/* Checks the figures: 0, or -1 and an error in one line. */
int model_config_check(const model_config_t *config, char *error,
    size_t bytes);

#endif /* MODEL_CONFIG_H */
