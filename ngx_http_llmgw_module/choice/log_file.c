
/*
 * The decision log's file, as one worker writes it.
 *
 *              begin                            end
 *   [newline]  [head, policy]  decision line    ---> buffer ---> write()
 *
 * With a buffer several lines make one write; without one each is its own.  The
 * worker's head and its policy are written before the first line of a file, and
 * again after lines were lost: so a reader finds the policy before each line of
 * this worker.  A write that was cut off, by a full disk, leaves half a line;
 * the next one begins with a newline.
 *
 * If a write fails it is tried again a second later, and lines until then are
 * lost: a full disk may take long to report an error.
 */

#include "choice/log.h"


#define NGX_HTTP_LLMGW_LOG_LINE  4096           /* at first; it grows */


static ngx_int_t ngx_http_llmgw_log_reserve(ngx_http_llmgw_log_t *log,
    size_t size);
static void ngx_http_llmgw_log_head(ngx_http_llmgw_log_t *log,
    llmgw_line_t *out);
static void ngx_http_llmgw_log_put(ngx_http_llmgw_log_t *log, u_char *p,
    size_t len);
static void ngx_http_llmgw_log_flush(ngx_http_llmgw_log_t *log);
static void ngx_http_llmgw_log_flush_handler(ngx_event_t *ev);
static void ngx_http_llmgw_log_write(ngx_http_llmgw_log_t *log, u_char *p,
    size_t len);
static void ngx_http_llmgw_log_failed(ngx_http_llmgw_log_t *log, u_char *p,
    size_t len, ssize_t n, ngx_err_t err);
static ngx_uint_t ngx_http_llmgw_log_count(u_char *p, size_t len);
static void ngx_http_llmgw_log_lose(ngx_http_llmgw_log_t *log, ngx_uint_t n);


void
ngx_http_llmgw_log_start(ngx_http_llmgw_log_t *log,
    ngx_http_llmgw_zone_t *zone)
{
    if (log) {
        log->zone = zone;
        log->event.handler = ngx_http_llmgw_log_flush_handler;
        log->event.data = log;
        log->event.log = zone->log;
        log->event.cancelable = 1;
    }
}


void
ngx_http_llmgw_log_stop(ngx_http_llmgw_log_t *log)
{
    if (log == NULL || log->zone == NULL) {
        return;
    }

    ngx_http_llmgw_log_flush(log);

    log->zone = NULL;

    ngx_free(log->line);
    ngx_free(log->candidates);          /* and the arrays after it */

    log->line = NULL;
    log->candidates = NULL;
    log->line_bytes = 0;
    log->npeers = 0;
}


/*
 * nginx calls it before it opens the file again, and when a process ends.  In
 * the master all buffers are empty.
 */

void
ngx_http_llmgw_log_flush_file(ngx_open_file_t *file, ngx_log_t *errors)
{
    ngx_uint_t              i;
    ngx_array_t            *logs;
    ngx_http_llmgw_log_t  **log;

    logs = file->data;
    log = logs->elts;

    for (i = 0; i < logs->nelts; i++) {
        ngx_http_llmgw_log_flush(log[i]);
        log[i]->begun = 0;
        log[i]->torn = 0;
    }
}


ngx_int_t
ngx_http_llmgw_log_begin(ngx_http_llmgw_log_t *log, llmgw_line_t *out)
{
    if (log->failed == ngx_time()
        || (log->line == NULL
            && ngx_http_llmgw_log_reserve(log, NGX_HTTP_LLMGW_LOG_LINE)
               != NGX_OK))
    {
        ngx_http_llmgw_log_lose(log, 1);
        return NGX_DECLINED;
    }

    llmgw_line_init(out, (char *) log->line, log->line_bytes);

    if (!log->begun) {
        ngx_http_llmgw_log_head(log, out);
    }

    return NGX_OK;
}


static ngx_int_t
ngx_http_llmgw_log_reserve(ngx_http_llmgw_log_t *log, size_t size)
{
    u_char  *line;

    line = ngx_alloc(size, log->zone->log);
    if (line == NULL) {
        return NGX_ERROR;
    }

    ngx_free(log->line);

    log->line = line;
    log->line_bytes = size;

    return NGX_OK;
}


static void
ngx_http_llmgw_log_head(ngx_http_llmgw_log_t *log, llmgw_line_t *out)
{
    llmgw_decision_ring_t       ring;
    llmgw_decision_policy_t     policy;
    ngx_http_llmgw_srv_conf_t  *conf;

    conf = log->conf;

    if (log->torn) {
        llmgw_line_end(out);
    }

    llmgw_decision_head(out, "nginx", ngx_pid);

    ngx_memzero(&policy, sizeof(llmgw_decision_policy_t));

    policy.worker = ngx_pid;
    policy.pool.text = (char *) conf->name.data;
    policy.pool.len = conf->name.len;
    policy.name = llmgw_rank_policy_name(conf->policy);

    if (conf->policy == LLMGW_RANK_WEIGHTED) {
        policy.weighted = &conf->weighted;
    }

    if (conf->policy == LLMGW_RANK_AFFINITY) {
        ring.vnodes = conf->vnodes;
        ring.load_factor_permille = conf->load_factor;
        ring.min_load = conf->min_load;
        policy.ring = &ring;
    }

    llmgw_decision_policy(out, &policy);
}


ngx_uint_t
ngx_http_llmgw_log_end(ngx_http_llmgw_log_t *log, llmgw_line_t *out)
{
    if (out->len > out->size) {
        if (ngx_http_llmgw_log_reserve(log, out->len + out->len / 2)
            == NGX_OK)
        {
            return 1;
        }

        ngx_http_llmgw_log_lose(log, 1);
        return 0;
    }

    log->begun = 1;
    ngx_http_llmgw_log_put(log, (u_char *) out->start, out->len);

    return 0;
}


static void
ngx_http_llmgw_log_put(ngx_http_llmgw_log_t *log, u_char *p, size_t len)
{
    if (len > (size_t) (log->end - log->pos)) {
        ngx_http_llmgw_log_flush(log);
    }

    if (!log->begun) {
        /* earlier lines could not be written, so the head is missing */
        ngx_http_llmgw_log_lose(log, ngx_http_llmgw_log_count(p, len));
        return;
    }

    if (len > (size_t) (log->end - log->pos)) {
        ngx_http_llmgw_log_write(log, p, len);
        return;
    }

    log->pos = ngx_cpymem(log->pos, p, len);

    if (log->flush && !log->event.timer_set) {
        ngx_add_timer(&log->event, log->flush);
    }
}


static void
ngx_http_llmgw_log_flush(ngx_http_llmgw_log_t *log)
{
    if (log->event.timer_set) {
        ngx_del_timer(&log->event);
    }

    if (log->pos != log->start) {
        ngx_http_llmgw_log_write(log, log->start, log->pos - log->start);
        log->pos = log->start;
    }
}


static void
ngx_http_llmgw_log_flush_handler(ngx_event_t *ev)
{
    ngx_http_llmgw_log_flush(ev->data);
}


/*
 * Writes whole lines.  The file is regular, so one call writes all or reports
 * an error.
 */

static void
ngx_http_llmgw_log_write(ngx_http_llmgw_log_t *log, u_char *p, size_t len)
{
    ssize_t  n;

    n = ngx_write_fd(log->file->fd, p, len);

    if (n != (ssize_t) len) {
        ngx_http_llmgw_log_failed(log, p, len, n, ngx_errno);
        return;
    }

    log->torn = 0;

    ngx_http_llmgw_metrics_trace(log->zone, NGX_HTTP_LLMGW_TRACE_WRITTEN,
                                 ngx_http_llmgw_log_count(p, len));
}


/*
 * Logs at most once a second, as nothing is written for the rest of this
 * second.
 */

static void
ngx_http_llmgw_log_failed(ngx_http_llmgw_log_t *log, u_char *p, size_t len,
    ssize_t n, ngx_err_t err)
{
    log->begun = 0;
    log->failed = ngx_time();

    if (n >= 0) {
        err = NGX_ENOSPC;       /* the error is reported only by the next
                                   call */
    }

    if (n > 0) {
        log->torn = (p[n - 1] != LF);

        ngx_http_llmgw_metrics_trace(log->zone, NGX_HTTP_LLMGW_TRACE_WRITTEN,
                                     ngx_http_llmgw_log_count(p, n));
        p += n;
        len -= n;
    }

    ngx_http_llmgw_log_lose(log, ngx_http_llmgw_log_count(p, len));

    ngx_log_error(NGX_LOG_WARN, log->zone->log, err,
                  "llmgw: upstream \"%V\": cannot write to the decision log "
                  "\"%V\", %ui lines are lost", &log->conf->name,
                  &log->file->name, log->lost);

    log->lost = 0;
}


static ngx_uint_t
ngx_http_llmgw_log_count(u_char *p, size_t len)
{
    u_char      *end;
    ngx_uint_t   n;

    n = 0;

    for (end = p + len; (p = memchr(p, LF, end - p)) != NULL; p++) {
        n++;
    }

    return n;
}


static void
ngx_http_llmgw_log_lose(ngx_http_llmgw_log_t *log, ngx_uint_t n)
{
    log->lost += n;

    ngx_http_llmgw_metrics_trace(log->zone, NGX_HTTP_LLMGW_TRACE_LOST, n);
}
