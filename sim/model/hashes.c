
#include <stdlib.h>
#include <string.h>

#include "sim/model/hashes.h"


#define PLACES_MIN  64


/*
 * The place where a key belongs.  The key is mixed, since a caller's hashes may
 * be poor in their low bits.
 */
static uint32_t
hashes_home(const model_hashes_t *hashes, uint64_t key)
{
    return (uint32_t) ((key * 0x9e3779b97f4a7c15ull) >> 32)
           & (hashes->nplaces - 1);
}


/* The place of a key, or the free place where it belongs. */
static uint32_t
hashes_find(const model_hashes_t *hashes, uint64_t key)
{
    uint32_t  i;

    i = hashes_home(hashes, key);

    while (hashes->places[i].value != MODEL_HASHES_NONE
           && hashes->places[i].key != key)
    {
        i = (i + 1) & (hashes->nplaces - 1);
    }

    return i;
}


uint32_t
model_hashes_get(const model_hashes_t *hashes, uint64_t key)
{
    if (hashes->n == 0) {
        return MODEL_HASHES_NONE;
    }

    return hashes->places[hashes_find(hashes, key)].value;
}


static int
hashes_grow(model_hashes_t *hashes)
{
    uint32_t        i;
    model_hashes_t  larger;

    larger.n = hashes->n;
    larger.nplaces = hashes->nplaces > 0 ? 2 * hashes->nplaces : PLACES_MIN;
    larger.places = malloc(larger.nplaces * sizeof(model_hash_t));

    if (larger.places == NULL) {
        return -1;
    }

    memset(larger.places, 0xff, larger.nplaces * sizeof(model_hash_t));

    for (i = 0; i < hashes->nplaces; i++) {
        if (hashes->places[i].value != MODEL_HASHES_NONE) {
            larger.places[hashes_find(&larger, hashes->places[i].key)] =
                hashes->places[i];
        }
    }

    free(hashes->places);
    *hashes = larger;

    return 0;
}


int
model_hashes_put(model_hashes_t *hashes, uint64_t key, uint32_t value)
{
    model_hash_t  *place;

    if (4 * (uint64_t) (hashes->n + 1) > 3 * (uint64_t) hashes->nplaces
        && hashes_grow(hashes) != 0)
    {
        return -1;
    }

    place = &hashes->places[hashes_find(hashes, key)];
    hashes->n += place->value == MODEL_HASHES_NONE;
    place->key = key;
    place->value = value;

    return 0;
}


/* Fills the hole with entries that could not be found after it otherwise. */
static void
hashes_close(model_hashes_t *hashes, uint32_t hole)
{
    uint32_t  i, mask, home;

    mask = hashes->nplaces - 1;

    for (i = (hole + 1) & mask; hashes->places[i].value != MODEL_HASHES_NONE;
         i = (i + 1) & mask)
    {
        home = hashes_home(hashes, hashes->places[i].key);

        if (((i - home) & mask) >= ((i - hole) & mask)) {
            hashes->places[hole] = hashes->places[i];
            hole = i;
        }
    }

    hashes->places[hole].value = MODEL_HASHES_NONE;
}


int
model_hashes_remove(model_hashes_t *hashes, uint64_t key)
{
    uint32_t  i;

    if (hashes->n == 0) {
        return 0;
    }

    i = hashes_find(hashes, key);

    if (hashes->places[i].value == MODEL_HASHES_NONE) {
        return 0;
    }

    hashes_close(hashes, i);
    hashes->n--;

    return 1;
}


void
model_hashes_clear(model_hashes_t *hashes)
{
    if (hashes->n > 0) {
        memset(hashes->places, 0xff, hashes->nplaces * sizeof(model_hash_t));
        hashes->n = 0;
    }
}


void
model_hashes_done(model_hashes_t *hashes)
{
    free(hashes->places);
    memset(hashes, 0, sizeof(model_hashes_t));
}
