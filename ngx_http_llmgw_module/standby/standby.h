
/*
 * Groups with standbys, as one worker sees them in one view: which role each
 * member has (core/standby.h).  Only what was logged is remembered from one
 * view to the next.
 */

#ifndef _NGX_HTTP_LLMGW_STANDBY_H_INCLUDED_
#define _NGX_HTTP_LLMGW_STANDBY_H_INCLUDED_


#include "core/standby.h"
#include "proto/members/members.h"

#include "models/models.h"
#include "zone/takeovers.h"


/* What is kept beside a group. */
typedef struct {
    ngx_uint_t                    is_ours;      /* the pool takes some of its
                                                   members */
    llmgw_takeover_t             *takeover;     /* NULL: not ours, or too many
                                                   groups are counted */
} ngx_http_llmgw_standby_info_t;


typedef struct {
    llmgw_standby_t               known;        /* the groups of the view */
    ngx_http_llmgw_standby_info_t *infos;       /* by place in `known` */
    size_t                        capacity;     /* places that are allocated */
    ngx_http_llmgw_zone_t        *zone;
    ngx_log_t                    *log;
    ngx_str_t                    *upstream;     /* its name, for the log */
    unsigned                      conflict:1;   /* already logged */
} ngx_http_llmgw_standbys_t;


/* A member's role in its group.  Zeroed: it has no group. */
typedef struct {
    ngx_uint_t                    is;           /* llmgw_standing_t */
    ngx_uint_t                    has_standby;     /* its group has a standby
                                                   that lives */
    llmgw_takeover_t             *takeover;     /* of its group, or NULL */
} ngx_http_llmgw_standing_t;


/* zone: already claimed */
void ngx_http_llmgw_standbys_init(ngx_http_llmgw_standbys_t *standbys,
    ngx_str_t *upstream, ngx_http_llmgw_zone_t *zone, ngx_log_t *log);
void ngx_http_llmgw_standbys_done(ngx_http_llmgw_standbys_t *standbys);

/* Makes room for a view's groups.  NGX_ERROR: no memory. */
ngx_int_t ngx_http_llmgw_standbys_reserve(ngx_http_llmgw_standbys_t *standbys,
    const llmgw_members_view_t *view);

/*
 * To be called when a view was taken over and its models are known: finds its
 * groups, counts takeovers that no worker has seen yet, and logs them.
 */
void ngx_http_llmgw_standbys_update(ngx_http_llmgw_standbys_t *standbys,
    ngx_http_llmgw_models_t *models, const llmgw_members_view_t *view);

/*
 * The role of the i-th member in its group.  Returns the member whose models
 * and resume group apply to it: for a standby that reports none, those of the
 * active one that it may succeed, dead or alive; for all others their own.
 */
const llmgw_member_t *ngx_http_llmgw_standbys_place(
    const ngx_http_llmgw_standbys_t *standbys,
    const llmgw_members_view_t *view, size_t i,
    ngx_http_llmgw_standing_t *standing);

/* The group whose first member is the i-th one, if it is ours; else NULL. */
const llmgw_standby_group_t *ngx_http_llmgw_standbys_group(
    const ngx_http_llmgw_standbys_t *standbys,
    const llmgw_members_view_t *view, size_t i, llmgw_takeover_t **takeover);

/* A number for the member's process, which no other process has. */
uint64_t ngx_http_llmgw_standbys_process(const llmgw_member_t *member);


#endif /* _NGX_HTTP_LLMGW_STANDBY_H_INCLUDED_ */
