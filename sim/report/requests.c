
/*
 * A run, request by request.
 */

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "sim/report/requests.h"


#define REQUESTS_PREFIX  "request_"


/* A request and its key, for sorting. */
typedef struct {
    size_t        i;
    int64_t       key;
    const char   *id;
} requests_at_t;


const char *
report_request_number(const work_request_t *request)
{
    size_t  len;

    len = strlen(REQUESTS_PREFIX);

    return strncmp(request->id, REQUESTS_PREFIX, len) == 0
           ? request->id + len : request->id;
}


static int
requests_cmp(const void *a, const void *b)
{
    const requests_at_t  *x, *y;

    x = a;
    y = b;

    if (x->key != y->key) {
        return x->key < y->key ? -1 : 1;
    }

    return strcmp(x->id, y->id);
}


/* --- requests[] */

static void
requests_text(report_json_t *json, const char *key, const work_name_t *name)
{
    if (name->len > 0) {
        report_json_string(json, key, name->text);
    }
}


static double
requests_ms(int64_t us)
{
    return us > 0 ? (double) us / 1e3 : 0;
}


static void
requests_one(report_json_t *json, const work_request_t *r,
    const fleet_outcome_t *o)
{
    char  replica[32];

    report_json_object(json, NULL);
    report_json_double(json, "arrived_at", (double) r->arrival_us / 1e6);
    report_json_string(json, "requestID", r->id);
    report_json_int(json, "num_prefill_tokens", r->input_tokens);
    report_json_int(json, "num_decode_tokens", r->output_tokens);
    report_json_double(json, "ttft_ms", requests_ms(o->ttft_us));
    report_json_double(json, "itl_ms", report_has_e2e(o)
                                       ? report_itl_us(r, o) / 1e3 : 0);
    report_json_double(json, "e2e_ms", requests_ms(o->e2e_us));
    report_json_double(json, "scheduling_delay_ms",
                       requests_ms(o->sched_delay_us));
    requests_text(json, "slo_class", r->slo_class);
    requests_text(json, "tenant_id", r->tenant);

    if (o->replica != FLEET_NONE) {
        snprintf(replica, sizeof(replica), "instance_%u", o->replica);
        report_json_string(json, "handled_by", replica);
    }

    requests_text(json, "model", r->model);
    requests_text(json, "adapter", r->adapter);

    if (o->status == FLEET_LENGTH_CAPPED) {
        report_json_bool(json, "length_capped", 1);
    }

    if (o->gw_enqueue_us > 0 && o->gw_dispatch_us > o->gw_enqueue_us) {
        report_json_double(json, "gateway_queue_delay_ms",
                           requests_ms(o->gw_dispatch_us
                                       - o->gw_enqueue_us));
    }

    requests_text(json, "session_id", r->session);
    report_json_int(json, "round_index", r->round);
    report_json_end(json);
}


typedef struct {
    const report_run_t   *run;
    const requests_at_t  *order;
    size_t                n;
} requests_list_t;


static void
requests_list(report_json_t *json, void *data)
{
    size_t            i, at;
    requests_list_t  *l;

    l = data;

    if (l->n == 0) {
        return;
    }

    report_json_array(json, "requests");

    for (i = 0; i < l->n; i++) {
        at = l->order[i].i;
        requests_one(json, work_at(l->run->work, at),
                     &l->run->result->outcomes[at]);
    }

    report_json_end(json);
}


int
report_requests_metrics(const report_run_t *run, report_metrics_t *m,
    FILE *out)
{
    size_t            i, n;
    report_json_t     json;
    requests_at_t    *order;
    requests_list_t   l;

    order = malloc((run->result->n + 1) * sizeof(*order));

    if (order == NULL) {
        return -1;
    }

    for (i = 0, n = 0; i < run->result->n; i++) {
        if (run->result->outcomes[i].was_injected) {
            order[n].i = i;
            order[n].key = work_at(run->work, i)->arrival_us;
            order[n++].id = work_at(run->work, i)->id;
        }
    }

    qsort(order, n, sizeof(*order), requests_cmp);

    l.run = run;
    l.order = order;
    l.n = n;

    report_json_init(&json, out, 2);
    report_json_object(&json, NULL);
    report_metrics_json(m, &json, requests_list, &l);
    report_json_end(&json);

    free(order);

    return 0;
}


/* --- for calibrate */

static void
requests_result(report_json_t *json, int64_t number, const work_request_t *r,
    const fleet_outcome_t *o)
{
    report_json_object(json, NULL);
    report_json_int(json, "request_id", number);
    report_json_int(json, "ttft_us", o->ttft_us);
    report_json_int(json, "e2e_us", o->e2e_us);
    report_json_int(json, "input_tokens", r->input_tokens);
    report_json_int(json, "output_tokens", r->output_tokens);
    requests_text(json, "slo_class", r->slo_class);
    requests_text(json, "model", r->model);

    if (report_itl_us(r, o) != 0) {
        report_json_double(json, "itl_mean_us", report_itl_us(r, o));
    }

    report_json_end(json);
}


static int
requests_number(const work_request_t *r, int64_t *number)
{
    char        *end;
    const char  *text;

    text = report_request_number(r);
    *number = strtoll(text, &end, 10);

    return end > text && *end == '\0';
}


int
report_requests_results(const report_run_t *run, FILE *out)
{
    size_t                  i, n;
    report_json_t           json;
    requests_at_t          *order;
    const fleet_outcome_t  *o;

    order = malloc((run->result->n + 1) * sizeof(*order));

    if (order == NULL) {
        return -1;
    }

    for (i = 0, n = 0; i < run->result->n; i++) {
        o = &run->result->outcomes[i];

        if (report_has_ttft(o) && report_has_e2e(o)
            && requests_number(work_at(run->work, i), &order[n].key))
        {
            order[n].i = i;
            order[n++].id = work_at(run->work, i)->id;
        }
    }

    qsort(order, n, sizeof(*order), requests_cmp);

    report_json_init(&json, out, 2);
    report_json_array(&json, NULL);

    for (i = 0; i < n; i++) {
        requests_result(&json, order[i].key,
                        work_at(run->work, order[i].i),
                        &run->result->outcomes[order[i].i]);
    }

    report_json_end(&json);
    free(order);

    return 0;
}


/* --- the table */

static void
requests_cell(FILE *out, int64_t us, int64_t least)
{
    putc('\t', out);

    if (us >= least) {
        fprintf(out, "%" PRId64, us);
    }
}


void
report_requests_table(const report_run_t *run, FILE *out)
{
    size_t                  i;
    int64_t                 gw_delay_us;
    const work_request_t   *r;
    const fleet_outcome_t  *o;

    fputs("request_id\tstatus\tttft_us\te2e_us\thandled_by\tsched_delay_us"
          "\tgw_delay_us\troute_us\tend_us\tdetail\n", out);

    for (i = 0; i < run->result->n; i++) {
        r = work_at(run->work, i);
        o = &run->result->outcomes[i];

        fprintf(out, "%s\t%s", report_request_number(r),
                fleet_status_names[o->status]);
        requests_cell(out, o->ttft_us, 0);
        requests_cell(out, o->e2e_us, 0);
        requests_cell(out, o->replica == FLEET_NONE ? -1
                                                 : (int64_t) o->replica, 0);
        requests_cell(out, o->sched_delay_us, 1);

        gw_delay_us = o->gw_enqueue_us > 0 && o->gw_dispatch_us > 0
                      ? o->gw_dispatch_us - o->gw_enqueue_us : -1;
        requests_cell(out, gw_delay_us, 1);
        requests_cell(out, o->route_us, 0);
        requests_cell(out, o->end_us, 0);
        fprintf(out, "\t%s\n", o->detail);
    }
}
