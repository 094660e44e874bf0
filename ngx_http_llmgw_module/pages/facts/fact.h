
/*
 * Facts that llmgw_status and llmgw_metrics show, each declared once for both.
 *
 * A scope is a kind of thing that the pages list: pools, replicas, tenants, and
 * so on.  It has a file in this folder, with a table of its metrics, and a
 * function that walks its items, which are those of one source: of a pool, or
 * of a zone of keys.  That function passes each fact of an item to a writer:
 * its key on the status, its row in the table, and its value.  A fact may lack
 * the key or the row, and then is on the other page alone.
 *
 * There are two writers.  pages/status.c writes an item as a JSON object, as
 * its facts come.  pages/export.c keeps the values of all items, and writes
 * them metric by metric.
 */

#ifndef _NGX_HTTP_LLMGW_FACT_H_INCLUDED_
#define _NGX_HTTP_LLMGW_FACT_H_INCLUDED_


#include <math.h>

#include "zone/metrics.h"


/*
 * The value of a number that is not known: null on the status, no line among
 * metrics.  For a double it is NAN.
 */
#define NGX_HTTP_LLMGW_ABSENT      ((uint64_t) -1)

/* Where an item is shown. */
#define NGX_HTTP_LLMGW_ON_STATUS   1
#define NGX_HTTP_LLMGW_ON_METRICS  2
#define NGX_HTTP_LLMGW_ON_BOTH     3


typedef struct ngx_http_llmgw_snapshot_s  ngx_http_llmgw_snapshot_t;
typedef struct ngx_http_llmgw_writer_s    ngx_http_llmgw_writer_t;


typedef enum {
    NGX_HTTP_LLMGW_GAUGE = 0,
    NGX_HTTP_LLMGW_COUNTER,
    NGX_HTTP_LLMGW_HISTOGRAM,
    NGX_HTTP_LLMGW_TOTAL                        /* a counter whose name without
                                                   its suffix is a gauge's name:
                                                   of unknown type in
                                                   OpenMetrics */
} ngx_http_llmgw_metric_kind_t;


/* How metrics write a number; the status writes it as it is. */
typedef enum {
    NGX_HTTP_LLMGW_ONE = 0,
    NGX_HTTP_LLMGW_FRACTION,                    /* as 3.000 */
    NGX_HTTP_LLMGW_MS,                          /* in seconds */
    NGX_HTTP_LLMGW_PERMILLE                     /* as a ratio, 0 to 1 */
} ngx_http_llmgw_unit_t;


typedef struct {
    const char                   *name;
    ngx_uint_t                    n;            /* number of values */
    const char                 *(*word)(unsigned i);    /* word of a value;
                                                           NULL: a label of a
                                                           string */
} ngx_http_llmgw_label_t;


typedef struct {
    const char                   *name;         /* without "llmgw_", "_total" */
    const char                   *help;
    ngx_http_llmgw_metric_kind_t  kind;
    ngx_http_llmgw_unit_t         unit;
    ngx_http_llmgw_label_t        labels[2];    /* of counts; of a string */
    enum {
        NGX_HTTP_LLMGW_ALL = 0,
        NGX_HTTP_LLMGW_RARE,                    /* only counts above 0, and the
                                                   first */
        NGX_HTTP_LLMGW_SHARED                   /* all counts; they are those of
                                                   all models, without the label
                                                   `model` */
    } which;
    ngx_uint_t                    bounds;       /* of a histogram: the index of
                                                   its bounds */
} ngx_http_llmgw_metric_t;


typedef struct {
    enum {
        NGX_HTTP_LLMGW_IS_NUMBER = 0,
        NGX_HTTP_LLMGW_IS_FLAG,
        NGX_HTTP_LLMGW_IS_REAL,
        NGX_HTTP_LLMGW_IS_TEXT,
        NGX_HTTP_LLMGW_IS_STRING,
        NGX_HTTP_LLMGW_IS_WORD,
        NGX_HTTP_LLMGW_IS_COUNTS,
        NGX_HTTP_LLMGW_IS_TIMES
    } type;

    union {
        uint64_t                  n;            /* of a string: its length */
        double                    real;
        const void               *p;
    } of;

    const char                   *text;
} ngx_http_llmgw_value_t;


struct ngx_http_llmgw_writer_s {

    /*
     * Begins an item; label is the value of the scope's label, whose bytes live
     * as long as the page.  pages: where it is shown.  0: this writer does not
     * show it.
     */
    ngx_uint_t                  (*item)(ngx_http_llmgw_writer_t *w,
                                    const ngx_str_t *label, unsigned pages);

    /* key or metric may be NULL; counts and times live as long as the page. */
    void                        (*put)(ngx_http_llmgw_writer_t *w,
                                    const char *key,
                                    const ngx_http_llmgw_metric_t *metric,
                                    ngx_http_llmgw_value_t value);

    /* An object or a list: "{" or "[", "}" or "]".  Only for the status. */
    void                        (*open)(ngx_http_llmgw_writer_t *w,
                                    const char *key, const char *bracket);
    void                        (*close)(ngx_http_llmgw_writer_t *w,
                                    const char *bracket);

    unsigned                      is_status:1;
};


typedef struct {
    const char                   *key;          /* of its list, as in a pool */
    const char                   *label;        /* NULL: only its source's */
    const ngx_http_llmgw_metric_t *metrics;
    ngx_uint_t                    nmetrics;

    /* Begins the i-th item and puts its facts.  NGX_DONE: there are no more. */
    ngx_int_t                   (*walk)(ngx_http_llmgw_writer_t *w,
                                    ngx_http_llmgw_snapshot_t *snapshot,
                                    ngx_uint_t i);
    ngx_uint_t                    is_shared;    /* as SHARED, for all metrics */
} ngx_http_llmgw_scope_t;


/*
 * In a file of a scope, METRICS is its table, made of X(name, kind, unit, help)
 * and of rows with labels.  w is the writer.
 */

#define SCOPE(key, label, walk)                                               \
    key, label, METRICS, sizeof(METRICS) / sizeof(METRICS[0]), walk, 0
#define SHARED_SCOPE(key, label, walk)                                        \
    key, label, METRICS, sizeof(METRICS) / sizeof(METRICS[0]), walk, 1

#define METRIC_INDEX(name_, kind_, unit_, help_)  M_##name_,
#define METRIC_ROW(name_, kind_, unit_, help_)                                \
    [M_##name_] = { .name = #name_, .help = help_,                            \
                    .kind = NGX_HTTP_LLMGW_##kind_,                           \
                    .unit = NGX_HTTP_LLMGW_##unit_ },
#define METRIC_LABELLED(name_, kind_, unit_, which_, help_, ...)              \
    [M_##name_] = { .name = #name_, .help = help_,                            \
                    .kind = NGX_HTTP_LLMGW_##kind_,                           \
                    .unit = NGX_HTTP_LLMGW_##unit_,                           \
                    .which = NGX_HTTP_LLMGW_##which_,                         \
                    .labels = { __VA_ARGS__ } },

/* A fact on both pages, only among the metrics, only on the status. */
#define FACT(key, name, value)  w->put(w, key, &METRICS[M_##name], value)
#define METRIC(name, value)     ON_METRICS(FACT(NULL, name, value))
#define STATUS(key, value)      ON_STATUS(w->put(w, key, NULL, value))

/* Structure of the status. */
#define OBJECT(key)             ON_STATUS(w->open(w, key, "{"))
#define END_OBJECT              ON_STATUS(w->close(w, "}"))
#define LIST(key)               ON_STATUS(w->open(w, key, "["))
#define END_LIST                ON_STATUS(w->close(w, "]"))
#define NOTHING(key)            STATUS(key, TEXT(NULL))

#define ON_STATUS(call)                                                       \
    do { if (w->is_status) { call; } } while (0)
#define ON_METRICS(call)                                                      \
    do { if (!w->is_status) { call; } } while (0)

#define VALUE(type_, ...)                                                     \
    ((ngx_http_llmgw_value_t) { .type = NGX_HTTP_LLMGW_IS_##type_,            \
                                __VA_ARGS__ })

#define NUMBER(value)       VALUE(NUMBER, .of.n = (value))
#define SETTING(value)      NUMBER((value) ? (value) : NGX_HTTP_LLMGW_ABSENT)
#define FLAG(value)         VALUE(FLAG, .of.n = ((value) != 0))
#define REAL(value)         VALUE(REAL, .of.real = (value))
#define TEXT(value)         VALUE(TEXT, .text = (value))
#define STRING(value)       VALUE(STRING, .text = (char *) (value)->data,     \
                                  .of.n = (value)->len)

/* A value of an enum: on the status a string, among the metrics a number. */
#define WORD(value, text_)  VALUE(WORD, .of.n = (value), .text = (text_))

/* uint64_t by the values of labels; a histogram. */
#define COUNTS(value)       VALUE(COUNTS, .of.p = (value))
#define TIMES(value)        VALUE(TIMES, .of.p = (value))


/*
 * In the pages' order: pools, one for each model that is bound, each followed
 * by its lists; then zones of keys, each followed by its lists.
 */
#define NGX_HTTP_LLMGW_POOL_SCOPES(X)                                         \
    X(pool) X(class) X(tenant) X(standby) X(shard) X(gateway) X(replica)
#define NGX_HTTP_LLMGW_KEY_SCOPES(X)                                          \
    X(keys) X(account)
#define NGX_HTTP_LLMGW_SCOPES(X)                                              \
    NGX_HTTP_LLMGW_POOL_SCOPES(X) NGX_HTTP_LLMGW_KEY_SCOPES(X)

#define NGX_HTTP_LLMGW_SCOPE_COUNT(name)   + 1
#define NGX_HTTP_LLMGW_SCOPE_EXTERN(name)                                     \
    extern const ngx_http_llmgw_scope_t  ngx_http_llmgw_scope_##name;

#define NGX_HTTP_LLMGW_NSCOPES                                                \
    (0 NGX_HTTP_LLMGW_SCOPES(NGX_HTTP_LLMGW_SCOPE_COUNT))

NGX_HTTP_LLMGW_SCOPES(NGX_HTTP_LLMGW_SCOPE_EXTERN)

extern const ngx_http_llmgw_scope_t
    *const ngx_http_llmgw_scopes[NGX_HTTP_LLMGW_NSCOPES];


typedef enum {
    NGX_HTTP_LLMGW_POOLS = 0,
    NGX_HTTP_LLMGW_KEYS,
    NGX_HTTP_LLMGW_NSOURCES
} ngx_http_llmgw_source_index_t;


typedef struct {
    const char                   *key;          /* of its list on the status */
    const char                   *label;        /* of all its metrics */
    ngx_uint_t                    first;        /* the scope of the thing
                                                   itself */
    ngx_uint_t                    end;          /* after the scopes of its
                                                   lists */
} ngx_http_llmgw_source_t;


extern const ngx_http_llmgw_source_t
    ngx_http_llmgw_sources[NGX_HTTP_LLMGW_NSOURCES];


#endif /* _NGX_HTTP_LLMGW_FACT_H_INCLUDED_ */
