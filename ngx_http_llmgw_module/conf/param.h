
/*
 * Parameters of directives, declared as data.
 *
 * A directive has one table: the names of its parameters, their valid values,
 * and the fields that they set.  One table parses them and reports errors in
 * one form: the given value and the accepted ones.  nginx adds file and line:
 *
 *   "llmgw_queue": invalid parameter "ttl=0", it must be a time above 0
 *
 * A parameter is given once at most, in any order.  Conditions between
 * parameters are checked by the directive itself, after its table was read.
 */

#ifndef _NGX_HTTP_LLMGW_PARAM_H_INCLUDED_
#define _NGX_HTTP_LLMGW_PARAM_H_INCLUDED_


#include "conf/conf.h"


typedef enum {
    NGX_HTTP_LLMGW_WORD = 1,    /* one of `words` */
    NGX_HTTP_LLMGW_NUMBER,      /* whole; with a sign if `min` is below 0 */
    NGX_HTTP_LLMGW_DECIMAL,     /* with `digits` decimals at most */
    NGX_HTTP_LLMGW_PERCENT,     /* as DECIMAL, and a "%" */
    NGX_HTTP_LLMGW_MSEC,        /* a time above 0 */
    NGX_HTTP_LLMGW_SIZE,        /* bytes */
    NGX_HTTP_LLMGW_ZONE,        /* bytes of shared memory, 16 pages or more */
    NGX_HTTP_LLMGW_STRING,      /* ngx_str_t */
    NGX_HTTP_LLMGW_VALUE,       /* ngx_http_complex_value_t * */
    NGX_HTTP_LLMGW_UPSTREAM,    /* ngx_http_upstream_srv_conf_t *, by name */
    NGX_HTTP_LLMGW_OTHER        /* by read() */
} ngx_http_llmgw_kind_t;


typedef struct {
    const char                   *name;     /* in "name=value"; NULL: the
                                               directive's first argument */
    ngx_http_llmgw_kind_t         kind;     /* 0 ends a table */
    size_t                        offset;   /* of the field; its type is the
                                               kind's, or an integer, enum or
                                               double */
    size_t                        size;     /* of the field */
    ngx_uint_t                    is_double;

    /*
     * For DECIMAL and PERCENT: in units of the last digit, like the field,
     * unless that is a double. max 0: no limit.
     */
    int64_t                       min;
    int64_t                       max;
    ngx_uint_t                    digits;

    const ngx_conf_enum_t        *words;    /* accepted as well */
    const char                   *right;    /* the accepted values, for errors;
                                               NULL, of NUMBER, MSEC and ZONE:
                                               made from kind and limits */

    /* NGX_DECLINED: invalid; NGX_ERROR: the reason was logged. */
    ngx_int_t                   (*read)(ngx_conf_t *cf, ngx_str_t *value,
                                    void *field);

    unsigned                      bare:1;   /* "name=" may be left out */
    unsigned                      alone:1;  /* words stand without any other
                                               parameter */
    unsigned                      may_be_empty:1;   /* the value may be "" */
    unsigned                      needs_queue:1;    /* UPSTREAM: it has to have
                                                       a queue */
} ngx_http_llmgw_param_t;


/*
 * A line of a table.  The arguments after `member` set further fields above, as
 * in ".min = 1".
 */
#define ngx_http_llmgw_param(type, called, of, member, ...)                   \
    { .name = called, .kind = NGX_HTTP_LLMGW_##of,                            \
      .offset = offsetof(type, member), .size = sizeof(((type *) 0)->member), \
      .is_double = _Generic(((type *) 0)->member, double: 1, default: 0),     \
      __VA_ARGS__ }

/* The same, for a field of an upstream{} block. */
#define ngx_http_llmgw_srv_param(called, of, member, ...)                     \
    ngx_http_llmgw_param(ngx_http_llmgw_srv_conf_t, called, of, member,       \
                         __VA_ARGS__)


/* The word "off", as 0. */
extern const ngx_conf_enum_t  ngx_http_llmgw_off[];

/* Tables, each defined in the file that has the directive. */
extern const ngx_http_llmgw_param_t  ngx_http_llmgw_members_params[];
extern const ngx_http_llmgw_param_t  ngx_http_llmgw_hash_params[];
extern const ngx_http_llmgw_param_t  ngx_http_llmgw_queue_params[];
extern const ngx_http_llmgw_param_t  ngx_http_llmgw_breaker_params[];
extern const ngx_http_llmgw_param_t  ngx_http_llmgw_hedge_params[];
extern const ngx_http_llmgw_param_t  ngx_http_llmgw_index_params[];
extern const ngx_http_llmgw_param_t  ngx_http_llmgw_body_memory_params[];
extern const ngx_http_llmgw_param_t  ngx_http_llmgw_keepalive_params[];


/*
 * A directive begins.  Returns "is duplicate" if its block has it already. conf
 * is one of the structs of conf.h, which begin with `given`.  Assigns an
 * upstream{} block to this module.
 */
char *ngx_http_llmgw_conf_once(ngx_conf_t *cf, ngx_command_t *cmd, void *conf);

/* Reads the arguments from the first-th on into fields of *base. */
char *ngx_http_llmgw_params(ngx_conf_t *cf,
    const ngx_http_llmgw_param_t *table, ngx_uint_t first, void *base);

/* Does both, by the table that is cmd->post, for fields of *conf. */
char *ngx_http_llmgw_conf_line(ngx_conf_t *cf, ngx_command_t *cmd, void *conf);

/* Reads one value; arg: the argument that contains it, for the error. */
char *ngx_http_llmgw_param_read(ngx_conf_t *cf,
    const ngx_http_llmgw_param_t *param, ngx_str_t *arg, ngx_str_t *value,
    void *base);

/* Logs the error; right: the accepted values, for "it must be ...". */
char *ngx_http_llmgw_conf_invalid(ngx_conf_t *cf, ngx_str_t *arg,
    const char *right);


#endif /* _NGX_HTTP_LLMGW_PARAM_H_INCLUDED_ */
