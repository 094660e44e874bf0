
/*
 * A hedge: a second attempt beside the first, at another replica.  Whichever
 * sends the first token serves the stream (serve.c).
 */

#include "front/stream.h"
#include "upstream/pool.h"


/*
 * Called when the first attempt has started.  With a delay every request is
 * hedged, once that has passed.  With "on" a request is hedged if its own flag
 * asks for it, at once.
 */

void
ngx_http_llmgw_hedge_later(ngx_http_llmgw_stream_t *stream)
{
    ngx_http_llmgw_srv_conf_t  *conf;

    conf = stream->pool->conf;

    if (conf->hedge_delay) {
        stream->may_hedge = 1;
        stream->hedge_ms = ngx_current_msec + conf->hedge_delay;
        ngx_http_llmgw_timer_arm(stream);

    } else if (conf->hedge_on && stream->wants_hedge) {
        (void) ngx_http_llmgw_hedge(stream);
    }
}


/* 1: a second attempt has started. */

ngx_uint_t
ngx_http_llmgw_hedge(ngx_http_llmgw_stream_t *stream)
{
    ngx_uint_t                 budget;
    ngx_http_llmgw_attempt_t  *first, *second;

    first = &stream->attempts[0];
    second = &stream->attempts[1];

    stream->may_hedge = 0;

    if (stream->serving || first->replica == NULL || first->ended
        || second->replica)
    {
        return 0;
    }

    budget = stream->pool->conf->hedge_delay ? stream->pool->conf->hedge_budget
                                             : 0;

    if (!ngx_http_llmgw_claim_second(&stream->claim, first->replica, budget,
                                     &second->lease))
    {
        return 0;
    }

    stream->has_second = 1;
    ngx_http_llmgw_serve_start(stream, second);

    return 1;
}
