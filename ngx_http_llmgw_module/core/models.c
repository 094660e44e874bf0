
/* The models of a pool: models.h. */

#include <stdlib.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "core/models.h"


uint64_t
llmgw_models_hash(const char *name, size_t len)
{
    return XXH3_64bits(name, len);
}


uint32_t
llmgw_models_find(const llmgw_models_t *models, uint64_t hash, int is_cut)
{
    uint32_t                   i;
    const llmgw_model_list_t  *list;

    for (i = 1; i < LLMGW_MODELS_MAX; i++) {
        list = models->lists[i];

        if (list != NULL && list->hash == hash && list->is_cut == is_cut) {
            return i;
        }
    }

    return 0;
}


static uint32_t
list_count(const char *names, size_t bytes)
{
    size_t    at;
    uint32_t  n;

    for (at = 0, n = 0; at < bytes; n++) {
        at += strlen(names + at) + 1;
    }

    return n;
}


size_t
llmgw_models_bytes(const char *names, size_t bytes)
{
    return sizeof(llmgw_model_list_t)
           + list_count(names, bytes) * sizeof(uint64_t) + bytes;
}


static void
list_init(llmgw_model_list_t *list, uint64_t hash, int is_cut,
    const char *names, size_t bytes)
{
    size_t  at, len;

    *list = (llmgw_model_list_t) { .hash = hash, .is_cut = is_cut != 0,
                                   .n = list_count(names, bytes),
                                   .bytes = bytes };

    list->names = memcpy(&list->hashes[list->n], names, bytes);
    list->n = 0;

    for (at = 0; at < bytes; at += len + 1) {
        len = strlen(names + at);
        list->hashes[list->n++] = llmgw_models_hash(names + at, len);
    }

    list->base = list->hashes[0];
}


uint32_t
llmgw_models_add(llmgw_models_t *models, void *memory, uint64_t hash,
    int is_cut, const char *names, size_t bytes)
{
    uint32_t  i;

    for (i = 1; i < LLMGW_MODELS_MAX; i++) {
        if (models->lists[i] == NULL) {
            list_init(memory, hash, is_cut, names, bytes);
            models->lists[i] = memory;
            return i;
        }
    }

    return 0;
}


llmgw_model_list_t *
llmgw_models_remove(llmgw_models_t *models, uint32_t number)
{
    llmgw_model_list_t  *list;

    list = models->lists[number];
    models->lists[number] = NULL;

    return list;
}


/* The replicas of all lists with the base model of this one. */
static llmgw_model_base_t
base_count(const llmgw_models_t *models, const llmgw_model_list_t *of)
{
    uint32_t                   i;
    llmgw_model_base_t         base;
    const llmgw_model_list_t  *list;

    base = (llmgw_model_base_t) { .hash = of->base, .name = of->names };

    for (i = 1; i < LLMGW_MODELS_MAX; i++) {
        list = models->lists[i];

        if (list != NULL && list->base == of->base) {
            base.nmembers += list->nmembers;
            base.serves |= list->nserving != 0;
        }
    }

    return base;
}


/*
 * Base models whose replicas serve come first; then those with more replicas;
 * then by name.
 */
static int
base_order(const void *a, const void *b)
{
    const llmgw_model_base_t  *x = a, *y = b;

    if (x->serves != y->serves) {
        return y->serves - x->serves;
    }

    if (x->nmembers != y->nmembers) {
        return x->nmembers < y->nmembers ? 1 : -1;
    }

    return strcmp(x->name, y->name);
}


static int
bases_have(const llmgw_model_base_t *bases, size_t n, uint64_t hash)
{
    size_t  i;

    for (i = 0; i < n; i++) {
        if (bases[i].hash == hash) {
            return 1;
        }
    }

    return 0;
}


size_t
llmgw_models_bases(const llmgw_models_t *models, llmgw_model_base_t *bases)
{
    size_t                     n;
    uint32_t                   i;
    const llmgw_model_list_t  *list;

    for (i = 1, n = 0; i < LLMGW_MODELS_MAX; i++) {
        list = models->lists[i];

        if (list != NULL && list->nmembers != 0
            && !bases_have(bases, n, list->base))
        {
            bases[n++] = base_count(models, list);
        }
    }

    qsort(bases, n, sizeof(llmgw_model_base_t), base_order);

    return n;
}


const llmgw_model_list_t *
llmgw_models_named(const llmgw_models_t *models, uint64_t base)
{
    uint32_t                   i;
    const llmgw_model_list_t  *list;

    for (i = 1; base != 0 && i < LLMGW_MODELS_MAX; i++) {
        list = models->lists[i];

        if (list != NULL && list->nmembers != 0 && list->base == base) {
            return list;
        }
    }

    return NULL;
}


const llmgw_model_list_t *
llmgw_models_yielding(const llmgw_models_t *models)
{
    size_t              i, n;
    llmgw_model_base_t  bases[LLMGW_MODELS_MAX], first;

    n = llmgw_models_bases(models, bases);

    if (n == 0) {
        return NULL;
    }

    first = bases[0];

    for (i = 0; i < n; i++) {
        bases[i].serves = 0;
    }

    qsort(bases, n, sizeof(llmgw_model_base_t), base_order);

    return bases[0].hash != first.hash
           ? llmgw_models_named(models, bases[0].hash) : NULL;
}


int
llmgw_models_route(llmgw_models_t *models, const uint64_t *bases, size_t n)
{
    int                  is_other, has_changed;
    size_t               k;
    uint32_t             i;
    llmgw_model_list_t  *list;

    has_changed = 0;

    for (i = 1; i < LLMGW_MODELS_MAX; i++) {
        list = models->lists[i];

        if (list == NULL) {
            continue;
        }

        for (k = 0; k < n && bases[k] != list->base; k++) {
            /* void */
        }

        is_other = (k == n);
        has_changed |= list->is_other != is_other;
        list->is_other = is_other;
    }

    return has_changed;
}


int
llmgw_models_settle(llmgw_models_t *models, uint64_t *base)
{
    llmgw_model_base_t  bases[LLMGW_MODELS_MAX];

    *base = llmgw_models_bases(models, bases) != 0 ? bases[0].hash : 0;

    return *base != 0 && llmgw_models_route(models, base, 1);
}


/* A list that some replica has, and whose base model is routed; else NULL. */
static const llmgw_model_list_t *
list_at(const llmgw_models_t *models, uint32_t number)
{
    const llmgw_model_list_t  *list;

    list = models->lists[number];

    return list != NULL && list->nmembers != 0 && !list->is_other ? list : NULL;
}


static int
list_has(const llmgw_model_list_t *list, uint64_t name)
{
    uint32_t  i;

    for (i = 0; i < list->n; i++) {
        if (list->hashes[i] == name) {
            return 1;
        }
    }

    return 0;
}


static llmgw_serves_t
list_serves(const llmgw_model_list_t *list, uint64_t name)
{
    if (list->base == name) {
        return LLMGW_SERVES_ALL;
    }

    if (list_has(list, name)) {
        return LLMGW_SERVES_SOME;
    }

    return list->is_cut ? LLMGW_SERVES_MAYBE : LLMGW_SERVES_NOT;
}


llmgw_serves_t
llmgw_models_serves(const llmgw_models_t *models, uint64_t base,
    uint64_t name)
{
    uint32_t                   i;
    llmgw_serves_t             serves, best;
    const llmgw_model_list_t  *list;

    best = LLMGW_SERVES_NOT;

    for (i = 1; i < LLMGW_MODELS_MAX; i++) {
        list = list_at(models, i);

        if (list != NULL && list->base == base) {
            serves = list_serves(list, name);
            best = serves > best ? serves : best;
        }
    }

    return best;
}


llmgw_serves_t
llmgw_models_find_base(const llmgw_models_t *models, uint64_t first,
    uint64_t name, uint64_t *base)
{
    uint32_t                   i;
    llmgw_serves_t             serves, best;
    const llmgw_model_list_t  *list;

    best = LLMGW_SERVES_NOT;

    for (i = 1; i < LLMGW_MODELS_MAX; i++) {
        list = list_at(models, i);
        serves = list != NULL ? list_serves(list, name) : LLMGW_SERVES_NOT;

        if (serves == LLMGW_SERVES_NOT || serves < best
            || (serves == best && (*base == first || (list->base != first
                                                      && *base < list->base))))
        {
            continue;
        }

        best = serves;
        *base = list->base;
    }

    return best;
}


int
llmgw_models_list_has(const llmgw_models_t *models, uint32_t number,
    uint64_t name)
{
    return models->lists[number] != NULL
           && list_has(models->lists[number], name);
}


int
llmgw_models_are_reported(const llmgw_models_t *models, uint64_t name)
{
    uint32_t                   i;
    const llmgw_model_list_t  *list;

    for (i = 1; i < LLMGW_MODELS_MAX; i++) {
        list = models->lists[i];

        if (list != NULL && list->nmembers != 0 && list_has(list, name)) {
            return 1;
        }
    }

    return 0;
}


/* The lists that have the name, or may have it because they are cut. */
static void
models_select(const llmgw_models_t *models, uint64_t base, uint64_t name,
    llmgw_model_set_t *set)
{
    uint32_t                   i;
    const llmgw_model_list_t  *list;

    *set = (llmgw_model_set_t) { { 0 } };

    for (i = 1; i < LLMGW_MODELS_MAX; i++) {
        list = list_at(models, i);

        if (list != NULL && (base == 0 || list->base == base)
            && (list->is_cut || list_has(list, name)))
        {
            set->words[i / 64] |= 1ULL << i % 64;
        }
    }
}


int
llmgw_models_restrict(const llmgw_models_t *models, uint64_t base,
    uint64_t wanted, uint64_t name, llmgw_model_set_t *set)
{
    if (wanted != 0 && base != 0 && wanted != base) {
        *set = (llmgw_model_set_t) { { 0 } };
        return 1;
    }

    if (name == 0) {
        return 0;
    }

    models_select(models, base, name, set);

    return 1;
}


size_t
llmgw_models_count(const llmgw_models_t *models)
{
    size_t                     n;
    uint32_t                   i;
    const llmgw_model_list_t  *list;

    for (i = 1, n = 0; i < LLMGW_MODELS_MAX; i++) {
        list = list_at(models, i);
        n += list != NULL && list->nliving != 0 ? list->n : 0;
    }

    return n;
}


static int
order_names(const void *a, const void *b)
{
    return strcmp(*(const char *const *) a, *(const char *const *) b);
}


size_t
llmgw_models_names(const llmgw_models_t *models, const char **names)
{
    size_t                     at, i, n, unique;
    const llmgw_model_list_t  *list;

    for (i = 1, n = 0; i < LLMGW_MODELS_MAX; i++) {
        list = list_at(models, (uint32_t) i);

        if (list == NULL || list->nliving == 0) {
            continue;
        }

        for (at = 0; at < list->bytes; at += strlen(list->names + at) + 1) {
            names[n++] = list->names + at;
        }
    }

    qsort(names, n, sizeof(char *), order_names);

    for (i = 0, unique = 0; i < n; i++) {
        if (i == 0 || strcmp(names[unique - 1], names[i]) != 0) {
            names[unique++] = names[i];
        }
    }

    return unique;
}


int
llmgw_models_has(const char *const *names, size_t n, const char *name,
    size_t len)
{
    int     order;
    size_t  from, to, middle;

    for (from = 0, to = n; from < to; ) {
        middle = from + (to - from) / 2;
        order = strncmp(names[middle], name, len);

        if (order == 0 && names[middle][len] == '\0') {
            return 1;
        }

        if (order < 0) {
            from = middle + 1;

        } else {
            to = middle;
        }
    }

    return 0;
}
