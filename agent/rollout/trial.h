
/*
 * Does a replica work?  One token, asked of it directly, as a gateway would:
 * Generate with max_tokens 1, which has to end OK after a final message.
 */

#ifndef TRIAL_H
#define TRIAL_H

#include <ev.h>
#include <stdint.h>

#include "common/grpc/conn.h"


#define TRIAL_ERROR_BYTES  256

typedef struct trial_s  trial_t;

/* error NULL: it works; else what it answered.  The trial is gone when this
   returns. */
typedef void (*trial_done_pt)(void *data, const char *error);


/*
 * address: numeric, HOST:PORT.  options are copied, names has to outlive the
 * trial.  request_id: what the replica's log will name.  on_done comes later,
 * within timeout_ms.  NULL and a reason.
 */
trial_t *trial_start(struct ev_loop *loop, const char *address,
    const grpc_conn_options_t *options, const char *request_id,
    uint64_t timeout_ms, trial_done_pt on_done, void *data, char *error);

/* on_done does not come. */
void trial_destroy(trial_t *trial);

#endif /* TRIAL_H */
