
/*
 * The decision log, read.
 *
 * Unknown members are passed over, so that writers may say more; unknown
 * kinds of lines and members of another type are errors.
 */

#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "sim/fleet/fleet.h"
#include "sim/report/log/read.h"
#include "sim/report/log/write.h"


/* A line, and where errors go. */
typedef struct {
    report_log_reader_t  *reader;
    work_error_t         *error;
    json_t               *root;
} log_line_t;


static int
log_fail(log_line_t *l, const char *what, const char *name)
{
    return work_fail(l->error, l->reader->path, l->reader->line, what, name);
}


/* --- members */

static int
log_text(log_line_t *l, const json_t *of, const char *name, char *text,
    size_t size)
{
    json_t  *value;

    value = json_object_get(of, name);

    if (!json_is_string(value) || json_string_length(value) >= size) {
        return log_fail(l, "\"%s\" is no string, or too long", name);
    }

    memcpy(text, json_string_value(value), json_string_length(value) + 1);

    return 0;
}


/* has: NULL, it must be there; else it is told whether it is. */
static int
log_int(log_line_t *l, const json_t *of, const char *name, int64_t max,
    int64_t *number, int *has)
{
    json_t  *value;

    value = json_object_get(of, name);

    if (has != NULL) {
        *has = value != NULL && !json_is_null(value);

        if (!*has) {
            return 0;
        }
    }

    if (!json_is_integer(value) || json_integer_value(value) < 0
        || json_integer_value(value) > max)
    {
        return log_fail(l, "\"%s\" is no number from 0 on", name);
    }

    *number = json_integer_value(value);

    return 0;
}


static int
log_uint32(log_line_t *l, const json_t *of, const char *name,
    uint32_t *number)
{
    int64_t  value;

    if (log_int(l, of, name, INT32_MAX, &value, NULL) != 0) {
        return -1;
    }

    *number = (uint32_t) value;

    return 0;
}


static int
log_double(log_line_t *l, const json_t *of, const char *name, double *number)
{
    json_t  *value;

    value = json_object_get(of, name);

    if (!json_is_number(value)) {
        return log_fail(l, "\"%s\" is no number", name);
    }

    *number = json_number_value(value);

    return 0;
}


/* --- policies */

int
report_log_policy(llmgw_ranker_t *ranker, const char *text, char *error,
    size_t size)
{
    size_t  len;

    memset(ranker, 0, sizeof(*ranker));
    len = strcspn(text, ":");

    if (llmgw_rank_policy(text, len, &ranker->policy) != 0
        || ranker->policy == LLMGW_RANK_AFFINITY)       /* no ring is here */
    {
        snprintf(error, size, "there is no policy \"%.64s\"", text);
        return -1;
    }

    if (ranker->policy != LLMGW_RANK_WEIGHTED) {
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

    return llmgw_weighted_parse(&ranker->weighted, text + len + 1,
                                strlen(text + len + 1), error, size);
}


/* "weighted:NAME:WEIGHT,..." of the line's scorers. */
static int
log_scorers(log_line_t *l, char *text, size_t size)
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

        if (left < REPORT_LOG_ID_BYTES + 32) {
            return log_fail(l, "\"%s\" are too many", "scorers");
        }

        *p++ = i == 0 ? ':' : ',';

        if (log_text(l, item, "name", p, REPORT_LOG_ID_BYTES) != 0
            || log_double(l, item, "weight", &weight) != 0)
        {
            return -1;
        }

        p += strlen(p);
        p += sprintf(p, ":%.17g", weight);
    }

    return 0;
}


/* One queue-depth reads the whole load, if the line says so. */
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


static report_log_pool_t *
log_pool(report_log_reader_t *reader, const char *name)
{
    size_t  i;

    for (i = 0; i < reader->npools; i++) {
        if (strcmp(reader->pools[i].name, name) == 0) {
            return &reader->pools[i];
        }
    }

    return NULL;
}


static int
log_policy_line(log_line_t *l)
{
    char                text[2048], name[REPORT_LOG_ID_BYTES], what[160];
    report_log_pool_t  *pool;

    if (log_text(l, l->root, "pool", name, sizeof(name)) != 0
        || log_text(l, l->root, "policy", text, REPORT_LOG_ID_BYTES) != 0
        || log_scorers(l, text, sizeof(text)) != 0)
    {
        return -1;
    }

    pool = log_pool(l->reader, name);

    if (pool == NULL) {
        if (l->reader->npools == REPORT_LOG_POOLS) {
            return log_fail(l, "%s are too many", "pools");
        }

        pool = &l->reader->pools[l->reader->npools++];
        strcpy(pool->name, name);
    }

    pool->is_ranked = strcmp(text, "affinity") != 0;

    if (!pool->is_ranked) {
        return 0;
    }

    if (report_log_policy(&pool->ranker, text, what, sizeof(what)) != 0) {
        return log_fail(l, "%s", what);
    }

    log_effective(l, &pool->ranker.weighted);

    return 0;
}


/* --- decisions */

static int
log_grow(report_log_entry_t *e, uint32_t n)
{
    llmgw_candidate_t       *facts;
    report_log_candidate_t  *candidates;

    if (n <= e->max) {
        return 0;
    }

    facts = realloc(e->facts, n * sizeof(*facts));
    e->facts = facts != NULL ? facts : e->facts;
    candidates = realloc(e->candidates, n * sizeof(*candidates));
    e->candidates = candidates != NULL ? candidates : e->candidates;

    if (facts == NULL || candidates == NULL) {
        return -1;
    }

    e->max = n;

    return 0;
}


/* What a policy may not have needed: its bit in c->has, if it is there. */
static int
log_optional(log_line_t *l, const json_t *of, llmgw_candidate_t *facts,
    report_log_candidate_t *c)
{
    int      has;
    int64_t  number;
    json_t  *value;

    if (log_int(l, of, "matched", INT32_MAX, &number, &has) != 0) {
        return -1;
    }

    if (has) {
        c->has |= LLMGW_NEEDS_MATCHED;
        c->matched = (uint32_t) number;
    }

    if (log_int(l, of, "cached", INT32_MAX, &number, &has) != 0) {
        return -1;
    }

    if (has) {
        c->has |= LLMGW_NEEDS_CACHED;
        facts->cached = (uint32_t) number;
    }

    if (json_object_get(of, "cold") != NULL) {
        c->has |= LLMGW_NEEDS_COLD;

        if (log_double(l, of, "cold", &c->cold) != 0) {
            return -1;
        }
    }

    value = json_object_get(of, "adapter");

    if (value != NULL) {
        c->has |= LLMGW_NEEDS_ADAPTER;
        facts->has_adapter = (uint32_t) json_is_true(value);
    }

    return 0;
}


static int
log_candidate(log_line_t *l, const json_t *of, report_log_entry_t *e,
    uint32_t i)
{
    uint32_t                 in_flight, queue, batch;
    llmgw_candidate_t       *facts;
    report_log_candidate_t  *c;

    facts = &e->facts[i];
    c = &e->candidates[i];
    memset(facts, 0, sizeof(*facts));
    memset(c, 0, sizeof(*c));

    if (log_text(l, of, "id", c->id, sizeof(c->id)) != 0
        || log_uint32(l, of, "position", &c->position) != 0
        || log_uint32(l, of, "in_flight", &in_flight) != 0
        || log_uint32(l, of, "queue", &queue) != 0
        || log_uint32(l, of, "batch", &batch) != 0
        || log_double(l, of, "kv", &facts->kv_utilization) != 0
        || log_double(l, of, "rank", &c->rank) != 0
        || log_optional(l, of, facts, c) != 0)
    {
        return -1;
    }

    facts->replica = i;
    facts->in_flight = (int32_t) in_flight;
    facts->queue_depth = (int32_t) queue;
    facts->batch_size = (int32_t) batch;
    c->has_failed = json_object_get(of, "failed") != NULL;

    return 0;
}


static int
log_candidates(log_line_t *l, report_log_entry_t *e)
{
    size_t   i;
    json_t  *list, *item;

    list = json_object_get(l->root, "candidates");

    if (!json_is_array(list) || json_array_size(list) > e->of) {
        return log_fail(l, "\"%s\" is no list, or too long", "candidates");
    }

    e->n = (uint32_t) json_array_size(list);

    if (log_grow(e, e->n) != 0) {
        return log_fail(l, "no memory for %s", "candidates");
    }

    json_array_foreach(list, i, item) {
        if (log_candidate(l, item, e, (uint32_t) i) != 0) {
            return -1;
        }

        if (e->n == e->of && e->candidates[i].position != i) {
            return log_fail(l, "%s are not in their order", "candidates");
        }
    }

    return 0;
}


/* 64 bits do not fit into a number of JSON, so it is a text of 16 digits. */
static int
log_random(log_line_t *l, report_log_entry_t *e)
{
    char    *end;
    json_t  *value;

    value = json_object_get(l->root, "random");
    e->has_random = json_is_string(value);

    if (!e->has_random) {
        return value == NULL || json_is_null(value) ? 0
               : log_fail(l, "\"%s\" is no hexadecimal text", "random");
    }

    e->random = strtoull(json_string_value(value), &end, 16);

    return json_string_length(value) == 16 && *end == '\0' ? 0
           : log_fail(l, "\"%s\" has not 16 hexadecimal digits", "random");
}


static int
log_route(log_line_t *l, report_log_entry_t *e)
{
    char     pool[REPORT_LOG_ID_BYTES];
    int64_t  turn;

    turn = 0;

    if (log_text(l, l->root, "pool", pool, sizeof(pool)) != 0
        || log_uint32(l, l->root, "blocks", &e->nblocks) != 0
        || log_uint32(l, l->root, "of", &e->of) != 0
        || log_uint32(l, l->root, "chosen", &e->chosen) != 0
        || log_int(l, l->root, "turn", INT64_MAX, &turn, &e->has_turn) != 0
        || log_random(l, e) != 0
        || log_candidates(l, e) != 0)
    {
        return -1;
    }

    e->kind = REPORT_LOG_ROUTE;
    e->turn = (uint64_t) turn;
    e->pool = log_pool(l->reader, pool);

    if (e->pool == NULL) {
        return log_fail(l, "no line before said the policy of pool \"%s\"",
                        pool);
    }

    return e->chosen < e->of ? 0
           : log_fail(l, "\"%s\" is beyond the candidates", "chosen");
}


static int
log_admission(log_line_t *l, report_log_entry_t *e)
{
    json_t  *admitted;

    e->kind = REPORT_LOG_ADMISSION;
    admitted = json_object_get(l->root, "admitted");

    if (!json_is_boolean(admitted)) {
        return log_fail(l, "\"%s\" is neither true nor false", "admitted");
    }

    e->is_admitted = json_is_true(admitted);
    e->reason[0] = '\0';

    return e->is_admitted ? 0
           : log_text(l, l->root, "reason", e->reason, sizeof(e->reason));
}


/* 1: a decision is in *e; 0: another line; -1. */
static int
log_entry(log_line_t *l, report_log_entry_t *e)
{
    int64_t      version;
    const char  *kind;

    kind = json_string_value(json_object_get(l->root, "kind"));

    if (kind == NULL) {
        return log_fail(l, "\"%s\" is missing", "kind");
    }

    if (strcmp(kind, "log") == 0) {
        l->reader->has_head = 1;

        return log_int(l, l->root, "version", INT32_MAX, &version, NULL) == 0
               && version == LLMGW_DECISION_VERSION ? 0
               : log_fail(l, "the %s's version is not 1", "log");
    }

    if (!l->reader->has_head) {
        return log_fail(l, "this is no decision log: \"%s\" comes first",
                        kind);
    }

    if (strcmp(kind, "policy") == 0) {
        return log_policy_line(l);
    }

    e->line = l->reader->line;

    if (log_int(l, l->root, "t_us", INT64_MAX, &e->t_us, NULL) != 0
        || log_text(l, l->root, "request", e->request, sizeof(e->request))
           != 0)
    {
        return -1;
    }

    if (strcmp(kind, "route") == 0) {
        return log_route(l, e) == 0 ? 1 : -1;
    }

    if (strcmp(kind, "admission") == 0) {
        return log_admission(l, e) == 0 ? 1 : -1;
    }

    return log_fail(l, "\"%s\" is no kind of line", kind);
}


int
report_log_read(report_log_reader_t *reader, report_log_entry_t *entry,
    work_error_t *error)
{
    int           rc;
    ssize_t       len;
    log_line_t    l;
    json_error_t  wrong;

    l.reader = reader;
    l.error = error;

    do {
        len = getline(&reader->text, &reader->size, reader->in);

        if (len < 0) {
            return feof(reader->in)
                   ? 0
                   : work_fail(error, reader->path, 0, "%s", strerror(errno));
        }

        reader->line++;
        l.root = len > REPORT_LOG_LINE_BYTES ? NULL
                 : json_loadb(reader->text, (size_t) len, 0, &wrong);

        if (!json_is_object(l.root)) {
            json_decref(l.root);
            return log_fail(&l, "the line is no %s", "JSON object");
        }

        rc = log_entry(&l, entry);
        json_decref(l.root);

    } while (rc == 0);

    return rc;
}


int
report_log_read_open(report_log_reader_t *reader, const char *path,
    work_error_t *error)
{
    memset(reader, 0, sizeof(*reader));
    reader->path = path;
    reader->in = fopen(path, "r");

    return reader->in != NULL ? 0
           : work_fail(error, path, 0, "%s", strerror(errno));
}


void
report_log_read_close(report_log_reader_t *reader)
{
    if (reader->in != NULL) {
        fclose(reader->in);
    }

    free(reader->text);
    memset(reader, 0, sizeof(*reader));
}


void
report_log_entry_done(report_log_entry_t *entry)
{
    free(entry->facts);
    free(entry->candidates);
    memset(entry, 0, sizeof(*entry));
}
