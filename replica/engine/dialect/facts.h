
/*
 * What several dialects' probes learn in the same way.
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
    const char   *label;        /* the number is this label's; NULL: the
                                   sample's */
} prom_name_t;

/*
 * Reads the names of the table.  Values are thousandths; -1: it is not on the
 * page.  What is no sample of these names is skipped.  -1: none was found.
 */
int prom_read(const char *text, size_t len, const prom_name_t *names,
    int64_t *values, int nvalues);


/* --- facts.c */

/* A page of metrics, by its names. */
int facts_metrics(dialect_facts_t *facts, unsigned status, const char *body,
    size_t len, const prom_name_t *names);

/* GET /v1/models: names, the longest context, and what tells weights apart. */
int facts_models(dialect_facts_t *facts, unsigned status, const char *body,
    size_t len);

/* GET /health: 200, or what a 5xx means to this engine. */
int facts_health(dialect_facts_t *facts, unsigned status,
    dialect_state_t ill);

/* An answer of 200 that is an object; -1: it is not. */
int facts_object(unsigned status, const char *body, size_t len,
    llmgw_json_t *object);

/* Which answer a part of facts->numerics is from; it replaces its own. */
enum {
    FACTS_OF_MODELS,
    FACTS_OF_SERVER
};

/*
 * Mixes in what shapes the engine's text, by name: two that are exchanged do
 * not cancel out, their order does not matter, what is absent changes nothing.
 */
void facts_mix(uint64_t *numerics, const char *name, llmgw_json_t value);
void facts_mix_all(uint64_t *numerics, const char *const *names,
    llmgw_json_t object);

#endif /* FACTS_H */
