
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


/* The replicas of all lists with one base model. */
typedef struct {
    uint64_t  nmembers;
    int       serves;           /* some of them do, or are about to */
} count_t;


static count_t
base_count(const llmgw_models_t *models, uint64_t base)
{
    count_t                    count;
    uint32_t                   i;
    const llmgw_model_list_t  *list;

    count = (count_t) { 0, 0 };

    for (i = 1; i < LLMGW_MODELS_MAX; i++) {
        list = models->lists[i];

        if (list != NULL && list->base == base) {
            count.nmembers += list->nmembers;
            count.serves |= list->nserving != 0;
        }
    }

    return count;
}


/* Like strcmp: above 0 if a's base model goes before b's. */
static int
count_order(const count_t *a, const count_t *b)
{
    if (a->serves != b->serves) {
        return a->serves - b->serves;
    }

    return (a->nmembers > b->nmembers) - (a->nmembers < b->nmembers);
}


/* by_members: by their number alone, whether any of them serves or not. */
static const llmgw_model_list_t *
base_choose(const llmgw_models_t *models, int by_members)
{
    count_t                    count, most;
    uint32_t                   i;
    const llmgw_model_list_t  *list, *chosen;

    most = (count_t) { 0, 0 };
    chosen = NULL;

    for (i = 1; i < LLMGW_MODELS_MAX; i++) {
        list = models->lists[i];

        if (list == NULL || list->nmembers == 0
            || (chosen != NULL && chosen->base == list->base))
        {
            continue;
        }

        count = base_count(models, list->base);
        count.serves = !by_members && count.serves;

        if (chosen == NULL || count_order(&count, &most) > 0
            || (count_order(&count, &most) == 0
                && strcmp(list->names, chosen->names) < 0))
        {
            most = count;
            chosen = list;
        }
    }

    return chosen;
}


const llmgw_model_list_t *
llmgw_models_base(const llmgw_models_t *models)
{
    return base_choose(models, 0);
}


const llmgw_model_list_t *
llmgw_models_yielding(const llmgw_models_t *models)
{
    const llmgw_model_list_t  *most, *base;

    most = base_choose(models, 1);
    base = base_choose(models, 0);

    return most != NULL && most->base != base->base ? most : NULL;
}


int
llmgw_models_settle(llmgw_models_t *models)
{
    int                        is_other, has_changed;
    uint32_t                   i;
    llmgw_model_list_t        *list;
    const llmgw_model_list_t  *base;

    has_changed = 0;
    base = llmgw_models_base(models);
    models->base = base != NULL ? base->base : 0;

    for (i = 1; i < LLMGW_MODELS_MAX; i++) {
        list = models->lists[i];

        if (list != NULL && base != NULL) {
            is_other = list->base != base->base;
            has_changed |= list->is_other != is_other;
            list->is_other = is_other;
        }
    }

    return has_changed;
}


/* A list of the pool's base model that some replica has; else NULL. */
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


llmgw_serves_t
llmgw_models_serves(const llmgw_models_t *models, uint64_t name)
{
    uint32_t                   i;
    llmgw_serves_t             serves;
    const llmgw_model_list_t  *list;

    serves = LLMGW_SERVES_NOT;

    for (i = 1; i < LLMGW_MODELS_MAX; i++) {
        list = list_at(models, i);

        if (list == NULL) {
            continue;
        }

        if (list->base == name) {
            return LLMGW_SERVES_ALL;
        }

        if (list_has(list, name)) {
            serves = LLMGW_SERVES_SOME;

        } else if (list->is_cut && serves == LLMGW_SERVES_NOT) {
            serves = LLMGW_SERVES_MAYBE;
        }
    }

    return serves;
}


/* The lists that have the name or lack names. */
static void
models_select(const llmgw_models_t *models, uint64_t name,
    llmgw_model_set_t *set)
{
    uint32_t                   i;
    const llmgw_model_list_t  *list;

    *set = (llmgw_model_set_t) { { 0 } };

    for (i = 1; i < LLMGW_MODELS_MAX; i++) {
        list = list_at(models, i);

        if (list != NULL && (list->is_cut || list_has(list, name))) {
            set->words[i / 64] |= 1ULL << i % 64;
        }
    }
}


int
llmgw_models_restrict(const llmgw_models_t *models, uint64_t base,
    uint64_t name, llmgw_model_set_t *set)
{
    if (base != 0 && models->base != 0 && base != models->base) {
        *set = (llmgw_model_set_t) { { 0 } };
        return 1;
    }

    if (name == 0) {
        return 0;
    }

    models_select(models, name, set);

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
