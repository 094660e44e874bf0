
/*
 * Reads the decision log.
 *
 * Unknown members are skipped, so that writers may add some; unknown kinds of
 * lines and members of another type are errors.
 */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "sim/report/log/read_inner.h"


/* The beginning of each line, which occurs nowhere else in a line. */
#define LOG_BEGIN  "{\"kind\":\""


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


/*
 * Reads members that a policy may not have needed; sets their bits in c->has if
 * they are present.
 */
static int
log_optional(const log_line_t *l, const json_t *of, llmgw_candidate_t *facts,
    report_log_candidate_t *c)
{
    int      has;
    int64_t  number;

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

    return 0;
}


/*
 * The index of a word; -1: it is none of these, as a later version may write.
 */
static int
log_one_of(const char *word, const char *const *words, size_t n)
{
    size_t  i;

    for (i = 0; i < n; i++) {
        if (strcmp(word, words[i]) == 0) {
            return (int) i;
        }
    }

    return -1;
}


/* Reads what the pick reads about a candidate, and why it was not available. */
static int
log_eligible(const log_line_t *l, const json_t *of,
    report_log_candidate_t *c)
{
    int   state, lacks;
    char  word[REPORT_LOG_NAME_BYTES];

    static const char *const  states[] = { "unusable", "suspect", "alive",
                                           "standby", "last" };
    static const char *const  all[] = { "", "state", "excluded", "full",
                                        "pushed_back", "circuit" };

    c->has_failed = json_object_get(of, "failed") != NULL;

    if (log_word(l, of, "failed", word, sizeof(word)) != 0) {
        return -1;
    }

    lacks = log_one_of(word, all, sizeof(all) / sizeof(all[0]));
    c->lacks = lacks < 0 ? LLMGW_LACKS_TRUST : (llmgw_lacks_t) lacks;
    c->is_open = json_object_get(of, "circuit") != NULL;

    if (json_object_get(of, "state") == NULL) {
        return 0;
    }

    if (log_word(l, of, "state", word, sizeof(word)) != 0
        || log_uint32(l, of, "weight", &c->weight) != 0
        || log_uint32(l, of, "foreign", &c->foreign) != 0)
    {
        return -1;
    }

    state = log_one_of(word, states, sizeof(states) / sizeof(states[0]));
    c->state = state < 0 ? LLMGW_PEER_UNUSABLE : (llmgw_peer_state_t) state;
    c->has_pick = 1;

    return log_int(l, of, "retry_ms", UINT32_MAX, &c->retry_ms, &c->has_retry);
}


static int
log_candidate(const log_line_t *l, const json_t *of, report_log_entry_t *e,
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
        || log_optional(l, of, facts, c) != 0
        || log_eligible(l, of, c) != 0)
    {
        return -1;
    }

    facts->replica = i;
    facts->in_flight = (int32_t) in_flight;
    facts->queue_depth = (int32_t) queue;
    facts->batch_size = (int32_t) batch;

    return 0;
}


static int
log_candidates(const log_line_t *l, report_log_entry_t *e)
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


/* Reads the ring's sums, as they were before this request was counted. */
static int
log_sums(const log_line_t *l, report_log_entry_t *e)
{
    int64_t  load, weight;
    json_t  *sums;

    sums = json_object_get(l->root, "sums");
    e->has_sums = sums != NULL;

    if (!e->has_sums) {
        return 0;
    }

    if (log_int(l, sums, "load", INT64_MAX, &load, NULL) != 0
        || log_int(l, sums, "weight", INT64_MAX, &weight, NULL) != 0)
    {
        return -1;
    }

    e->sums.load = (uint64_t) load;
    e->sums.weight = (uint64_t) weight;

    return 0;
}


/* Reads the result: a candidate, another replica, or none. */
static int
log_chosen(const log_line_t *l, report_log_entry_t *e)
{
    int      has;
    int64_t  chosen;

    chosen = 0;

    if (log_word(l, l->root, "outcome", e->outcome, sizeof(e->outcome)) != 0
        || log_word(l, l->root, "replica", e->replica, sizeof(e->replica))
           != 0)
    {
        return -1;
    }

    has = e->outcome[0] != '\0' || e->replica[0] != '\0';

    if (log_int(l, l->root, "chosen", INT32_MAX, &chosen, has ? &has : NULL)
        != 0)
    {
        return -1;
    }

    e->chosen = (uint32_t) chosen;

    if (json_object_get(l->root, "chosen") == NULL) {
        e->chosen = LLMGW_RANK_NONE;
        return 0;
    }

    return e->chosen < e->of ? 0
           : log_fail(l, "\"%s\" is beyond the candidates", "chosen");
}


static int
log_route(const log_line_t *l, report_log_entry_t *e)
{
    char     pool[REPORT_LOG_ID_BYTES];
    int64_t  turn;

    turn = 0;

    if (log_text(l, l->root, "pool", pool, sizeof(pool)) != 0
        || log_uint32(l, l->root, "blocks", &e->nblocks) != 0
        || log_uint32(l, l->root, "of", &e->of) != 0
        || log_chosen(l, e) != 0
        || log_int(l, l->root, "turn", INT64_MAX, &turn, &e->has_turn) != 0
        || log_hex(l, "random", &e->random, &e->has_random) != 0
        || log_hex(l, "key", &e->key, &e->has_key) != 0
        || log_sums(l, e) != 0
        || log_candidates(l, e) != 0)
    {
        return -1;
    }

    e->kind = REPORT_LOG_ROUTE;
    e->turn = (uint64_t) turn;
    e->pool = report_log_pool(l->reader, e->worker, pool);

    /* with several workers, a worker's line may be lost */
    return e->pool != NULL || e->worker != 0 ? 0
           : log_fail(l, "no line before said the policy of pool \"%s\"",
                      pool);
}


static int
log_admission(const log_line_t *l, report_log_entry_t *e)
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


/* 1: a decision is in *e; 0: the line is another one; -1: an error. */
static int
log_entry(const log_line_t *l, report_log_entry_t *e)
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

    if (log_worker(l, &e->worker) != 0) {
        return -1;
    }

    if (!l->reader->has_head && e->worker == 0) {
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


static json_t *
log_parse(const char *text, size_t len)
{
    json_t        *root;
    json_error_t   wrong;

    root = len > REPORT_LOG_LINE_BYTES ? NULL
           : json_loadb(text, len, 0, &wrong);

    if (root != NULL && !json_is_object(root)) {
        json_decref(root);
        return NULL;
    }

    return root;
}


/* The text of another process that follows half a line; NULL: there is none. */
static json_t *
log_parse_rest(const char *text, size_t len)
{
    json_t      *root;
    const char  *at, *end;

    root = NULL;
    end = text + len;
    at = text;

    while (root == NULL && at < end
           && (at = memmem(at + 1, (size_t) (end - at - 1), LOG_BEGIN,
                           sizeof(LOG_BEGIN) - 1)) != NULL)
    {
        root = log_parse(at, (size_t) (end - at));
    }

    return root;
}


/* 1: a decision; 0: none in this line; -1 and *error. */
static int
log_line(report_log_reader_t *reader, size_t len, report_log_entry_t *entry,
    work_error_t *error)
{
    int         rc;
    log_line_t  l = { reader, error, NULL };

    l.root = log_parse(reader->text, len);

    if (l.root == NULL) {
        l.root = log_parse_rest(reader->text, len);

        if (l.root == NULL && !reader->has_head
            && strncmp(reader->text, LOG_BEGIN, sizeof(LOG_BEGIN) - 1) != 0)
        {
            return log_fail(&l, "the line is no %s", "JSON object");
        }

        if (reader->broken != NULL) {
            reader->broken(reader->data, reader->path, reader->line);
        }
    }

    rc = l.root == NULL ? 0 : log_entry(&l, entry);
    json_decref(l.root);

    return rc;
}


int
report_log_read(report_log_reader_t *reader, report_log_entry_t *entry,
    work_error_t *error)
{
    int      rc;
    ssize_t  len;

    do {
        len = getline(&reader->text, &reader->size, reader->in);

        if (len < 0) {
            return feof(reader->in)
                   ? 0
                   : work_fail(error, reader->path, 0, "%s", strerror(errno));
        }

        reader->line++;
        rc = len == 1 && reader->text[0] == '\n'
             ? 0 : log_line(reader, (size_t) len, entry, error);

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
    free(reader->pools);
    memset(reader, 0, sizeof(*reader));
}


void
report_log_entry_done(report_log_entry_t *entry)
{
    free(entry->facts);
    free(entry->candidates);
    memset(entry, 0, sizeof(*entry));
}
