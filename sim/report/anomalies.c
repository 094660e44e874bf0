
/* Counters of anomalies, a row for each, with its names in text and JSON. */

#include "sim/report/summary.h"


uint64_t
report_anomalies(const report_summary_t *s, const fleet_result_t *r,
    report_anomaly_t list[REPORT_ANOMALIES])
{
    size_t                   i;
    uint64_t                 sum;
    const report_metrics_t  *m = &s->cluster;
    const report_anomaly_t   all[REPORT_ANOMALIES] = {
        { "priority_inversions", "Priority Inversions", 0, s->inversions },
        { "hol_blocking", "HOL Blocking Events", 0, s->blocked },
        { "rejected_admission", "Rejected Requests (Admission)", 0,
          r->rejected_admission },
        { "rejected_routing", "Rejected Requests (Routing)", 0,
          r->rejected_routing },
        { NULL, "Dropped Unservable", 0, (uint64_t) m->unservable },
        { NULL, "Timed Out Requests", 0, (uint64_t) m->timed_out },
        { NULL, "Length-Capped Requests", 0, (uint64_t) m->length_capped },
        { "gateway_depth", "Gateway Queue Depth (horizon)", 1,
          r->gateway_depth },
        { "gateway_shed", "Gateway Queue Shed", 1, r->gateway_shed },
        { "gateway_rejected", "Gateway Queue Rejected", 1,
          r->gateway_rejected },
        { "gateway_evicted", "Gateway Evicted (in-flight)", 1,
          r->gateway_evicted },
        { "gateway_expired", "Gateway Expired (TTL)", 1, r->gateway_expired }
    };

    for (i = 0, sum = 0; i < REPORT_ANOMALIES; i++) {
        list[i] = all[i];
        sum += all[i].count;
    }

    return sum;
}
