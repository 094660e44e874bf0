
/*
 * Finds out what an engine is: its kind, version, model and context, or why it
 * does not answer.
 *
 * The adapter does the same at its own pace and reports what routing needs.
 * This is for people who have just typed a URL: each second, until the engine
 * is known, it is sent the questions of the adapter's dialects.
 */

#ifndef PROBE_H
#define PROBE_H

#include <ev.h>

#include "replica/engine/dialect/dialect.h"
#include "replica/engine/http.h"


#define PROBE_WHY_BYTES  (HTTP_WHY_BYTES + 128)

typedef struct {
    struct ev_loop   *loop;
    http_whole_t           answer;       /* to the pending question; its http is
                                            NULL if there is none */
    ev_timer          timer;
    const char       *key_file;     /* as given; NULL: none */

    const dialect_t  *dialect;      /* NULL: not found yet */
    int               at;           /* index of the question */
    int               is_answered;  /* a question was answered with 200 while
                                       the dialect is not found */

    dialect_facts_t   facts;
    int               is_mute;      /* it has no metrics */
    int               is_refused;   /* a question of this round was refused */
    int               is_locked;    /* it refuses because a key is missing */
    int               is_known;     /* ready, and all questions answered */
    unsigned          rounds;       /* rounds of questions so far */
    char              why[PROBE_WHY_BYTES];     /* why is_known is 0, or "" */
} probe_t;


/* Begins to ask the engine.  0, or -1: no memory. */
int probe_init(probe_t *probe, struct ev_loop *loop, const char *url,
    const char *key, const char *key_file);

/* Asks again: another engine may answer there by now. */
void probe_again(probe_t *probe);

/* May be called without probe_init(). */
void probe_done(probe_t *probe);

/* The engine's name, as "vllm 0.11.0"; "" while it is not known. */
void probe_name(const probe_t *probe, char *name, size_t bytes);

#endif /* PROBE_H */
