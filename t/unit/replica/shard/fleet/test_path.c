
/*
 * The shortest path over layers, compared with a search that tries every path.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "common/rnd.h"
#include "replica/shard/fleet/path.h"


#define SHARDS_MAX  24

typedef struct {
    path_shard_t  shards[SHARDS_MAX];
    char          ids[SHARDS_MAX][8];
    size_t        n;
    path_query_t  query;
    path_hop_t    hops[SHARD_HOPS_MAX];
    size_t        nhops;
    uint32_t      layer;
} cover_t;


static path_shard_t *
cover_add(cover_t *c, const char *id, uint32_t first, uint32_t last)
{
    path_shard_t  *s;

    s = &c->shards[c->n];
    snprintf(c->ids[c->n], sizeof(c->ids[0]), "%s", id);
    s->id = c->ids[c->n++];
    s->first = first;
    s->last = last;

    return s;
}


static path_rc_t
cover_find(cover_t *c)
{
    return path_find(c->shards, c->n, &c->query, c->hops, &c->nhops,
                     &c->layer);
}


static void
cover_begin(cover_t *c, uint32_t layers)
{
    memset(c, 0, sizeof(*c));
    c->query.to = layers - 1;
}


/* "a:0-3 b:4-15" */
static void
assert_path(cover_t *c, const char *expected)
{
    char    text[512];
    size_t  i, at;

    assert_int_equal(cover_find(c), PATH_FOUND);

    for (at = 0, i = 0; i < c->nhops; i++) {
        at += (size_t) snprintf(text + at, sizeof(text) - at, "%s%s:%u-%u",
                                i ? " " : "", c->shards[c->hops[i].shard].id,
                                c->hops[i].first, c->hops[i].last);
    }

    assert_string_equal(text, expected);
}


static void
fewest_hops_come_first(void **state)
{
    cover_t  c;

    cover_begin(&c, 16);
    cover_add(&c, "a", 0, 7);
    cover_add(&c, "b", 4, 11);
    cover_add(&c, "c", 8, 15);
    assert_path(&c, "a:0-7 c:8-15");
}


static void
a_shard_stops_where_its_successor_begins(void **state)
{
    cover_t  c;

    cover_begin(&c, 16);
    cover_add(&c, "a", 0, 7);
    cover_add(&c, "b", 4, 15);
    assert_path(&c, "a:0-3 b:4-15");

    /* The same at the end of the layers that were asked for. */

    c.query.to = 5;
    assert_path(&c, "a:0-5");
}


static void
a_path_begins_at_a_shards_own_first_layer(void **state)
{
    cover_t  c;

    cover_begin(&c, 16);
    cover_add(&c, "a", 0, 15);
    c.query.from = 4;
    assert_int_equal(cover_find(&c), PATH_GAP);
    assert_int_equal(c.layer, 4);

    cover_add(&c, "b", 4, 6);
    assert_int_equal(cover_find(&c), PATH_GAP);
    assert_int_equal(c.layer, 7);

    c.query.to = 6;
    assert_path(&c, "b:4-6");
}


static void
a_gap_is_named_the_last_layer_too(void **state)
{
    cover_t  c;

    cover_begin(&c, 16);
    assert_int_equal(cover_find(&c), PATH_GAP);
    assert_int_equal(c.layer, 0);

    cover_add(&c, "a", 0, 7);
    cover_add(&c, "c", 9, 15);
    assert_int_equal(cover_find(&c), PATH_GAP);
    assert_int_equal(c.layer, 8);

    cover_add(&c, "b", 4, 9);
    assert_path(&c, "a:0-3 b:4-8 c:9-15");

    c.shards[1].last = 14;
    assert_int_equal(cover_find(&c), PATH_GAP);
    assert_int_equal(c.layer, 15);
}


static void
zone_then_loaded_then_queue_then_id_decide(void **state)
{
    cover_t        c;
    path_shard_t  *a, *b;

    cover_begin(&c, 8);
    b = cover_add(&c, "b", 0, 7);
    a = cover_add(&c, "a", 0, 7);
    assert_path(&c, "a:0-7");

    a->queue = 1;
    assert_path(&c, "b:0-7");

    b->is_unloaded = 1;
    assert_path(&c, "a:0-7");

    a->is_far = 1;
    assert_path(&c, "b:0-7");
}


/* A short queue at one hop does not count beside a long one at another. */
static void
the_worst_queue_counts_and_no_other(void **state)
{
    cover_t  c;

    cover_begin(&c, 8);
    cover_add(&c, "a", 0, 3)->queue = 5;
    cover_add(&c, "b", 4, 7)->queue = 5;
    cover_add(&c, "c", 4, 7)->queue = 0;
    assert_path(&c, "a:0-3 b:4-7");

    c.shards[0].queue = 4;
    assert_path(&c, "a:0-3 c:4-7");
}


static void
nobody_is_their_own_first_hop(void **state)
{
    cover_t  c;

    cover_begin(&c, 8);
    cover_add(&c, "a", 0, 7)->is_never_first = 1;
    assert_int_equal(cover_find(&c), PATH_GAP);
    assert_int_equal(c.layer, 0);

    cover_add(&c, "b", 4, 7)->is_never_first = 1;
    cover_add(&c, "c", 0, 3);
    assert_path(&c, "c:0-3 b:4-7");
}


static void
boundaries_are_kept_where_a_path_has_them(void **state)
{
    cover_t   c;
    uint32_t  keep[] = { 12, 4 };

    cover_begin(&c, 16);
    cover_add(&c, "a", 0, 15);
    cover_add(&c, "b", 0, 3);
    cover_add(&c, "c", 4, 11);
    cover_add(&c, "d", 12, 15);
    assert_path(&c, "a:0-15");

    c.query.keep = keep;
    c.query.nkeep = 2;
    assert_path(&c, "a:0-3 c:4-11 d:12-15");

    c.shards[2].last = 10;
    assert_path(&c, "a:0-11 d:12-15");

    c.shards[3].first = 13;
    assert_path(&c, "a:0-15");
}


static void
sixteen_hops_are_allowed_and_no_more(void **state)
{
    char      id[8];
    cover_t   c;
    uint32_t  i, keep[16];

    cover_begin(&c, 17);

    for (i = 0; i < 17; i++) {
        snprintf(id, sizeof(id), "s%02u", i);
        cover_add(&c, id, i, i);
    }

    assert_int_equal(cover_find(&c), PATH_TOO_LONG);

    c.query.to = 15;
    assert_int_equal(cover_find(&c), PATH_FOUND);
    assert_int_equal(c.nhops, 16);

    /* Boundaries that a query would like to keep do not prevent a path. */

    for (i = 0; i < 16; i++) {
        keep[i] = i + 1;
    }

    c.query.to = 16;
    c.query.keep = keep;
    c.query.nkeep = 16;
    cover_add(&c, "t", 3, 4);
    assert_int_equal(cover_find(&c), PATH_FOUND);
    assert_int_equal(c.nhops, 16);
}


/* --- the same path by trying all */

typedef struct {
    uint32_t    sums[5];        /* skipped, hops, far, unloaded, worst queue */
    path_hop_t  hops[SHARDS_MAX];
    size_t      n;
} trial_t;

typedef struct {
    const cover_t  *cover;
    trial_t         best;
    int             is_found;
    uint32_t        reach;
} search_t;


static int
trial_is_less(const cover_t *c, const trial_t *a, const trial_t *b)
{
    int     rc;
    size_t  i;

    for (i = 0; i < 5; i++) {
        if (a->sums[i] != b->sums[i]) {
            return a->sums[i] < b->sums[i];
        }
    }

    for (i = 0; i < a->n; i++) {
        rc = strcmp(c->shards[a->hops[i].shard].id,
                    c->shards[b->hops[i].shard].id);

        if (rc != 0) {
            return rc < 0;
        }
    }

    return 0;
}


static void
trial_judge(search_t *search, const trial_t *trial)
{
    if (!search->is_found
        || trial_is_less(search->cover, trial, &search->best))
    {
        search->best = *trial;
        search->is_found = 1;
    }
}


static void
trial_add(const cover_t *c, trial_t *t, size_t shard, uint32_t next)
{
    size_t               i;
    const path_shard_t  *s;

    s = &c->shards[shard];

    for (i = 0; i < c->query.nkeep; i++) {
        t->sums[0] += c->query.keep[i] > s->first && c->query.keep[i] < next;
    }

    t->sums[1]++;
    t->sums[2] += s->is_far;
    t->sums[3] += s->is_unloaded;
    t->sums[4] = s->queue > t->sums[4] ? s->queue : t->sums[4];
    t->hops[t->n].shard = shard;
    t->hops[t->n].first = s->first;
    t->hops[t->n++].last = next - 1;
}


static void
search_all(search_t *search, const trial_t *trial, uint32_t at)
{
    size_t          i;
    trial_t         further;
    uint32_t        next;
    const cover_t  *c;

    c = search->cover;
    search->reach = at > search->reach ? at : search->reach;

    if (at == c->query.to + 1) {
        trial_judge(search, trial);
        return;
    }

    for (i = 0; i < c->n; i++) {
        if (c->shards[i].first != at
            || (at == 0 && c->shards[i].is_never_first))
        {
            continue;
        }

        for (next = at + 1;
             next <= c->shards[i].last + 1 && next <= c->query.to + 1; next++)
        {
            further = *trial;
            trial_add(c, &further, i, next);
            search_all(search, &further, next);
        }
    }
}


static void
cover_draw(cover_t *c, uint32_t *keep, rnd_t *rnd)
{
    char      id[8];
    size_t    i, n;
    uint32_t  layers, first;

    layers = 1 + (uint32_t) (rnd_next(rnd) % 8);
    cover_begin(c, layers);
    n = rnd_next(rnd) % 9;

    for (i = 0; i < n; i++) {
        snprintf(id, sizeof(id), "s%u", (unsigned) (i * 5 % 9));
        first = (uint32_t) (rnd_next(rnd) % layers);
        cover_add(c, id, first, first + (uint32_t) (rnd_next(rnd) % layers));
        c->shards[i].queue = (uint32_t) (rnd_next(rnd) % 3);
        c->shards[i].is_far = rnd_next(rnd) % 3 == 0;
        c->shards[i].is_unloaded = rnd_next(rnd) % 3 == 0;
        c->shards[i].is_never_first = rnd_next(rnd) % 8 == 0;
    }

    c->query.to = layers - 1 - (uint32_t) (rnd_next(rnd) % layers / 2);
    c->query.from = (uint32_t) (rnd_next(rnd) % (c->query.to + 1)) / 2;
    c->query.keep = keep;

    for (i = rnd_next(rnd) % 3; i > 0; i--) {
        keep[c->query.nkeep++] = (uint32_t) (rnd_next(rnd) % layers);
    }
}


/* The path counts two equal boundaries once, the trial counts them twice. */
static void
keep_once(cover_t *c, uint32_t *keep)
{
    if (c->query.nkeep == 2 && keep[0] == keep[1]) {
        c->query.nkeep = 1;
    }
}


static void
random_covers_get_what_a_search_through_all_paths_finds(void **state)
{
    size_t     i;
    cover_t    c;
    trial_t    none;
    rnd_t      rnd = { 7 };
    search_t   search;
    uint32_t   round, found, keep[2];

    found = 0;
    memset(&none, 0, sizeof(none));

    for (round = 0; round < 20000; round++) {
        cover_draw(&c, keep, &rnd);
        keep_once(&c, keep);
        memset(&search, 0, sizeof(search));
        search.cover = &c;
        search_all(&search, &none, c.query.from);

        if (!search.is_found) {
            assert_int_equal(cover_find(&c), PATH_GAP);
            assert_int_equal(c.layer,
                             search.reach > c.query.from ? search.reach
                                                         : c.query.from);
            continue;
        }

        found++;
        assert_int_equal(cover_find(&c), PATH_FOUND);
        assert_int_equal(c.nhops, search.best.n);

        for (i = 0; i < c.nhops; i++) {
            assert_memory_equal(&c.hops[i], &search.best.hops[i],
                                sizeof(path_hop_t));
        }
    }

    assert_in_range(found, 5000, 15000);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(fewest_hops_come_first),
        cmocka_unit_test(a_shard_stops_where_its_successor_begins),
        cmocka_unit_test(a_path_begins_at_a_shards_own_first_layer),
        cmocka_unit_test(a_gap_is_named_the_last_layer_too),
        cmocka_unit_test(zone_then_loaded_then_queue_then_id_decide),
        cmocka_unit_test(the_worst_queue_counts_and_no_other),
        cmocka_unit_test(nobody_is_their_own_first_hop),
        cmocka_unit_test(boundaries_are_kept_where_a_path_has_them),
        cmocka_unit_test(sixteen_hops_are_allowed_and_no_more),
        cmocka_unit_test(
            random_covers_get_what_a_search_through_all_paths_finds)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
