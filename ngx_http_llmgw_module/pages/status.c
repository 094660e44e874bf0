
/*
 * llmgw_status: what all workers know of the pools, as JSON.
 *
 * The page is made of pieces, each a value that jansson writes: the pools,
 * and one by one their gateways and replicas.  docs/status.md has the schema.
 */

#include "pages/page.h"
#include "pages/pages.h"
#include "pages/status.h"


#define NGX_HTTP_LLMGW_STATUS_SCHEMA  1
#define NGX_HTTP_LLMGW_STATUS_FLAGS   (JSON_COMPACT|JSON_REAL_PRECISION(6))


/* Which part is written next. */
typedef enum {
    NGX_HTTP_LLMGW_STATUS_HEAD = 0,
    NGX_HTTP_LLMGW_STATUS_POOL,
    NGX_HTTP_LLMGW_STATUS_LIST
} ngx_http_llmgw_status_part_t;


/* A list of a pool's object. */
typedef struct {
    const char                   *name;
    ngx_int_t                   (*item)(ngx_http_llmgw_snapshot_t *snapshot,
                                        ngx_uint_t i, json_t **json);
} ngx_http_llmgw_status_list_t;


typedef struct {
    ngx_http_llmgw_page_t         page;
    ngx_array_t                  *snapshots;
    ngx_uint_t                    pool;         /* index in snapshots */
    ngx_uint_t                    list;
    ngx_uint_t                    item;         /* within the list */
    ngx_uint_t                    written;      /* of them */
    ngx_http_llmgw_status_part_t  part;
} ngx_http_llmgw_status_t;


static ngx_int_t ngx_http_llmgw_status_handler(ngx_http_request_t *r);
static ngx_uint_t ngx_http_llmgw_status_next(ngx_http_llmgw_page_t *page);
static void ngx_http_llmgw_status_begin(ngx_http_llmgw_page_t *page);
static void ngx_http_llmgw_status_open(ngx_http_llmgw_status_t *status);
static void ngx_http_llmgw_status_item(ngx_http_llmgw_status_t *status,
    ngx_http_llmgw_snapshot_t *snapshot);
static void ngx_http_llmgw_status_put(ngx_http_llmgw_page_t *page,
    json_t *json, size_t flags);
static void ngx_http_llmgw_status_text(ngx_http_llmgw_page_t *page,
    const char *text);
static int ngx_http_llmgw_status_dump(const char *text, size_t len,
    void *data);
static void ngx_http_llmgw_status_done(void *data);


static const ngx_http_llmgw_status_list_t  ngx_http_llmgw_status_lists[] = {
    { "classes", ngx_http_llmgw_status_class },
    { "tenants", ngx_http_llmgw_status_tenant },
    { "groups", ngx_http_llmgw_status_standby },
    { "shards", ngx_http_llmgw_status_shard },
    { "gateways", ngx_http_llmgw_status_gateway },
    { "replicas", ngx_http_llmgw_status_replica },
    { NULL, NULL }
};


char *
ngx_http_llmgw_status_conf(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    return ngx_http_llmgw_conf_handler(cf, ngx_http_llmgw_status_handler);
}


static ngx_int_t
ngx_http_llmgw_status_handler(ngx_http_request_t *r)
{
    ngx_int_t                 rc;
    ngx_http_llmgw_status_t  *status;
    static ngx_str_t          type = ngx_string("application/json");

    rc = ngx_http_llmgw_page_accept(r);
    if (rc != NGX_OK) {
        return rc;
    }

    status = ngx_pcalloc(r->pool, sizeof(ngx_http_llmgw_status_t));
    if (status == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    status->snapshots = ngx_http_llmgw_snapshot_take(r);
    if (status->snapshots == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    status->page.request = r;
    status->page.next = ngx_http_llmgw_status_next;
    status->page.done = ngx_http_llmgw_status_done;
    status->page.data = status;

    return ngx_http_llmgw_page_send(&status->page, &type);
}


static void
ngx_http_llmgw_status_done(void *data)
{
    ngx_http_llmgw_status_t  *status = data;

    ngx_http_llmgw_snapshot_release(status->snapshots);
}


/*
 * { ... "pools": [ { ... "classes": [ ... ], ... "replicas": [ ... ] }, ... ] }
 */

static ngx_uint_t
ngx_http_llmgw_status_next(ngx_http_llmgw_page_t *page)
{
    ngx_http_llmgw_status_t    *status;
    ngx_http_llmgw_snapshot_t  *snapshot;

    status = page->data;
    snapshot = status->snapshots->elts;
    snapshot += status->pool;

    switch (status->part) {

    case NGX_HTTP_LLMGW_STATUS_HEAD:
        ngx_http_llmgw_status_begin(page);
        status->part = NGX_HTTP_LLMGW_STATUS_POOL;
        return 1;

    case NGX_HTTP_LLMGW_STATUS_POOL:
        if (status->pool == status->snapshots->nelts) {
            ngx_http_llmgw_status_text(page, "]}\n");
            return 0;
        }

        ngx_http_llmgw_status_text(page, status->pool ? ",{" : "{");
        ngx_http_llmgw_status_put(page, ngx_http_llmgw_status_pool(snapshot),
                                  JSON_EMBED);
        status->part = NGX_HTTP_LLMGW_STATUS_LIST;
        status->list = 0;
        ngx_http_llmgw_status_open(status);
        return 1;

    default: /* NGX_HTTP_LLMGW_STATUS_LIST */
        ngx_http_llmgw_status_item(status, snapshot);
        return 1;
    }
}


static void
ngx_http_llmgw_status_begin(ngx_http_llmgw_page_t *page)
{
    ngx_time_t  *now;

    now = ngx_timeofday();

    ngx_http_llmgw_status_text(page, "{");
    ngx_http_llmgw_status_put(page,
        json_pack("{s:i, s:s, s:i, s:I}",
                  "schema", NGX_HTTP_LLMGW_STATUS_SCHEMA,
                  "version", LLMGW_VERSION,
                  "worker_pid", (int) ngx_pid,
                  "time_ms", (json_int_t) now->sec * 1000 + now->msec),
        JSON_EMBED);
    ngx_http_llmgw_status_text(page, ",\"pools\":[");
}


/* Begins the next list, or ends the pool. */

static void
ngx_http_llmgw_status_open(ngx_http_llmgw_status_t *status)
{
    const char  *name;

    name = ngx_http_llmgw_status_lists[status->list].name;
    status->item = 0;
    status->written = 0;

    if (name == NULL) {
        ngx_http_llmgw_status_text(&status->page, "}");
        status->part = NGX_HTTP_LLMGW_STATUS_POOL;
        status->pool++;
        return;
    }

    ngx_http_llmgw_status_text(&status->page, ",\"");
    ngx_http_llmgw_status_text(&status->page, name);
    ngx_http_llmgw_status_text(&status->page, "\":[");
}


/* Writes the next item of the list, or its end. */

static void
ngx_http_llmgw_status_item(ngx_http_llmgw_status_t *status,
    ngx_http_llmgw_snapshot_t *snapshot)
{
    json_t                              *json;
    ngx_int_t                            rc;
    ngx_http_llmgw_page_t               *page;
    const ngx_http_llmgw_status_list_t  *list;

    page = &status->page;
    list = &ngx_http_llmgw_status_lists[status->list];

    rc = list->item(snapshot, status->item++, &json);

    if (rc == NGX_OK) {
        ngx_http_llmgw_status_text(page, status->written++ ? "," : "");
        ngx_http_llmgw_status_put(page, json, 0);

    } else if (rc == NGX_DONE) {
        ngx_http_llmgw_status_text(page, "]");
        status->list++;
        ngx_http_llmgw_status_open(status);
    }
}


static void
ngx_http_llmgw_status_put(ngx_http_llmgw_page_t *page, json_t *json,
    size_t flags)
{
    if (json_dump_callback(json, ngx_http_llmgw_status_dump, page,
                           NGX_HTTP_LLMGW_STATUS_FLAGS|flags)
        == -1)
    {
        page->failed = 1;
    }

    json_decref(json);
}


static int
ngx_http_llmgw_status_dump(const char *text, size_t len, void *data)
{
    ngx_http_llmgw_page_write(data, text, len);

    return 0;
}


static void
ngx_http_llmgw_status_text(ngx_http_llmgw_page_t *page, const char *text)
{
    ngx_http_llmgw_page_write(page, text, ngx_strlen(text));
}
