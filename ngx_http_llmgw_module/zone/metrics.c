
/*
 * Counting: done where things happen, and cheap enough to be done for each
 * token.
 */

#include "zone/zone.h"


/* Upper bounds in ms; the last one, +Inf, is left out. */

static const ngx_msec_t  ngx_http_llmgw_first_token_ms[] = {
    1, 5, 10, 20, 40, 60, 80, 100, 250, 500, 750, 1000, 2500, 5000, 7500,
    10000, 20000, 40000, 80000, 160000, 640000, 2560000, 0
};

static const ngx_msec_t  ngx_http_llmgw_inter_token_ms[] = {
    10, 25, 50, 75, 100, 150, 200, 300, 400, 500, 750, 1000, 2500, 5000,
    7500, 10000, 20000, 40000, 80000, 0
};

static const ngx_msec_t  ngx_http_llmgw_request_ms[] = {
    300, 500, 800, 1000, 1500, 2000, 2500, 5000, 10000, 15000, 20000, 30000,
    40000, 50000, 60000, 120000, 240000, 480000, 960000, 1920000, 7680000, 0
};

static const ngx_msec_t  ngx_http_llmgw_queue_wait_ms[] = {
    1, 5, 10, 20, 50, 100, 200, 300, 500, 800, 1000, 1500, 2000, 2500, 5000,
    10000, 15000, 20000, 30000, 60000, 0
};


_Static_assert(sizeof(ngx_http_llmgw_first_token_ms) / sizeof(ngx_msec_t)
               == NGX_HTTP_LLMGW_NFIRST_TOKEN,
               "slots have as many buckets as the histogram");


static ngx_http_llmgw_counters_t *ngx_http_llmgw_metrics_row(
    ngx_http_llmgw_zone_t *zone);
static void ngx_http_llmgw_metrics_observe(ngx_http_llmgw_histogram_t *h,
    const ngx_msec_t *bounds, ngx_msec_t ms);


/* A worker without a row counts in the base, with the others of its kind. */

static ngx_http_llmgw_counters_t *
ngx_http_llmgw_metrics_row(ngx_http_llmgw_zone_t *zone)
{
    return zone->self.row == LLMGW_NO_ROW
           ? &zone->shared->base : &zone->shared->counters[zone->self.row];
}


const ngx_msec_t *
ngx_http_llmgw_metrics_bounds(ngx_uint_t histogram)
{
#define NGX_HTTP_LLMGW_BOUNDS(name, buckets, help)                            \
    ngx_http_llmgw_##buckets##_ms,

    static const ngx_msec_t  *bounds[] = {
        NGX_HTTP_LLMGW_HISTOGRAMS(NGX_HTTP_LLMGW_BOUNDS)
    };

    return bounds[histogram];
}


static void
ngx_http_llmgw_metrics_observe(ngx_http_llmgw_histogram_t *h,
    const ngx_msec_t *bounds, ngx_msec_t ms)
{
    ngx_uint_t  i;

    for (i = 0; bounds[i] && ms > bounds[i]; i++) {
        /* void */
    }

    h->counts[i]++;
    h->sum_ms += ms;
}


const char *
ngx_http_llmgw_metrics_reason_name(unsigned reason)
{
    const char  *name;

    name = llmgw_outcome_reason(reason);

    return name ? name : "";
}


const char *
ngx_http_llmgw_metrics_name_failovers(unsigned i)
{
    return i == LLMGW_CAUSE_NONE ? NULL : llmgw_cause_name(i);
}


const char *
ngx_http_llmgw_metrics_name_resumes(unsigned i)
{
    return i == LLMGW_RESUME_BY_NOTHING ? NULL : llmgw_resume_by_name(i);
}


const char *
ngx_http_llmgw_metrics_name_attempts_failed(unsigned i)
{
    return ngx_http_llmgw_metrics_name_failovers(i);
}


const char *
ngx_http_llmgw_metrics_name_shard_failures(unsigned i)
{
    return i == NGX_HTTP_LLMGW_SHARDS_SURVIVED ? "survived" : "lost";
}


const char *
ngx_http_llmgw_metrics_name_hedges(unsigned i)
{
    return i == NGX_HTTP_LLMGW_HEDGE_WON ? "won" : "lost";
}


const char *
ngx_http_llmgw_metrics_name_breaker_transitions(unsigned i)
{
    return llmgw_breaker_change_name(i);
}


const char *
ngx_http_llmgw_metrics_name_reads(unsigned i)
{
    return i == NGX_HTTP_LLMGW_READ_EVENT ? "event" : "interval";
}


const char *
ngx_http_llmgw_metrics_name_trace_lines(unsigned i)
{
    return i == NGX_HTTP_LLMGW_TRACE_WRITTEN ? "written" : "lost";
}


const char *
ngx_http_llmgw_metrics_name_openai_tokens(unsigned i)
{
    static const char  *names[] = { "prompt", "completion", "cached" };

    return names[i];
}


const char *
ngx_http_llmgw_metrics_name_prefix_blocks(unsigned i)
{
    return i == NGX_HTTP_LLMGW_RESULT_HIT ? "hit" : "miss";
}


const char *
ngx_http_llmgw_metrics_name_body_refusals(unsigned i)
{
    static const char  *names[] = {
        [LLMGW_SHARE_REQUESTS] = "request",
        [LLMGW_SHARE_ANSWERS] = "answer",
        [LLMGW_SHARE_RESUME] = "delivered",
        [NGX_HTTP_LLMGW_BODY_IDLE] = "idle"
    };

    return names[i];
}


void
ngx_http_llmgw_metrics_request(ngx_http_llmgw_zone_t *zone, ngx_uint_t code,
    llmgw_outcome_t outcome)
{
    ngx_uint_t  reason;

    code = ngx_min(code, NGX_HTTP_LLMGW_NCODES - 1);
    reason = outcome < LLMGW_NREASONS ? outcome : LLMGW_OUTCOME_SERVED;

    ngx_http_llmgw_metrics_row(zone)->requests[code][reason]++;
}


void
ngx_http_llmgw_metrics_nameless(ngx_http_llmgw_zone_t *zone, ngx_uint_t code,
    llmgw_outcome_t outcome)
{
    if (outcome < LLMGW_NREASONS) {
        ngx_http_llmgw_metrics_request(zone, code, outcome);
        return;
    }

    code = ngx_min(code, NGX_HTTP_LLMGW_NCODES - 1);

    ngx_http_llmgw_metrics_row(zone)->nameless[code]++;
}


void
ngx_http_llmgw_metrics_take_nameless(ngx_http_llmgw_counters_t *to,
    const ngx_http_llmgw_counters_t *from)
{
    ngx_uint_t  i;

    for (i = 0; i < NGX_HTTP_LLMGW_NCODES; i++) {
        to->requests[i][LLMGW_OUTCOME_SERVED] += from->nameless[i];
    }
}


void
ngx_http_llmgw_metrics_time(ngx_http_llmgw_zone_t *zone,
    ngx_http_llmgw_histogram_index_t histogram, ngx_msec_t ms)
{
    ngx_http_llmgw_histogram_t  *histograms;

    /* the histograms are adjacent */
    histograms = &ngx_http_llmgw_metrics_row(zone)->first_token_seconds;

    ngx_http_llmgw_metrics_observe(&histograms[histogram],
                                   ngx_http_llmgw_metrics_bounds(histogram),
                                   ms);
}


/* To be called once for each message of tokens that goes to a client. */

void
ngx_http_llmgw_metrics_tokens(ngx_http_llmgw_zone_t *zone,
    ngx_uint_t is_first, ngx_msec_t ms)
{
    ngx_http_llmgw_metrics_time(zone, is_first
                             ? NGX_HTTP_LLMGW_HISTOGRAM_first_token_seconds
                             : NGX_HTTP_LLMGW_HISTOGRAM_inter_token_seconds,
                             ms);
}


void
ngx_http_llmgw_metrics_attempt_failed(ngx_http_llmgw_zone_t *zone,
    llmgw_cause_t cause)
{
    ngx_http_llmgw_metrics_row(zone)->attempts_failed[cause]++;
}


void
ngx_http_llmgw_metrics_failover(ngx_http_llmgw_zone_t *zone,
    llmgw_cause_t cause)
{
    ngx_http_llmgw_metrics_row(zone)->failovers[cause]++;
}


void
ngx_http_llmgw_metrics_shards(ngx_http_llmgw_zone_t *zone,
    ngx_http_llmgw_shards_outcome_t outcome, ngx_uint_t n)
{
    ngx_http_llmgw_metrics_row(zone)->shard_failures[outcome] += n;
}


void
ngx_http_llmgw_metrics_resume(ngx_http_llmgw_zone_t *zone,
    llmgw_resume_by_t by)
{
    ngx_http_llmgw_metrics_row(zone)->resumes[by]++;
}


void
ngx_http_llmgw_metrics_hedge(ngx_http_llmgw_zone_t *zone,
    ngx_http_llmgw_hedge_outcome_t outcome)
{
    ngx_http_llmgw_metrics_row(zone)->hedges[outcome]++;
}


void
ngx_http_llmgw_metrics_trace(ngx_http_llmgw_zone_t *zone,
    ngx_http_llmgw_trace_result_t result, ngx_uint_t nlines)
{
    ngx_http_llmgw_metrics_row(zone)->trace_lines[result] += nlines;
}


void
ngx_http_llmgw_metrics_breaker(ngx_http_llmgw_zone_t *zone,
    llmgw_breaker_change_t change)
{
    ngx_http_llmgw_metrics_row(zone)->breaker_transitions[change]++;
}


void
ngx_http_llmgw_metrics_read(ngx_http_llmgw_zone_t *zone,
    ngx_http_llmgw_read_t by)
{
    ngx_http_llmgw_metrics_row(zone)->reads[by]++;
}


void
ngx_http_llmgw_metrics_openai(ngx_http_llmgw_zone_t *zone, ngx_uint_t prompt,
    ngx_uint_t completion, ngx_uint_t cached)
{
    uint64_t  *tokens;

    tokens = ngx_http_llmgw_metrics_row(zone)->openai_tokens;

    tokens[NGX_HTTP_LLMGW_KIND_PROMPT] += prompt;
    tokens[NGX_HTTP_LLMGW_KIND_COMPLETION] += completion;
    tokens[NGX_HTTP_LLMGW_KIND_CACHED] += cached;
}


void
ngx_http_llmgw_metrics_prefix(ngx_http_llmgw_zone_t *zone, ngx_uint_t hits,
    ngx_uint_t misses)
{
    uint64_t  *blocks;

    blocks = ngx_http_llmgw_metrics_row(zone)->prefix_blocks;

    blocks[NGX_HTTP_LLMGW_RESULT_HIT] += hits;
    blocks[NGX_HTTP_LLMGW_RESULT_MISS] += misses;
}


void
ngx_http_llmgw_metrics_saturation_unknown(ngx_http_llmgw_zone_t *zone)
{
    ngx_http_llmgw_metrics_row(zone)->saturation_unknown++;
}


void
ngx_http_llmgw_metrics_body_refusal(ngx_http_llmgw_zone_t *zone,
    ngx_uint_t what)
{
    ngx_http_llmgw_metrics_row(zone)->body_refusals[what]++;
}


void
ngx_http_llmgw_metrics_held(ngx_http_llmgw_zone_t *zone, int change)
{
    if (change > 0) {
        ngx_http_llmgw_metrics_row(zone)->held++;
    }

    if (zone->self.row != LLMGW_NO_ROW) {
        zone->shared->levels[zone->self.row].held += change;
    }
}


void
ngx_http_llmgw_metrics_streams(ngx_http_llmgw_zone_t *zone, int change)
{
    if (zone->self.row != LLMGW_NO_ROW) {
        zone->shared->levels[zone->self.row].streams += change;
    }
}


void
ngx_http_llmgw_metrics_sessions(ngx_http_llmgw_zone_t *zone, int change)
{
    if (zone->self.row != LLMGW_NO_ROW) {
        zone->shared->levels[zone->self.row].sessions += change;
    }
}


void
ngx_http_llmgw_metrics_body_bytes(ngx_http_llmgw_zone_t *zone,
    llmgw_share_t share, ssize_t change)
{
    if (zone->self.row != LLMGW_NO_ROW) {
        zone->shared->levels[zone->self.row].body_bytes[share] += change;
    }
}


void
ngx_http_llmgw_metrics_add(ngx_http_llmgw_counters_t *to,
    ngx_http_llmgw_counters_t *from, ngx_uint_t zero)
{
    uint64_t    *t, *f;
    ngx_uint_t   i;

    t = (uint64_t *) to;
    f = (uint64_t *) from;

    /*
     * word by word: if this worker is killed here, at most one word counts
     * twice
     */

    for (i = 0; i < sizeof(ngx_http_llmgw_counters_t) / sizeof(uint64_t); i++)
    {
        t[i] += f[i];

        if (zero) {
            f[i] = 0;
        }
    }
}
