
/*
 * A map from 64-bit hashes of blocks to 32-bit numbers: open addressing with
 * linear probing, at most three quarters full, and without tombstones, since a
 * removal moves displaced entries back.
 */

#ifndef MODEL_HASHES_H
#define MODEL_HASHES_H

#include <stddef.h>
#include <stdint.h>


#define MODEL_HASHES_NONE  UINT32_MAX

typedef struct {
    uint64_t  key;
    uint32_t  value;                /* MODEL_HASHES_NONE: the place is free */
} model_hash_t;

/* A map; a zeroed one is empty. */
typedef struct {
    model_hash_t  *places;
    uint32_t       nplaces;         /* a power of two, or 0 */
    uint32_t       n;
} model_hashes_t;


/* Returns the value of a key, MODEL_HASHES_NONE if it is not there. */
uint32_t model_hashes_get(const model_hashes_t *hashes, uint64_t key);

/* Sets the value of a key.  0, or -1: no memory. */
int model_hashes_put(model_hashes_t *hashes, uint64_t key, uint32_t value);

/* Removes a key.  1 if it was there, else 0. */
int model_hashes_remove(model_hashes_t *hashes, uint64_t key);

/* Removes all keys and keeps the memory. */
void model_hashes_clear(model_hashes_t *hashes);

void model_hashes_done(model_hashes_t *hashes);

/*
 * Extends the hash of a sequence of words by one word; the hash of none is 0.
 */
static inline uint64_t
model_hashes_mix(uint64_t hash, uint64_t word)
{
    hash = (hash ^ word) * 0x9e3779b97f4a7c15ull + 1;

    return hash ^ hash >> 29;
}

#endif /* MODEL_HASHES_H */
