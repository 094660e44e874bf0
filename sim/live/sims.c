
/* Results of a simulation, read from JSON and found by id. */

#include "sim/live/sims.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "sim/work/file.h"


/* Reads a whole file as JSON; NULL and *error. */
static json_t *
json_of_file(const char *path, work_error_t *error)
{
    char          *bytes;
    size_t         len;
    json_t        *json;
    json_error_t   wrong;

    bytes = work_file_read(path, &len, error);

    if (bytes == NULL) {
        return NULL;
    }

    json = json_loadb(bytes, len, 0, &wrong);
    free(bytes);

    if (json == NULL) {
        work_fail(error, path, (size_t) (wrong.line > 0 ? wrong.line : 1),
                  "no JSON: %s", wrong.text);
    }

    return json;
}


static int
get_number(const json_t *item, const char *key, int required, double *value)
{
    json_t  *got;

    got = json_object_get(item, key);

    if (got == NULL && !required) {
        return 0;
    }

    if (!json_is_number(got)) {
        return -1;
    }

    *value = json_number_value(got);

    return 0;
}


static int
get_whole(const json_t *item, const char *key, int64_t *value)
{
    json_t  *got;

    got = json_object_get(item, key);

    if (!json_is_integer(got)) {
        return -1;
    }

    *value = json_integer_value(got);

    return 0;
}


static const work_name_t *
get_name(live_sims_t *sims, const json_t *item, const char *key)
{
    const char  *text;

    text = json_string_value(json_object_get(item, key));

    return work_name(&sims->names, text != NULL ? text : "",
                     text != NULL ? strlen(text) : 0);
}


static int
sim_order(const void *a, const void *b)
{
    const live_sim_t  *x, *y;

    x = a;
    y = b;

    return x->id < y->id ? -1 : x->id > y->id;
}


static int
sims_fill(live_sims_t *sims, const json_t *json, const char *path,
    work_error_t *error)
{
    size_t         i;
    live_sim_t    *s;
    const json_t  *item;

    for (i = 0; i < json_array_size(json); i++) {
        item = json_array_get(json, i);
        s = &sims->sims[sims->n++];

        if (get_whole(item, "request_id", &s->id) != 0
            || get_number(item, "ttft_us", 1, &s->ttft_us) != 0
            || get_number(item, "e2e_us", 1, &s->e2e_us) != 0
            || get_whole(item, "input_tokens", &s->input_tokens) != 0
            || get_whole(item, "output_tokens", &s->output_tokens) != 0
            || get_number(item, "itl_mean_us", 0, &s->itl_mean_us) != 0)
        {
            return work_fail(error, path, 0, "result %zu lacks request_id, "
                             "ttft_us, e2e_us, input_tokens or output_tokens "
                             "as numbers", i);
        }

        s->slo_class = get_name(sims, item, "slo_class");
        s->model = get_name(sims, item, "model");
    }

    return 0;
}


int
live_sims_read(live_sims_t *sims, const char *path, work_error_t *error)
{
    int      rc;
    json_t  *json;

    memset(sims, 0, sizeof(*sims));
    work_names_init(&sims->names);
    json = json_of_file(path, error);

    if (json == NULL) {
        return -1;
    }

    if (json_array_size(json) == 0) {
        json_decref(json);
        return work_fail(error, path, 0, "no list of results");
    }

    sims->sims = calloc(json_array_size(json), sizeof(sims->sims[0]));
    rc = sims->sims == NULL ? work_fail(error, path, 0, "no memory left")
                            : sims_fill(sims, json, path, error);
    json_decref(json);

    if (rc == 0) {
        qsort(sims->sims, sims->n, sizeof(sims->sims[0]), sim_order);
    }

    return rc;
}


void
live_sims_done(live_sims_t *sims)
{
    free(sims->sims);
    work_names_done(&sims->names);
}


const live_sim_t *
live_sims_find(const live_sims_t *sims, int64_t id)
{
    size_t  low, high, middle;

    low = 0;
    high = sims->n;

    while (low < high) {
        middle = low + (high - low) / 2;

        if (sims->sims[middle].id <= id) {
            low = middle + 1;

        } else {
            high = middle;
        }
    }

    return low > 0 && sims->sims[low - 1].id == id ? &sims->sims[low - 1]
                                                   : NULL;
}


int
live_hit_rate_read(const char *path, double *rate, work_error_t *error)
{
    int      found;
    json_t  *json, *value;

    json = json_of_file(path, error);

    if (json == NULL) {
        return -1;
    }

    value = json_object_get(json, "cache_hit_rate");
    found = json_is_number(value);

    if (found) {
        *rate = json_number_value(value);
    }

    json_decref(json);

    return found;
}
