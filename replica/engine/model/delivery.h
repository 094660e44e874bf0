
/*
 * Tokens that are sent at a known time: those of a step at its end.
 *
 * The list is in order of time.  Steps follow each other, so a new one nearly
 * always belongs at the end.
 */

#ifndef MODEL_DELIVERY_H
#define MODEL_DELIVERY_H

#include <stddef.h>
#include <stdint.h>


typedef struct {
    int64_t   at_us;
    void     *run;
} model_delivery_t;

typedef struct {
    model_delivery_t  *items;
    size_t         first, n, capacity;
} model_deliveries_t;


/* 0, or -1: memory. */
int model_delivery_add(model_deliveries_t *list, void *run, int64_t at_us);

/* The time of the first one; INT64_MAX: there is none. */
int64_t model_delivery_at(const model_deliveries_t *list);

/* Removes the first one, and returns its run. */
void *model_delivery_pop(model_deliveries_t *list);

/* Drops all tokens of a run that ends. */
void model_delivery_drop(model_deliveries_t *list, const void *run);

void model_delivery_done(model_deliveries_t *list);

#endif /* MODEL_DELIVERY_H */
