
/*
 * What several dialects' probes learn in the same way.
 */

#ifndef FACTS_H
#define FACTS_H

#include "proto/json/walk.h"
#include "replica/engine/dialect/dialect.h"
#include "replica/engine/dialect/prom.h"


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
