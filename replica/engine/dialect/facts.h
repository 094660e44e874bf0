
/*
 * Readers of answers that the probes of several dialects share.
 */

#ifndef FACTS_H
#define FACTS_H

#include "proto/json/walk.h"
#include "replica/engine/dialect/dialect.h"


/* The fields of a metrics page. */
enum {
    FACTS_RUNNING,
    FACTS_WAITING,
    FACTS_KV,
    FACTS_BLOCKS,           /* of the cache, used and free */
    FACTS_HITS,
    FACTS_LOOKED_UP,
    FACTS_HIT_SHARE,
    FACTS_PROGRESS,
    FACTS_NMETRICS
};


/* --- prom.c: the figures of a Prometheus page */

typedef enum {
    PROM_SUM,       /* over all labels: engines behind one server */
    PROM_MAX
} prom_join_t;

typedef struct {
    const char   *name;         /* NULL ends the table */
    int           field;        /* which value it is, from 0 */
    prom_join_t   join;
    const char   *label;        /* the number is this label's value; NULL: the
                                   sample's value */
} prom_name_t;

/*
 * Reads the samples of the table's names; all others are skipped. values are in
 * thousandths; -1: the page has no such sample.  0, or -1: none was found.
 */
int prom_read(const char *text, size_t len, const prom_name_t *names,
    int64_t *values, int nvalues);


/* --- facts.c */

/* Reads a page of metrics, whose names are in the table. */
int facts_metrics(dialect_facts_t *facts, unsigned status, const char *body,
    size_t len, const prom_name_t *names);

/* Reads the answer to GET /v1/models: names, the longest context, and what
   tells weights apart. */
int facts_models(dialect_facts_t *facts, unsigned status, const char *body,
    size_t len);

/* Reads the answer to GET /health: 200 is READY; `ill` is the state that a 5xx
   of this engine means. */
int facts_health(dialect_facts_t *facts, unsigned status,
    dialect_state_t ill);

/* 0, and the object, if the answer is 200 and a JSON object; else -1. */
int facts_object(unsigned status, const char *body, size_t len,
    llmgw_json_t *object);

/* Which answer each entry of facts->numerics is from: a new answer replaces
   only its own entry. */
enum {
    FACTS_OF_MODELS,
    FACTS_OF_SERVER
};

/*
 * Mixes a setting that shapes the engine's text into a hash.  Its name is
 * hashed too, so that two settings with exchanged values have another hash.
 * The order of calls does not matter, and an absent value changes nothing.
 */
void facts_mix(uint64_t *numerics, const char *name, llmgw_json_t value);
void facts_mix_all(uint64_t *numerics, const char *const *names,
    llmgw_json_t object);

#endif /* FACTS_H */
