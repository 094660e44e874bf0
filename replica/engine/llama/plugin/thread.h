
/*
 * A core: a thread that runs libllama, since its functions block, and the
 * states that it goes through.  They are the same for a core that generates
 * tokens (generate/) and for one that computes a slice (shard/); what each of
 * them does in a state is a table of operations.
 *
 *   is_deferred
 *     WAITING -thread_wake()-> STARTING --start()--> LOADING --load()--> READY
 *                                 |                     ^                  |
 *                      is_standby |       thread_wake() |                  |
 *                                 +------start()----> ASLEEP <-------------+
 *                                                            thread_sleep()
 *
 * In READY the thread calls work() as long as has_work() is true.
 *
 * start() and load() may fail: then the core is BROKEN, and the thread ends.
 * thread_wake() and thread_sleep() change the state at once, and the thread
 * follows: a core that sleeps and wakes before the thread looked is loaded
 * again.
 *
 * What both threads use is under `lock`, which is not held while libllama
 * computes.  All else belongs to the core's thread.
 */

#ifndef THREAD_H
#define THREAD_H

#include <llama.h>
#include <pthread.h>
#include <stdatomic.h>

#include "replica/engine/llama/core.h"
#include "replica/engine/llama/plugin/backend.h"
#include "slice/libllama.h"


/*
 * Each but init() is called by the core's thread.  0, or -1: facts.error says
 * why.
 *
 */
typedef struct {
    size_t       bytes;         /* of the kind's struct, which begins with a
                                   core_t */
    const char  *sequences;     /* what messages call its sequences */

    /* In thread_open(), which calls done() if it fails. */
    int        (*init)(core_t *core);

    /* STARTING: sets all facts.  With is_standby it keeps no memory that
       another process may need before this one wakes. */
    int        (*start)(core_t *core);

    /* LOADING: loads the model and opens the context. */
    int        (*load)(core_t *core);

    /* Whether work() would find something to do; called under the lock. */
    int        (*has_work)(core_t *core);
    void       (*work)(core_t *core);

    /* Frees the kind's own memory; the thread has ended or never began. */
    void       (*done)(core_t *core);
} core_ops_t;

struct core_s {
    const core_ops_t      *ops;
    core_options_t         options;
    char                  *file;        /* as it was named */
    char                  *cpu;
    pthread_t              thread;
    atomic_int             is_stopping;

    pthread_mutex_t        lock;
    pthread_cond_t         work;
    core_state_t           state;
    core_facts_t           published;   /* facts at the last change of state */
    core_load_t            load;

    core_facts_t           facts;
    libllama_t             libllama;
    backend_t              backend;
    struct llama_model    *model;       /* of a head: its fallback, or NULL */
    struct llama_context  *context;
    struct llama_batch     batch;       /* pos NULL: none yet */
};

#define core_fail(core, ...)                                                  \
    (snprintf((core)->facts.error, CORE_ERROR_BYTES, __VA_ARGS__), -1)


/* --- for the tables of core.h and shard_core.h, which say what they do */

core_t *thread_open(const core_ops_t *ops, const core_options_t *options,
    char error[CORE_ERROR_BYTES]);
void thread_close(core_t *core);
core_state_t thread_state(core_t *core, core_facts_t *facts);
void thread_load(core_t *core, core_load_t *load);

/* To be called under the lock, in WAITING or ASLEEP.  0, or -1: another
   state. */
int thread_wake(core_t *core);

/* To be called in READY without sequences.  0, or -1: another state, or there
   are some. */
int thread_sleep(core_t *core);

#endif /* THREAD_H */
