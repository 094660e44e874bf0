
/*
 * A trial shows whether a replica works.  It is asked directly for one token,
 * as a gateway would: Generate with max_tokens 1, which has to end with OK
 * after a final message.
 */

#ifndef TRIAL_H
#define TRIAL_H

#include <ev.h>
#include <stdint.h>

#include "common/grpc/conn.h"


#define TRIAL_ERROR_BYTES  256

typedef struct trial_s  trial_t;

/* The trial has ended.  error NULL: the replica works; otherwise what it
   answered.  The trial is freed when this returns. */
typedef void (*trial_done_pt)(void *data, const char *error);


/*
 * Begins a trial.  address: numeric, HOST:PORT.  options are copied; their
 * names must outlive the trial.  request_id: the id in the replica's log.
 * on_done is called later, within timeout_ms.  NULL and a reason.
 */
trial_t *trial_start(struct ev_loop *loop, const char *address,
    const grpc_conn_options_t *options, const char *request_id,
    uint64_t timeout_ms, trial_done_pt on_done, void *data, char *error);

/* Ends the trial; on_done is not called. */
void trial_destroy(trial_t *trial);

#endif /* TRIAL_H */
