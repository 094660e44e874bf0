
/*
 * What an engine says about itself, asked again and again: whether it is
 * healthy, what it serves, how much it has to do.
 *
 * It finds the engine's dialect (`auto`), drives health.h with the answers,
 * and writes the engine's facts.
 */

#ifndef SCRAPE_H
#define SCRAPE_H

#include "replica/engine/dialect/dialect.h"
#include "replica/engine/engine.h"
#include "replica/engine/health.h"
#include "replica/engine/hits.h"
#include "replica/engine/http.h"


typedef struct {
    engine_t           *engine;
    http_whole_t             answer;         /* to the question that is asked */
    const dialect_t    *dialect;        /* NULL: not found out yet */
    dialect_facts_t     facts;          /* for its calls */
    health_t            health;
    hits_t              hits;

    /* scrape.c's own */
    ev_timer            timer;
    uint32_t            streams;        /* that were open at the last look */
    uint64_t            began_ms;       /* this look */
    size_t              at;             /* in the table of probes */
    health_capacity_t   capacity;
    int32_t             max_capacity;   /* configured; ENGINE_CAPACITY_AUTO */
    uint64_t            once_ms;        /* when it was last asked for what
                                           seldom changes; 0: never */
    int                 is_urgent;      /* look again right away */
    int                 is_answered;    /* this look; `auto`: by 200 */
    int                 is_mute;        /* the log has that it tells nothing */
    http_end_t          trouble;        /* and that it does not answer */
} scrape_t;


/*
 * The first part is filled in: engine, dialect (NULL: find it out) and the
 * answer's client.
 */
void scrape_init(scrape_t *scrape, const engine_options_t *options);
void scrape_done(scrape_t *scrape);

/* A stream broke: is the engine still there? */
void scrape_now(scrape_t *scrape);

/* Bytes that were generated came on a stream of ours. */
void scrape_bytes(scrape_t *scrape, uint64_t now_ms);

/* Time passes, a few times a second: see health_look(). */
void scrape_look(scrape_t *scrape, uint32_t streams, uint64_t now_ms);

#endif /* SCRAPE_H */
