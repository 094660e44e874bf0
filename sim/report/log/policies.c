
/*
 * How replicas are chosen from pools, as the decision log tells: for each
 * worker and pool, since each process that writes the log reports it for
 * itself.
 */

#include <stdlib.h>
#include <string.h>

#include "common/data/grow.h"
#include "sim/fleet/policy/scorers.h"
#include "sim/report/log/read_inner.h"


int
report_log_policy(fleet_policy_t *policy, const char *text, char *error,
    size_t size)
{
    size_t  len;

    len = strcspn(text, ":");

    if (fleet_policy_find(policy, text, len) != 0
        || policy->ranker.policy == LLMGW_RANK_AFFINITY)    /* no ring here */
    {
        snprintf(error, size, "there is no policy \"%.64s\"", text);
        return -1;
    }

    if (policy->ranker.policy != LLMGW_RANK_WEIGHTED) {
        if (text[len] != '\0') {
            snprintf(error, size, "only weighted has scorers");
            return -1;
        }

        return 0;
    }

    if (text[len] == '\0') {
        snprintf(error, size, "weighted needs scorers: weighted:NAME:WEIGHT");
        return -1;
    }

    return llmgw_weighted_parse(&policy->ranker.weighted, fleet_scorers,
                                text + len + 1, strlen(text + len + 1), error,
                                size);
}


/* Makes the text "weighted:NAME:WEIGHT,..." of the line's scorers. */
static int
log_scorers(const log_line_t *l, char *text, size_t size)
{
    char    *p;
    size_t   i, left;
    double   weight;
    json_t  *list, *item;

    weight = 0;
    list = json_object_get(l->root, "scorers");
    p = text + strlen(text);

    json_array_foreach(list, i, item) {
        left = size - (size_t) (p - text);

        if (left < REPORT_LOG_NAME_BYTES + 32) {
            return log_fail(l, "\"%s\" are too many", "scorers");
        }

        *p++ = i == 0 ? ':' : ',';

        if (log_text(l, item, "name", p, REPORT_LOG_NAME_BYTES) != 0
            || log_double(l, item, "weight", &weight) != 0)
        {
            return -1;
        }

        p += strlen(p);
        p += sprintf(p, ":%.17g", weight);
    }

    return 0;
}


/* Makes queue-depth read waiting and running requests, if the line tells so. */
static void
log_effective(const log_line_t *l, llmgw_weighted_t *weighted)
{
    uint32_t     i;
    const char  *signal;

    signal = json_string_value(json_object_get(l->root, "queue_depth"));

    for (i = 0; signal != NULL && i < weighted->n; i++) {
        if (strcmp(signal, "effective") == 0
            && weighted->weights[i].scorer == &llmgw_scorer_queue_depth)
        {
            weighted->weights[i].scorer = &fleet_effective_depth;
        }
    }
}


report_log_pool_t *
report_log_pool(const report_log_reader_t *reader, int64_t worker,
    const char *name)
{
    size_t  i;

    for (i = reader->npools; i-- > 0; /* void */ ) {
        if (reader->pools[i].worker == worker
            && strcmp(reader->pools[i].name, name) == 0)
        {
            return &reader->pools[i];
        }
    }

    return NULL;
}


static report_log_pool_t *
log_pool_add(const log_line_t *l, int64_t worker, const char *name)
{
    report_log_reader_t  *r;

    r = l->reader;

    if (r->npools == REPORT_LOG_POOLS) {
        log_fail(l, "%s are too many", "pools");
        return NULL;
    }

    if (grow(&r->pools, &r->max_pools, r->npools + 1, sizeof(*r->pools))
        != 0)
    {
        log_fail(l, "no memory for %s", "pools");
        return NULL;
    }

    memset(&r->pools[r->npools], 0, sizeof(*r->pools));
    r->pools[r->npools].worker = worker;
    strcpy(r->pools[r->npools].name, name);

    return &r->pools[r->npools++];
}


/*
 * Reads the ring's parameters; without them the log's choices cannot be
 * repeated.
 */
static int
log_ring(const log_line_t *l, report_log_pool_t *pool)
{
    if (json_object_get(l->root, "vnodes") == NULL) {
        return 0;
    }

    pool->how = REPORT_LOG_BY_RING;

    return log_uint32(l, l->root, "vnodes", &pool->ring.vnodes) == 0
           && log_uint32(l, l->root, "load_factor_permille",
                         &pool->ring.load_factor_permille) == 0
           && log_uint32(l, l->root, "min_load", &pool->ring.min_load) == 0
           ? 0 : -1;
}


int
log_policy_line(const log_line_t *l)
{
    char                text[2048], name[REPORT_LOG_ID_BYTES], what[160];
    int64_t             worker;
    report_log_pool_t  *pool;

    if (log_text(l, l->root, "pool", name, sizeof(name)) != 0
        || log_text(l, l->root, "policy", text, REPORT_LOG_NAME_BYTES) != 0
        || log_worker(l, &worker) != 0
        || log_scorers(l, text, sizeof(text)) != 0)
    {
        return -1;
    }

    pool = report_log_pool(l->reader, worker, name);

    if (pool == NULL && (pool = log_pool_add(l, worker, name)) == NULL) {
        return -1;
    }

    pool->how = REPORT_LOG_UNKNOWN;

    if (strcmp(text, "affinity") == 0) {
        return log_ring(l, pool);
    }

    if (report_log_policy(&pool->policy, text, what, sizeof(what)) != 0) {
        return log_fail(l, "%s", what);
    }

    pool->how = REPORT_LOG_RANKED;
    log_effective(l, &pool->policy.ranker.weighted);

    return 0;
}
