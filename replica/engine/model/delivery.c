
#include <stdlib.h>
#include <string.h>

#include "replica/engine/model/delivery.h"


/* Makes room for one more at the end: moves the list to the array's beginning,
   or to a larger array. */
static int
model_delivery_reserve(model_deliveries_t *list)
{
    size_t         capacity;
    model_delivery_t  *items;

    if (list->first + list->n < list->capacity) {
        return 0;
    }

    if (list->n > list->capacity / 2 || list->capacity == 0) {
        capacity = list->capacity > 0 ? 2 * list->capacity : 64;
        items = realloc(list->items, capacity * sizeof(model_delivery_t));

        if (items == NULL) {
            return -1;
        }

        list->items = items;
        list->capacity = capacity;
    }

    memmove(list->items, list->items + list->first,
            list->n * sizeof(model_delivery_t));
    list->first = 0;

    return 0;
}


int
model_delivery_add(model_deliveries_t *list, void *run, int64_t at_us)
{
    model_delivery_t  *item;

    if (model_delivery_reserve(list) != 0) {
        return -1;
    }

    item = list->items + list->first + list->n++;

    for ( /* void */ ; item > list->items + list->first
                       && item[-1].at_us > at_us; item--)
    {
        *item = item[-1];
    }

    item->at_us = at_us;
    item->run = run;

    return 0;
}


int64_t
model_delivery_at(const model_deliveries_t *list)
{
    return list->n > 0 ? list->items[list->first].at_us : INT64_MAX;
}


void *
model_delivery_pop(model_deliveries_t *list)
{
    list->n--;

    return list->items[list->first++].run;
}


void
model_delivery_drop(model_deliveries_t *list, const void *run)
{
    size_t         i, n;
    model_delivery_t  *items;

    n = 0;
    items = list->items + list->first;

    for (i = 0; i < list->n; i++) {
        if (items[i].run != run) {
            items[n++] = items[i];
        }
    }

    list->n = n;
}


void
model_delivery_done(model_deliveries_t *list)
{
    free(list->items);
    memset(list, 0, sizeof(model_deliveries_t));
}
