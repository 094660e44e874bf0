
/*
 * fleet_find(): a path, or why there is none.
 *
 * A suspicion may be false: an agent that did not run for half a second is
 * suspected.  And a shard that was late may have had no processor for a second.
 * So if the shards that are ALIVE and not excluded, full ones included, do not
 * make a whole path, late ones are used, too; then shards whose agents are
 * SUSPECT; and at last those that failed, since a path with them is better than
 * none.  A shard with corrupt results is never used.
 *
 * The reason without a path is the one that can be helped.  If there would be a
 * path with full shards, the fleet is full, which passes.  If other shards of
 * the model have the layer where the path ends, but with other ids, a wrong
 * file was deployed.  Otherwise there is a gap, and shards that are excluded
 * there are named.
 */

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "replica/shard/fleet/peer.h"


#define WHY_NAMES_MAX  3        /* ids in a text; more would not make it
                                   clearer */


const char *
fleet_reason(fleet_rc_t rc)
{
    static const char *const  reasons[] = {
        [FLEET_FOUND] = "",
        [FLEET_GAP] = "shard_unavailable",
        [FLEET_FULL] = "shard_full",
        [FLEET_MISMATCH] = "weights_mismatch",
        [FLEET_TOO_LONG] = "shard_unavailable",
        [FLEET_NO_MEMORY] = "out_of_memory"
    };

    return reasons[rc];
}


static void
why_add(fleet_path_t *path, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static void
why_add(fleet_path_t *path, const char *format, ...)
{
    size_t   used;
    va_list  args;

    used = strlen(path->why);
    va_start(args, format);
    vsnprintf(path->why + used, sizeof(path->why) - used, format, args);
    va_end(args);
}


static int
shard_leads_over(const fleet_shard_t *s, uint32_t layer)
{
    return s->is_listed && s->is_usable && s->first <= layer
           && s->last >= layer;
}


/* Whether an earlier shard with the same list has been named. */
static int
is_named(const fleet_t *f, size_t i, uint32_t layer)
{
    size_t  k;

    for (k = 0; k < i; k++) {
        if (shard_leads_over(f->shards[k], layer) && !f->shards[k]->is_match
            && f->shards[k]->list == f->shards[i]->list)
        {
            return 1;
        }
    }

    return 0;
}


/* Names the ids, other than ours, of shards with this layer; returns their
   number. */
static size_t
why_mismatch(const fleet_t *f, fleet_path_t *path)
{
    char                        weights[2 * LLMGW_WEIGHTS_ID_BYTES + 1];
    size_t                      i, n;
    const fleet_shard_t        *s;
    const llmgw_shard_model_t  *model;

    for (n = 0, i = 0; i < f->nshards && n < WHY_NAMES_MAX; i++) {
        s = f->shards[i];

        if (!shard_leads_over(s, path->layer) || s->is_match
            || is_named(f, i, path->layer))
        {
            continue;
        }

        model = &f->lists[s->list].model;
        llmgw_weights_id_write(model->weights_id, weights);
        why_add(path, "%s shard \"%s\" has weights %.12s, numerics %s",
                n == 0 ? ", but" : ",", s->id, weights, model->numerics);
        n++;
    }

    return n;
}


/* Names the shards that would compute the layer if they were not excluded. */
static void
why_excluded(const fleet_t *f, fleet_path_t *path)
{
    size_t                i, n;
    uint64_t              now_ms;
    const fleet_shard_t  *s;

    now_ms = fleet_now_ms();

    for (n = 0, i = 0; i < f->nshards && n < WHY_NAMES_MAX; i++) {
        s = f->shards[i];

        if (shard_leads_over(s, path->layer) && s->is_match
            && ban_is_on(&s->ban, now_ms))
        {
            why_add(path, ", \"%s\" is excluded (%s)", s->id,
                    shard_reason_name(s->ban.reason));
            n++;
        }
    }
}


static path_rc_t
find_among(fleet_t *f, const fleet_query_t *query, unsigned with,
    path_hop_t *hops, size_t *nhops, uint32_t *layer)
{
    size_t        n;
    path_query_t  wanted = { .from = query->from_layer,
                             .to = query->to_layer,
                             .keep = query->keep,
                             .nkeep = query->nkeep };

    n = fleet_collect(f, query, with);

    return path_find(f->candidates, n, &wanted, hops, nhops, layer);
}


static fleet_rc_t
find_why_not(fleet_t *f, const fleet_query_t *query, fleet_path_t *path)
{
    size_t      nhops;
    uint32_t    layer;
    path_rc_t   rc;
    path_hop_t  hops[SHARD_HOPS_MAX];

    rc = find_among(f, query, FLEET_WITH_ALL & ~query->avoid, hops, &nhops,
                    &layer);

    if (rc == PATH_FOUND) {
        why_add(path, "all shards for layer %u of \"%s\" are full",
                (unsigned) path->layer, f->want.model);
        return FLEET_FULL;
    }

    if (rc == PATH_GAP) {
        path->layer = layer;
    }

    why_add(path, "no shard for layer %u of %u of \"%s\"",
            (unsigned) path->layer, (unsigned) f->want.layers, f->want.model);

    if (why_mismatch(f, path) > 0) {
        return FLEET_MISMATCH;
    }

    why_excluded(f, path);

    return FLEET_GAP;
}


static void
find_write(fleet_t *f, const path_hop_t *hops, size_t n, fleet_path_t *path)
{
    size_t                i;
    fleet_hop_t          *to;
    const fleet_shard_t  *s;

    path->n = n;

    for (i = 0; i < n; i++) {
        s = f->shards[f->candidate_of[hops[i].shard]];
        to = &path->hops[i];
        to->key = s->key;
        strcpy(to->id, s->id);
        to->first = hops[i].first;
        to->last = hops[i].last;
        to->is_loaded = s->is_loaded;
    }
}


/*
 * Tries the kinds of shards in turn; a kind that the query avoids is left out,
 * the later ones are not.  A path with full shards is waited for before the
 * next kind is tried.  *layer, if PATH_GAP is returned: where the longest path
 * ends.
 */
static path_rc_t
find_in_turn(fleet_t *f, const fleet_query_t *query, path_hop_t *hops,
    size_t *nhops, uint32_t *layer)
{
    size_t     i;
    uint32_t   ignored;
    unsigned   with;
    path_rc_t  rc;

    static const unsigned  turns[] = {
        0, FLEET_WITH_LATE, FLEET_WITH_SUSPECT, FLEET_WITH_FAILED
    };

    with = 0;
    rc = PATH_GAP;

    for (i = 0; i < sizeof(turns) / sizeof(turns[0]); i++) {
        if (turns[i] & query->avoid) {
            continue;
        }

        with |= turns[i];
        rc = find_among(f, query, with, hops, nhops, layer);

        if (rc != PATH_GAP
            || find_among(f, query, with|FLEET_WITH_FULL, hops, nhops,
                          &ignored) != PATH_GAP)
        {
            break;
        }
    }

    return rc;
}


fleet_rc_t
fleet_find(fleet_t *f, const fleet_query_t *query, fleet_path_t *path)
{
    size_t      nhops;
    path_hop_t  hops[SHARD_HOPS_MAX];

    memset(path, 0, sizeof(*path));
    view_look(f);

    switch (find_in_turn(f, query, hops, &nhops, &path->layer)) {

    case PATH_FOUND:
        find_write(f, hops, nhops, path);
        return FLEET_FOUND;

    case PATH_GAP:
        return find_why_not(f, query, path);

    case PATH_TOO_LONG:
        path->layer = query->from_layer;
        why_add(path, "a path over layers %u-%u of \"%s\" takes more than %u "
                "shards", (unsigned) query->from_layer,
                (unsigned) query->to_layer,
                f->want.model, SHARD_HOPS_MAX);
        return FLEET_TOO_LONG;

    default:
        why_add(path, "out of memory");
        return FLEET_NO_MEMORY;
    }
}
