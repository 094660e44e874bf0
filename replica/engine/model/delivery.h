
/*
 * Tokens that leave at a known time: a step's at its end.
 *
 * They are kept in order of time.  Steps follow each other, so a new one nearly
 * always belongs at the end.
 */

#ifndef MODEL_OWED_H
#define MODEL_OWED_H

#include <stddef.h>
#include <stdint.h>


typedef struct {
    int64_t   at_us;
    void     *run;
} model_owed_t;

typedef struct {
    model_owed_t  *items;
    size_t         first, n, capacity;
} model_owed_list_t;


/* 0, or -1: memory. */
int model_owed_add(model_owed_list_t *list, void *run, int64_t at_us);

/* The time of the first one; INT64_MAX: there is none. */
int64_t model_owed_at(const model_owed_list_t *list);

/* Takes the first one: its run. */
void *model_owed_pop(model_owed_list_t *list);

/* Drops all of a run that ends. */
void model_owed_drop(model_owed_list_t *list, const void *run);

void model_owed_done(model_owed_list_t *list);

#endif /* MODEL_OWED_H */
