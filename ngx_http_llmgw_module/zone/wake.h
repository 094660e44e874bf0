
/*
 * How one worker wakes another, by an eventfd for each process slot of nginx.
 */

#ifndef _NGX_HTTP_LLMGW_WAKE_H_INCLUDED_
#define _NGX_HTTP_LLMGW_WAKE_H_INCLUDED_


#include "conf/conf.h"


#define NGX_HTTP_LLMGW_WAKES          16     /* of other workers, per
                                                iteration */


/* A worker's end of it. */
struct ngx_http_llmgw_waker_s {
    void                        (*woken)(void *data);
    void                         *data;
    ngx_http_llmgw_main_conf_t   *conf;
    ngx_log_t                    *log;
    ngx_event_t                   post;
    uint32_t                      slots[NGX_HTTP_LLMGW_WAKES];
    ngx_uint_t                    n;            /* process slots to wake */
};


/* To be called in the master, for each configuration: makes the eventfds. */
ngx_int_t ngx_http_llmgw_wake_init(ngx_cycle_t *cycle,
    ngx_http_llmgw_main_conf_t *lmcf);

/*
 * To be called in a worker, with woken, data, conf and log set: from then on
 * woken(data) is called when another worker wakes this one.
 */
ngx_int_t ngx_http_llmgw_wake_listen(ngx_http_llmgw_waker_t *waker,
    ngx_cycle_t *cycle);
void ngx_http_llmgw_wake_done(ngx_http_llmgw_waker_t *waker);

/*
 * Called at the end of the event loop's iteration, or when many are to be
 * woken.
 */
void ngx_http_llmgw_wake_process(ngx_http_llmgw_waker_t *waker,
    uint32_t process);


#endif /* _NGX_HTTP_LLMGW_WAKE_H_INCLUDED_ */
