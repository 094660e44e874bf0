
#include <stdlib.h>
#include <string.h>

#include "ctl/field.h"
#include "ctl/shards/shards_view.h"


/*
 * The fields that identify a model: shards with equal ones may serve one
 * request together.
 */
static const char *const  view_identity[] = { "model", "weights", "numerics" };

#define VIEW_NIDENTITY  (sizeof(view_identity) / sizeof(view_identity[0]))


static int
view_compare_models(const json_t *a, const json_t *b)
{
    int     order;
    size_t  i;

    for (i = 0, order = 0; i < VIEW_NIDENTITY && order == 0; i++) {
        order = strcmp(ctl_text(a, view_identity[i]),
                       ctl_text(b, view_identity[i]));
    }

    return order;
}


static json_t *
view_find_model(json_t *models, const json_t *shard)
{
    size_t   i;
    json_t  *model;

    json_array_foreach(models, i, model) {
        if (view_compare_models(model, shard) == 0) {
            return model;
        }
    }

    model = json_pack("{s:s, s:s, s:s, s:I, s:[]}",
                      "model", ctl_text(shard, "model"),
                      "weights", ctl_text(shard, "weights"),
                      "numerics", ctl_text(shard, "numerics"),
                      "layers", ctl_number(shard, "layers"), "shards");
    json_array_append_new(models, model);

    return model;
}


/*
 * The orchestrator's report about a shard that it excludes; NULL: there is
 * none.
 */
static json_t *
view_find_used(const json_t *pipelines, const char *id)
{
    size_t   i;
    json_t  *used;

    json_array_foreach(json_object_get(pipelines, "shards"), i, used) {
        if (strcmp(ctl_text(used, "member"), id) == 0
            && ctl_number(used, "excluded_ms") > 0)
        {
            return used;
        }
    }

    return NULL;
}


static json_t *
view_shard(json_t *member, json_t *shard, const json_t *pipelines)
{
    json_t  *shown, *used;

    shown = json_pack("{s:s, s:O, s:O, s:O, s:O, s:O, s:O, s:O, s:O, s:O,"
                      " s:O, s:O}",
                      "id", ctl_text(member, "id"),
                      "name", json_object_get(shard, "name"),
                      "first", json_object_get(shard, "first"),
                      "last", json_object_get(shard, "last"),
                      "memory", json_object_get(shard, "memory"),
                      "loaded", json_object_get(shard, "loaded"),
                      "usable", json_object_get(shard, "usable"),
                      "state", json_object_get(member, "state"),
                      "service", json_object_get(member, "service"),
                      "draining", json_object_get(member, "draining"),
                      "sessions", json_object_get(member, "active_requests"),
                      "max_sessions", json_object_get(member, "max_capacity"));

    if (shown == NULL) {
        return NULL;
    }

    if (json_object_get(member, "waiting") != NULL) {
        json_object_set(shown, "queue", json_object_get(member, "waiting"));
    }

    if (json_object_get(shard, "zone") != NULL) {
        json_object_set(shown, "zone", json_object_get(shard, "zone"));
    }

    used = view_find_used(pipelines, ctl_text(member, "id"));

    if (used != NULL) {
        json_object_set(shown, "excluded_ms",
                        json_object_get(used, "excluded_ms"));
        json_object_set_new(shown, "excluded_for",
                            json_string(ctl_text(used, "excluded_for")));
    }

    return shown;
}


/*
 * The number of usable shards of each layer, to be freed; NULL: out of memory.
 */
static unsigned *
view_count(const json_t *model)
{
    size_t       i;
    json_t      *shard;
    unsigned    *counts;
    json_int_t   layer, layers;

    layers = ctl_number(model, "layers");
    counts = calloc((size_t) layers + 1, sizeof(unsigned));

    if (counts == NULL) {
        return NULL;
    }

    json_array_foreach(json_object_get(model, "shards"), i, shard) {
        for (layer = ctl_number(shard, "first");
             json_is_true(json_object_get(shard, "usable"))
             && layer <= ctl_number(shard, "last") && layer < layers;
             layer++)
        {
            counts[layer]++;
        }
    }

    return counts;
}


/* [[first,last], ...] of the layers that no usable shard has. */
static json_t *
view_gaps(const unsigned *counts, json_int_t layers)
{
    json_t      *gaps;
    json_int_t   layer, first;

    gaps = json_array();

    for (layer = 0; layer < layers; layer++) {
        if (counts[layer] != 0) {
            continue;
        }

        for (first = layer; layer + 1 < layers && counts[layer + 1] == 0;
             layer++)
        {
            /* void */
        }

        json_array_append_new(gaps, json_pack("[I, I]", first, layer));
    }

    return gaps;
}


static int
view_cover(json_t *model)
{
    size_t       layer;
    json_t      *covered;
    unsigned    *counts;
    json_int_t   layers;

    layers = ctl_number(model, "layers");
    counts = view_count(model);

    if (counts == NULL) {
        return -1;
    }

    covered = json_array();

    for (layer = 0; layer < (size_t) layers; layer++) {
        json_array_append_new(covered, json_integer(counts[layer]));
    }

    json_object_set_new(model, "covered", covered);
    json_object_set_new(model, "gaps", view_gaps(counts, layers));
    free(counts);

    return 0;
}


static int
view_compare_shards(const json_t *a, const json_t *b)
{
    json_int_t  order;

    order = ctl_number(a, "first") - ctl_number(b, "first");
    order = order ? order : ctl_number(a, "last") - ctl_number(b, "last");

    return order < 0 ? -1
           : order > 0 ? 1 : strcmp(ctl_text(a, "id"), ctl_text(b, "id"));
}


typedef int (*view_compare_pt)(const json_t *a, const json_t *b);


/* Inserts an element at its place in the array, whose elements are in order. */
static void
view_insert(json_t *array, json_t *element, view_compare_pt compare)
{
    size_t  i;

    for (i = json_array_size(array);
         i > 0 && compare(json_array_get(array, i - 1), element) > 0; i--)
    {
        /* void */
    }

    json_array_insert_new(array, i, element);
}


/* Returns the models in order, each with its coverage; consumes them. */
static json_t *
view_finish(json_t *models)
{
    size_t   i;
    json_t  *model, *sorted;

    sorted = json_array();

    json_array_foreach(models, i, model) {
        if (view_cover(model) != 0) {
            json_decref(models);
            json_decref(sorted);
            return NULL;
        }

        view_insert(sorted, json_incref(model), view_compare_models);
    }

    json_decref(models);

    return sorted;
}


json_t *
ctl_shards_collect(const json_t *members, const json_t *pipelines)
{
    size_t   i;
    json_t  *member, *models, *shard, *shown, *silent;

    models = json_array();
    silent = json_array();

    json_array_foreach(members, i, member) {
        if (strcmp(ctl_text(member, "role"), "shard") != 0) {
            continue;
        }

        shard = json_object_get(member, "shard");
        shown = shard ? view_shard(member, shard, pipelines) : NULL;

        if (shown != NULL) {
            view_insert(json_object_get(view_find_model(models, shard),
                                        "shards"),
                        shown, view_compare_shards);
        } else {
            json_array_append_new(silent,
                                  json_string(ctl_text(member, "id")));
        }
    }

    models = view_finish(models);

    if (models == NULL) {
        json_decref(silent);
        return NULL;
    }

    return json_pack("{s:o, s:o}", "models", models, "silent", silent);
}
