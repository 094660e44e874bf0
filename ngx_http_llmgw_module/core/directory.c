
/* The assignment of base models to pools: directory.h. */

#include <string.h>

#include "core/directory.h"


/*
 * The lock orders stores for other processors; here only the compiler must be
 * kept from reordering them.
 */
#define DIRECTORY_FENCE()  __atomic_signal_fence(__ATOMIC_SEQ_CST)


uint32_t
llmgw_directory_find(const llmgw_directory_t *directory, uint32_t n,
    uint64_t hash)
{
    uint32_t  i;

    for (i = 0; hash != 0 && i < n; i++) {
        if (directory->places[i].hash == hash) {
            return i;
        }
    }

    return LLMGW_DIRECTORY_NONE;
}


uint32_t
llmgw_directory_free(const llmgw_directory_t *directory, uint32_t n)
{
    uint32_t  i;

    for (i = 0; i < n; i++) {
        if (directory->places[i].hash == 0) {
            return i;
        }
    }

    return LLMGW_DIRECTORY_NONE;
}


uint32_t
llmgw_directory_bind(llmgw_directory_t *directory, uint32_t n,
    const char *name, uint64_t hash, uint64_t now_ms)
{
    size_t                    len;
    uint32_t                  i;
    llmgw_directory_place_t  *place;

    i = llmgw_directory_find(directory, n, hash);

    if (i != LLMGW_DIRECTORY_NONE) {
        return i;
    }

    len = strlen(name);
    i = llmgw_directory_free(directory, n);

    if (i == LLMGW_DIRECTORY_NONE || hash == 0 || len == 0
        || len >= LLMGW_DIRECTORY_NAME_BYTES)
    {
        return LLMGW_DIRECTORY_NONE;
    }

    place = &directory->places[i];

    directory->nbindings++;
    place->binding = directory->nbindings;
    place->used_ms = now_ms;
    memcpy(place->name, name, len + 1);

    DIRECTORY_FENCE();
    __atomic_store_n(&place->hash, hash, __ATOMIC_RELAXED);
    DIRECTORY_FENCE();

    return i;
}


void
llmgw_directory_use(llmgw_directory_t *directory, uint32_t place,
    uint64_t now_ms)
{
    directory->places[place].used_ms = now_ms;
}


int
llmgw_directory_is_unused(const llmgw_directory_t *directory, uint32_t i,
    int is_wanted, uint64_t now_ms)
{
    uint64_t                        kept_ms;
    const llmgw_directory_place_t  *place;

    place = &directory->places[i];
    kept_ms = is_wanted ? LLMGW_DIRECTORY_UNUSED_MS : LLMGW_DIRECTORY_KEPT_MS;

    /* another process may have stored a later time than ours */

    return place->hash != 0 && now_ms > place->used_ms
           && now_ms - place->used_ms >= kept_ms;
}


void
llmgw_directory_unbind(llmgw_directory_t *directory, uint32_t place)
{
    DIRECTORY_FENCE();
    __atomic_store_n(&directory->places[place].hash, 0, __ATOMIC_RELAXED);
    DIRECTORY_FENCE();
}


int
llmgw_directory_refused(llmgw_directory_t *directory, uint32_t n)
{
    int  is_more;

    is_more = n > directory->nrefused;
    directory->nrefused = n;

    return is_more;
}
