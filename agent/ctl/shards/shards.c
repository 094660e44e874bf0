
/*
 * llmgwctl shards: which layers of which model are covered, drawn as text.
 *
 *     toy, 16 layers, weights 0123456789ab, numerics n1
 *           0       8
 *       s1  ########........  0-7    3/64 sessions, 1 waits  loaded  2.0 GiB  a
 *       s2  ....oooooooo....  4-11   0/64 sessions           loaded  2.0 GiB  a
 *           11111111........
 *       layers 8-15 have no usable shard
 *
 * A column is a layer, or as many as fit one terminal.
 */

#include <stdio.h>
#include <string.h>

#include "ctl/field.h"
#include "ctl/link.h"
#include "ctl/shards/shards_view.h"


#define CTL_MAP_WIDTH   64
#define CTL_MAP_STEP    8       /* columns between numbers */
#define CTL_CELL_BYTES  80

/* The drawing of one model. */
typedef struct {
    FILE        *out;
    const ctl_t *ctl;
    json_int_t   layers;
    json_int_t   scale;         /* layers a column */
    int          id_width;
    int          range_width;
    int          load_width;
} ctl_map_t;


static int
ctl_shards_is_usable(const json_t *shard)
{
    return json_is_true(json_object_get(shard, "usable"));
}


static int
ctl_shards_fill_range(char *cell, const json_t *shard)
{
    return snprintf(cell, CTL_CELL_BYTES,
                    "%" JSON_INTEGER_FORMAT "-%" JSON_INTEGER_FORMAT,
                    ctl_number(shard, "first"),
                    ctl_number(shard, "last"));
}


/* Writes "3/64 sessions, 1 waits". */
static int
ctl_shards_fill_load(char *cell, const json_t *shard)
{
    int         n;
    json_int_t  most, queue;

    most = ctl_number(shard, "max_sessions");
    queue = ctl_number(shard, "queue");
    n = snprintf(cell, CTL_CELL_BYTES, "%" JSON_INTEGER_FORMAT,
                 ctl_number(shard, "sessions"));

    if (most != 0) {
        n += snprintf(cell + n, CTL_CELL_BYTES - n, "/%" JSON_INTEGER_FORMAT,
                      most);
    }

    n += snprintf(cell + n, CTL_CELL_BYTES - n, " sessions");

    if (queue != 0) {
        n += snprintf(cell + n, CTL_CELL_BYTES - n,
                      ", %" JSON_INTEGER_FORMAT " wait%s", queue,
                      queue == 1 ? "s" : "");
    }

    return n;
}


/* Writes why no new session goes to the shard; "": new sessions do. */
static void
ctl_shards_fill_trouble(char *cell, const json_t *shard)
{
    const char  *state, *service;

    state = ctl_text(shard, "state");
    service = ctl_text(shard, "service");
    cell[0] = '\0';

    if (strcmp(state, "ALIVE") != 0) {
        snprintf(cell, CTL_CELL_BYTES, "  %.15s", state);

    } else if (strcmp(service, "READY") != 0) {
        snprintf(cell, CTL_CELL_BYTES, "  %.15s", service);

    } else if (json_is_true(json_object_get(shard, "draining"))) {
        strcpy(cell, "  draining");

    } else if (ctl_number(shard, "excluded_ms") != 0) {
        snprintf(cell, CTL_CELL_BYTES, "  excluded for %.1f s: %.40s",
                 (double) ctl_number(shard, "excluded_ms") / 1e3,
                 ctl_text(shard, "excluded_for"));
    }
}


/*
 * Draws '#' for layers of a shard that takes new sessions; 'o' for layers of
 * one that computes, but takes none.
 */
static void
ctl_shards_draw_bar(const ctl_map_t *map, const json_t *shard)
{
    char        mark;
    json_int_t  layer;

    mark = ctl_shards_is_usable(shard) ? '#' : 'o';

    for (layer = 0; layer < map->layers; layer += map->scale) {
        fputc(layer + map->scale > ctl_number(shard, "first")
              && layer <= ctl_number(shard, "last") ? mark : '.',
              map->out);
    }
}


static void
ctl_shards_draw_row(const ctl_map_t *map, const json_t *shard)
{
    char  range[CTL_CELL_BYTES], load[CTL_CELL_BYTES], trouble[CTL_CELL_BYTES];

    ctl_shards_fill_range(range, shard);
    ctl_shards_fill_load(load, shard);
    ctl_shards_fill_trouble(trouble, shard);

    fprintf(map->out, "  %-*s  ", map->id_width, ctl_text(shard, "id"));
    ctl_shards_draw_bar(map, shard);
    fprintf(map->out, "  %-*s  %-*s  %-6s  %.1f GiB%s%s%s\n",
            map->range_width, range, map->load_width, load,
            json_is_true(json_object_get(shard, "loaded")) ? "loaded" : "-",
            (double) ctl_number(shard, "memory") / (1 << 30),
            json_object_get(shard, "zone") ? "  " : "",
            ctl_text(shard, "zone"), trouble);
}


/* Draws numbers of layers, each above its column. */
static void
ctl_shards_draw_ruler(const ctl_map_t *map)
{
    json_int_t  layer, step;

    step = CTL_MAP_STEP * map->scale;
    fprintf(map->out, "  %*s  ", map->id_width, "");

    for (layer = 0; layer < map->layers; layer += step) {
        fprintf(map->out, "%-*" JSON_INTEGER_FORMAT,
                layer + step < map->layers ? CTL_MAP_STEP : 0, layer);
    }

    fputc('\n', map->out);
}


/* The number of usable shards of the layer in this column that has fewest. */
static int
ctl_shards_least(const ctl_map_t *map, const json_t *covered,
    json_int_t layer)
{
    json_int_t  i, count, least;

    least = 9;

    for (i = layer; i < layer + map->scale && i < map->layers; i++) {
        count = json_integer_value(json_array_get(covered, (size_t) i));
        least = count < least ? count : least;
    }

    return (int) least;
}


static void
ctl_shards_draw_sum(const ctl_map_t *map, const json_t *model)
{
    int         least;
    json_int_t  layer;

    fprintf(map->out, "  %*s  ", map->id_width, "");

    for (layer = 0; layer < map->layers; layer += map->scale) {
        least = ctl_shards_least(map, json_object_get(model, "covered"),
                                 layer);
        fputc(least ? '0' + least : '.', map->out);
    }

    fputc('\n', map->out);
}


static void
ctl_shards_print_gaps(const ctl_map_t *map, const json_t *model)
{
    size_t       i;
    json_t      *gap;
    json_int_t   first, last;
    const char  *red, *plain;

    red = map->ctl->has_colours ? "\033[31m" : "";
    plain = map->ctl->has_colours ? "\033[0m" : "";

    json_array_foreach(json_object_get(model, "gaps"), i, gap) {
        first = json_integer_value(json_array_get(gap, 0));
        last = json_integer_value(json_array_get(gap, 1));

        if (first == last) {
            fprintf(map->out, "  %slayer %" JSON_INTEGER_FORMAT
                    " has no usable shard%s\n", red, first, plain);

        } else {
            fprintf(map->out, "  %slayers %" JSON_INTEGER_FORMAT "-%"
                    JSON_INTEGER_FORMAT " have no usable shard%s\n", red,
                    first, last, plain);
        }
    }
}


static void
ctl_shards_measure(ctl_map_t *map, const json_t *model)
{
    int      n;
    char     cell[CTL_CELL_BYTES];
    size_t   i;
    json_t  *shard;

    map->layers = ctl_number(model, "layers");
    map->scale = (map->layers + CTL_MAP_WIDTH - 1) / CTL_MAP_WIDTH;
    map->id_width = map->range_width = map->load_width = 0;

    json_array_foreach(json_object_get(model, "shards"), i, shard) {
        n = (int) strlen(ctl_text(shard, "id"));
        map->id_width = n > map->id_width ? n : map->id_width;
        n = ctl_shards_fill_range(cell, shard);
        map->range_width = n > map->range_width ? n : map->range_width;
        n = ctl_shards_fill_load(cell, shard);
        map->load_width = n > map->load_width ? n : map->load_width;
    }
}


static void
ctl_shards_draw(ctl_map_t *map, const json_t *model)
{
    size_t   i;
    json_t  *shard;

    ctl_shards_measure(map, model);

    fprintf(map->out, "%s, %" JSON_INTEGER_FORMAT " layers",
            ctl_text(model, "model"), map->layers);

    if (map->scale > 1) {
        fprintf(map->out, ", %" JSON_INTEGER_FORMAT " a column", map->scale);
    }

    fprintf(map->out, ", weights %.12s, numerics %s\n",
            ctl_text(model, "weights"), ctl_text(model, "numerics"));
    ctl_shards_draw_ruler(map);

    json_array_foreach(json_object_get(model, "shards"), i, shard) {
        ctl_shards_draw_row(map, shard);
    }

    ctl_shards_draw_sum(map, model);
    ctl_shards_print_gaps(map, model);
}


static void
ctl_shards_print(const ctl_t *ctl, const json_t *view, FILE *out)
{
    size_t     i;
    json_t    *id, *model;
    ctl_map_t  map = { .ctl = ctl, .out = out };

    json_array_foreach(json_object_get(view, "models"), i, model) {
        fputs(i ? "\n" : "", out);
        ctl_shards_draw(&map, model);
    }

    json_array_foreach(json_object_get(view, "silent"), i, id) {
        fprintf(out, "%s reports nothing about its slice\n",
                json_string_value(id));
    }

    if (json_array_size(json_object_get(view, "models")) == 0
        && json_array_size(json_object_get(view, "silent")) == 0)
    {
        fprintf(out, "there are no shards\n");
    }
}


int
ctl_shards(const ctl_t *ctl)
{
    int      rc;
    json_t  *members, *status, *view;

    rc = ctl_link_ask(ctl, json_pack("{s:s}", "cmd", "members"), &members);

    if (rc != CTL_DONE) {
        return rc;
    }

    rc = ctl_link_ask(ctl, json_pack("{s:s}", "cmd", "status"), &status);

    if (rc != CTL_DONE) {
        json_decref(members);
        return rc;
    }

    view = ctl_shards_collect(json_object_get(members, "members"),
                              json_object_get(status, "pipelines"));
    json_decref(members);
    json_decref(status);

    if (view == NULL) {
        fprintf(stderr, "llmgwctl: out of memory\n");
        return CTL_FAILED;
    }

    if (ctl->is_json) {
        ctl_print_json(view);

    } else {
        ctl_shards_print(ctl, view, stdout);
    }

    json_decref(view);

    return CTL_DONE;
}
