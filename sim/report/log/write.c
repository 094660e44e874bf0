
/*
 * Writes the decision log.
 */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/rnd.h"
#include "sim/report/log/write.h"


#define LOG_BUFFER_BYTES  (1 << 20)
#define LOG_LINE_BYTES    4096          /* initial size of a line */

static const char *const  log_pools[] = { "", "prefill", "decode" };


static llmgw_line_text_t
log_text(const char *text)
{
    return (llmgw_line_text_t) { text, strlen(text) };
}


/*
 * Writes a line if it fits.  1: it did not fit, there is room for it now, and
 * it must be made again.
 */
static int
log_put(report_log_t *log, const llmgw_line_t *out)
{
    char  *line;

    if (out->len <= out->size) {
        fwrite(out->start, 1, out->len, log->out);
        return 0;
    }

    line = realloc(log->line, 2 * out->len);

    if (line == NULL) {
        log->no_memory = 1;
        return 0;
    }

    log->line = line;
    log->size = 2 * out->len;

    return 1;
}


static llmgw_line_t
log_line(const report_log_t *log)
{
    llmgw_line_t  out;

    llmgw_line_init(&out, log->line, log->size);

    return out;
}


static void
log_policy(report_log_t *log, uint32_t pool, const fleet_policy_t *policy)
{
    llmgw_line_t         out;
    llmgw_decision_policy_t  p;

    memset(&p, 0, sizeof(p));
    p.pool = log_text(log_pools[pool]);
    p.name = pool == 0 ? log->config->routing.policy_name : "weighted";
    p.weighted = policy->ranker.policy == LLMGW_RANK_WEIGHTED
                 ? &policy->ranker.weighted : NULL;
    p.is_effective = log->config->routing.signal == FLEET_SIGNAL_EFFECTIVE;

    do {
        out = log_line(log);
        llmgw_decision_policy(&out, &p);
    } while (log_put(log, &out));
}


static void
log_head(report_log_t *log)
{
    llmgw_line_t        out;
    const fleet_routing_t  *routing;

    out = log_line(log);
    llmgw_decision_head(&out, "llmgw-sim", 0);
    log_put(log, &out);

    routing = &log->config->routing;
    log_policy(log, 0, &routing->policy);

    if (routing->has_prefill) {
        log_policy(log, 1, &routing->prefill);
    }

    if (routing->has_decode) {
        log_policy(log, 2, &routing->decode);
    }
}


int
report_log_open(report_log_t *log, const char *path,
    const fleet_config_t *config, uint32_t top, double sample)
{
    uint32_t  n;

    memset(log, 0, sizeof(*log));
    n = config->replicas;

    log->config = config;
    log->top = top;
    log->sample = sample;
    log->cold = calloc(n, sizeof(double));
    log->scores = calloc((size_t) n * LLMGW_WEIGHTS_MAX, sizeof(double));
    log->heap = calloc(n, sizeof(uint32_t));
    log->shown = calloc((size_t) n + 1, sizeof(uint32_t));
    log->line = malloc(LOG_LINE_BYTES);
    log->size = LOG_LINE_BYTES;
    log->out = fopen(path, "w");

    if (log->cold == NULL || log->scores == NULL || log->heap == NULL
        || log->shown == NULL || log->line == NULL || log->out == NULL)
    {
        return -1;
    }

    setvbuf(log->out, NULL, _IOFBF, LOG_BUFFER_BYTES);
    log_head(log);

    return 0;
}


/* Whether a request is in the sample, with all of its decisions. */
static int
log_takes(const report_log_t *log, const work_request_t *request)
{
    rnd_t  rnd;

    if (log->sample >= 1) {
        return 1;
    }

    rnd.state = request->index;

    return (double) (rnd_next(&rnd) >> 11) / (double) (1ULL << 53)
           < log->sample;
}


void
report_log_decided(void *data, const fleet_decision_t *decision)
{
    report_log_t                *log;
    llmgw_line_t             out;
    const work_request_t        *r;
    llmgw_decision_admission_t   a;

    log = data;
    r = decision->request;

    if (decision->kind != FLEET_DECISION_ADMISSION || !log_takes(log, r)) {
        return;
    }

    memset(&a, 0, sizeof(a));
    a.t_us = decision->clock_us;
    a.request = log_text(r->id);
    a.slo_class = log_text(r->slo_class->text);
    a.tenant = log_text(r->tenant->text);
    a.tokens = r->input_tokens;
    a.reason = decision->is_admitted ? NULL : decision->reason;

    do {
        out = log_line(log);
        llmgw_decision_admission(&out, &a);
    } while (log_put(log, &out));
}


static void
log_describe(const void *data, uint32_t position,
    llmgw_decision_replica_t *replica)
{
    int                    len;
    uint32_t               number;
    const fleet_chosen_t  *c;

    c = data;
    number = c->scoring->candidates[position].replica;
    len = snprintf(replica->made, sizeof(replica->made), "instance_%u",
                   number);

    replica->id = (llmgw_line_text_t) { replica->made, (size_t) len };
    replica->free_blocks = c->free_blocks[number];
}


static void
log_route(report_log_t *log, const fleet_chosen_t *c,
    llmgw_decision_route_t *route)
{
    memset(route, 0, sizeof(*route));

    route->t_us = c->clock_us;
    route->request = log_text(c->request->id);
    route->pool = log_text(log_pools[c->role]);
    route->ranker = c->ranker;
    route->scoring = c->scoring;
    route->ranks = c->ranks;
    route->scores = log->scores;
    route->cold = log->cold;
    route->reason = c->reason;
    route->chosen = c->chosen;
    route->describe = log_describe;
    route->data = c;

    if (log->top != 0 && log->top < c->scoring->n) {
        route->shown = log->shown;
        route->nshown = llmgw_decision_top(route, log->top, log->heap,
                                           log->shown);
    }
}


void
report_log_chose(void *data, const fleet_chosen_t *chosen)
{
    report_log_t            *log;
    llmgw_line_t         out;
    llmgw_decision_route_t   route;

    log = data;

    if (!log_takes(log, chosen->request)) {
        return;
    }

    llmgw_decision_prepare(chosen->ranker, chosen->scoring, log->scores,
                           log->cold);
    log_route(log, chosen, &route);

    do {
        out = log_line(log);
        llmgw_decision_route(&out, &route);
    } while (log_put(log, &out));
}


int
report_log_close(report_log_t *log)
{
    int  rc;

    rc = 0;

    if (log->out != NULL) {
        rc = ferror(log->out) ? -1 : 0;
        rc |= fclose(log->out) != 0 ? -1 : 0;
    }

    if (log->no_memory) {
        errno = ENOMEM;
        rc = -1;
    }

    free(log->cold);
    free(log->scores);
    free(log->heap);
    free(log->shown);
    free(log->line);
    memset(log, 0, sizeof(*log));

    return rc;
}
