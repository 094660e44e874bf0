
/*
 * What an engine is, asked from here: its kind, version, model and context, or
 * why it does not answer.
 *
 * The adapter asks the same in its own time and tells the cluster what routing
 * needs.  This is for people who have just typed a URL: until the engine is
 * known it is asked each second, by the questions of the adapter's dialects.
 */

#ifndef PROBE_H
#define PROBE_H

#include <ev.h>

#include "replica/engine/dialect/dialect.h"
#include "replica/engine/http.h"


#define PROBE_WHY_BYTES  (HTTP_WHY_BYTES + 128)

typedef struct {
    struct ev_loop   *loop;
    http_whole_t           answer;       /* to the question that is asked; its
                                       http NULL: nothing is asked */
    ev_timer          timer;
    const char       *key_file;     /* that was given, or NULL */

    const dialect_t  *dialect;      /* NULL: not known yet */
    int               at;           /* which question */
    int               is_answered;  /* by a 200, while the dialect is looked
                                       for */

    dialect_facts_t   facts;
    int               is_mute;      /* it tells no metrics */
    int               is_refused;   /* a question of this round */
    int               is_locked;    /* it refuses for want of a key */
    int               is_known;     /* ready, and all was asked */
    unsigned          rounds;       /* of questions, since it began */
    char              why[PROBE_WHY_BYTES];     /* not known; "": not yet */
} probe_t;


/* Begins to ask.  0, or -1: no memory. */
int probe_init(probe_t *probe, struct ev_loop *loop, const char *url,
    const char *key, const char *key_file);

/* What is known may be another engine's by now. */
void probe_again(probe_t *probe);

/* Of one that was never begun, too. */
void probe_done(probe_t *probe);

/* "vllm 0.11.0"; "" while it is not known. */
void probe_name(const probe_t *probe, char *name, size_t bytes);

#endif /* PROBE_H */
