
/* Groups with standbys, in the order of their first members. */

#include "pages/facts/snapshot.h"


static const char *
ngx_http_llmgw_standby_phase(unsigned i)
{
    return i == 0 ? "active" : "first_token";
}


enum {
    M_group_takeovers, M_group_takeover_seconds, M_group_standbys,
    M_group_conflict
};

#define METRICS  ngx_http_llmgw_standby_metrics

static const ngx_http_llmgw_metric_t  METRICS[] = {
    METRIC_ROW(group_takeovers, COUNTER, ONE,
               "Times that another engine of a group became active")
    METRIC_LABELLED(group_takeover_seconds, GAUGE, MS, ALL,
                    "Of the last takeover: from the death to the active"
                    " engine, and to its first token",
                    { "phase", 2, ngx_http_llmgw_standby_phase })
    METRIC_ROW(group_standbys, GAUGE, ONE, "Engines that are in standby or "
               "waking")
    METRIC_ROW(group_conflict, GAUGE, ONE,
               "1: two lock services have made engines of a group active")
};


static ngx_int_t
ngx_http_llmgw_standby_walk(ngx_http_llmgw_writer_t *w,
    ngx_http_llmgw_snapshot_t *snapshot, ngx_uint_t i)
{
    ngx_str_t                        name;
    const llmgw_standby_group_t     *group;
    const ngx_http_llmgw_standby_t  *standby;

    if (i == snapshot->nstandbys) {
        return NGX_DONE;
    }

    standby = &snapshot->standbys[i];
    group = &standby->group;
    name.data = (u_char *) standby->name;
    name.len = ngx_strlen(standby->name);

    if (!w->item(w, &name, NGX_HTTP_LLMGW_ON_BOTH)) {
        return NGX_OK;
    }

    STATUS("name", STRING(&name));
    STATUS("active", TEXT(standby->active[0] ? standby->active : NULL));
    STATUS("epoch", NUMBER(group->epoch));
    ngx_http_llmgw_snapshot_lock(w, group->lock);
    STATUS("standby", NUMBER(group->nstandbys));
    STATUS("waking", NUMBER(group->nwaking));
    METRIC(group_standbys, NUMBER(group->nstandbys + group->nwaking));
    FACT("conflict", group_conflict, FLAG(group->is_conflict));
    FACT("takeovers", group_takeovers, NUMBER(standby->takeover.count));
    STATUS("active_ms", NUMBER(standby->phases_ms[0]));
    STATUS("first_token_ms", NUMBER(standby->phases_ms[1]));
    METRIC(group_takeover_seconds, COUNTS(standby->phases_ms));

    return NGX_OK;
}


const ngx_http_llmgw_scope_t  ngx_http_llmgw_scope_standby = {
    SHARED_SCOPE("groups", "group", ngx_http_llmgw_standby_walk)
};
