
/*
 * Settings of a replica model, which several replicas may share.
 */

#ifndef MODEL_CONFIG_H
#define MODEL_CONFIG_H

#include <stddef.h>
#include <stdint.h>

#include "sim/model/latency.h"
#include "sim/model/request.h"


#define MODEL_BLOCKS_MAX  (1u << 30)

typedef enum {
    MODEL_FCFS = 0,             /* in order of arrival */
    MODEL_PRIORITY_FCFS,        /* most urgent first */
    MODEL_SJF,                  /* shortest prompt first */
    MODEL_REVERSE_PRIORITY      /* least urgent first: for tests */
} model_scheduler_t;

typedef enum {
    MODEL_PREEMPT_LAST = 0,     /* "fcfs": the last one in the batch */
    MODEL_PREEMPT_PRIORITY      /* the least urgent; if equal, the latest */
} model_preemption_t;

typedef struct {
    int64_t             block_tokens;           /* default 16 */
    int64_t             total_blocks;           /* default 20000 */
    int64_t             max_seqs;               /* of a batch; default 256 */
    int64_t             max_batched_tokens;     /* of a step; default 2048 */
    int64_t             max_model_len;          /* in tokens; 0: no limit */
    int64_t             long_prefill_threshold; /* most tokens of one prompt in
                                                   a step; 0: no limit */
    model_scheduler_t   scheduler;
    model_preemption_t  preemption;
    model_latency_t     latency;
    int64_t             horizon_us;             /* later events do not change
                                                   model_replica_ended() */
    int                 keeps_gaps;             /* keeps gaps for
                                                   model_replica_gaps() */

    /*
     * Grows whenever the frozen views of all replicas' cached blocks are to be
     * taken anew.  NULL: there are no frozen views.
     */
    const uint64_t     *view;
} model_config_t;


/* Sets the defaults given above; there is none for the latency model. */
void model_config_init(model_config_t *config);

/* Finds a value by its name on the command line.  0, or -1: there is none. */
int model_config_scheduler(const char *name, model_scheduler_t *scheduler);
int model_config_preemption(const char *name, model_preemption_t *preemption);

/*
 * Lowers max_model_len to what the blocks can hold.  Returns the value before,
 * or 0 if nothing was changed.
 */
int64_t model_config_cap(model_config_t *config);

/* Checks the figures.  0, or -1 and an error in one line. */
int model_config_check(const model_config_t *config, char *error,
    size_t bytes);

#endif /* MODEL_CONFIG_H */
