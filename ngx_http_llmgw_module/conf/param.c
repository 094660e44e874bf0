
/* Parameters of directives by tables.  param.h describes a table. */

#include "conf/param.h"


static const ngx_http_llmgw_param_t *ngx_http_llmgw_param_find(
    const ngx_http_llmgw_param_t *table, ngx_str_t *args, ngx_uint_t i,
    ngx_str_t *value);
static const ngx_conf_enum_t *ngx_http_llmgw_param_word(
    const ngx_http_llmgw_param_t *param, const ngx_str_t *value);
static ngx_int_t ngx_http_llmgw_param_number(
    const ngx_http_llmgw_param_t *param, ngx_str_t text, void *field);
static void ngx_http_llmgw_param_store(const ngx_http_llmgw_param_t *param,
    void *field, int64_t number);
static ngx_int_t ngx_http_llmgw_param_value(ngx_conf_t *cf, ngx_str_t *value,
    ngx_http_complex_value_t **field);
static char *ngx_http_llmgw_param_wrong(ngx_conf_t *cf,
    const ngx_http_llmgw_param_t *param, ngx_str_t *arg);
static char *ngx_http_llmgw_param_unknown(ngx_conf_t *cf,
    const ngx_http_llmgw_param_t *table, ngx_uint_t i);


const ngx_conf_enum_t  ngx_http_llmgw_off[] = {
    { ngx_string("off"), 0 },
    { ngx_null_string, 0 }
};


char *
ngx_http_llmgw_conf_once(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    ngx_http_llmgw_given_t  bit, *given = conf;

    if (cf->cmd_type == NGX_HTTP_UPS_CONF
        && ngx_http_llmgw_conf_enable(cf, conf) == NULL)
    {
        return NGX_CONF_ERROR;
    }

    bit = (ngx_http_llmgw_given_t) 1
          << (cmd - ngx_http_llmgw_module.commands);

    if (*given & bit) {
        return "is duplicate";
    }

    *given |= bit;

    return NGX_CONF_OK;
}


char *
ngx_http_llmgw_conf_line(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    char  *rv;

    rv = ngx_http_llmgw_conf_once(cf, cmd, conf);

    return rv == NGX_CONF_OK ? ngx_http_llmgw_params(cf, cmd->post, 1, conf)
                             : rv;
}


char *
ngx_http_llmgw_params(ngx_conf_t *cf, const ngx_http_llmgw_param_t *table,
    ngx_uint_t first, void *base)
{
    char                          *rv;
    uint32_t                       bit, given;
    ngx_str_t                     *args, value;
    ngx_uint_t                     i;
    const ngx_http_llmgw_param_t  *param;

    args = cf->args->elts;
    given = 0;

    for (i = first; i < cf->args->nelts; i++) {

        param = ngx_http_llmgw_param_find(table, args, i, &value);
        if (param == NULL) {
            return ngx_http_llmgw_param_unknown(cf, table, i);
        }

        bit = (uint32_t) 1 << (param - table);
        if (given & bit) {
            return ngx_http_llmgw_conf_invalid(cf, &args[i], "given once");
        }

        given |= bit;

        rv = ngx_http_llmgw_param_read(cf, param, &args[i], &value, base);
        if (rv != NGX_CONF_OK) {
            return rv;
        }
    }

    return NGX_CONF_OK;
}


static const ngx_http_llmgw_param_t *
ngx_http_llmgw_param_find(const ngx_http_llmgw_param_t *table, ngx_str_t *args,
    ngx_uint_t i, ngx_str_t *value)
{
    size_t                         len;
    const ngx_http_llmgw_param_t  *param;

    for (param = table; param->kind; param++) {

        *value = args[i];

        if (param->name == NULL) {
            if (i == 1 && (param->kind != NGX_HTTP_LLMGW_WORD
                           || ngx_http_llmgw_param_word(param, value)))
            {
                return param;
            }

            continue;
        }

        len = ngx_strlen(param->name);

        if (value->len > len && value->data[len] == '='
            && ngx_memcmp(value->data, param->name, len) == 0)
        {
            value->data += len + 1;
            value->len -= len + 1;
            return param;
        }

        if (param->bare && ngx_strchr(value->data, '=') == NULL) {
            return param;
        }
    }

    return NULL;
}


char *
ngx_http_llmgw_param_read(ngx_conf_t *cf, const ngx_http_llmgw_param_t *param,
    ngx_str_t *arg, ngx_str_t *value, void *base)
{
    void                   *field;
    ngx_int_t               rc;
    const ngx_conf_enum_t  *word;

    field = (u_char *) base + param->offset;
    word = ngx_http_llmgw_param_word(param, value);

    if (word) {
        if (param->alone && cf->args->nelts > 2) {
            return ngx_http_llmgw_conf_invalid(cf, arg, "the only one");
        }

        ngx_http_llmgw_param_store(param, field, word->value);
        return NGX_CONF_OK;
    }

    if (value->len == 0 && !param->may_be_empty) {
        return ngx_http_llmgw_param_wrong(cf, param, arg);
    }

    switch (param->kind) {

    case NGX_HTTP_LLMGW_WORD:
        rc = NGX_DECLINED;
        break;

    case NGX_HTTP_LLMGW_STRING:
        *(ngx_str_t *) field = *value;
        rc = NGX_OK;
        break;

    case NGX_HTTP_LLMGW_VALUE:
        rc = ngx_http_llmgw_param_value(cf, value, field);
        break;

    case NGX_HTTP_LLMGW_UPSTREAM:
        *(void **) field = ngx_http_llmgw_conf_refer(cf, value,
                                                     param->needs_queue);
        rc = *(void **) field ? NGX_OK : NGX_ERROR;
        break;

    case NGX_HTTP_LLMGW_OTHER:
        rc = param->read(cf, value, field);
        break;

    default:
        rc = ngx_http_llmgw_param_number(param, *value, field);
    }

    return rc == NGX_DECLINED ? ngx_http_llmgw_param_wrong(cf, param, arg)
           : rc == NGX_OK ? NGX_CONF_OK : NGX_CONF_ERROR;
}


static const ngx_conf_enum_t *
ngx_http_llmgw_param_word(const ngx_http_llmgw_param_t *param,
    const ngx_str_t *value)
{
    const ngx_conf_enum_t  *word;

    for (word = param->words; word && word->name.len; word++) {
        if (word->name.len == value->len
            && ngx_memcmp(word->name.data, value->data, value->len) == 0)
        {
            return word;
        }
    }

    return NULL;
}


static ngx_int_t
ngx_http_llmgw_param_number(const ngx_http_llmgw_param_t *param,
    ngx_str_t text, void *field)
{
    int64_t  min, n, sign;

    min = param->min;
    sign = 1;

    switch (param->kind) {

    case NGX_HTTP_LLMGW_NUMBER:
        if (min < 0 && *text.data == '-') {
            text.data++;
            text.len--;
            sign = -1;
        }

        n = ngx_atoi(text.data, text.len);
        break;

    case NGX_HTTP_LLMGW_PERCENT:
        if (text.data[--text.len] != '%') {
            return NGX_DECLINED;
        }

        /* fall through */

    case NGX_HTTP_LLMGW_DECIMAL:
        if (text.len == 0 || text.data[text.len - 1] == '.') {
            return NGX_DECLINED;        /* ngx_atofp() takes "." for 0 */
        }

        n = ngx_atofp(text.data, text.len, param->digits);
        break;

    case NGX_HTTP_LLMGW_MSEC:
        min = 1;
        n = ngx_parse_time(&text, 0);
        break;

    case NGX_HTTP_LLMGW_ZONE:
        min = 16 * ngx_pagesize;
        /* fall through */

    default: /* SIZE */
        n = ngx_parse_offset(&text);     /* as a size, and "1g" */
    }

    if (n == NGX_ERROR || sign * n < min || (param->max && n > param->max)) {
        return NGX_DECLINED;
    }

    ngx_http_llmgw_param_store(param, field, sign * n);

    return NGX_OK;
}


static void
ngx_http_llmgw_param_store(const ngx_http_llmgw_param_t *param, void *field,
    int64_t number)
{
    double      unit;
    uint32_t    small;
    ngx_uint_t  i;

    if (param->is_double) {
        unit = param->kind == NGX_HTTP_LLMGW_PERCENT ? 100 : 1;

        for (i = 0; i < param->digits; i++) {
            unit *= 10;
        }

        *(double *) field = (double) number / unit;

    } else if (param->size == sizeof(small)) {
        small = (uint32_t) number;
        ngx_memcpy(field, &small, sizeof(small));

    } else {
        ngx_memcpy(field, &number, sizeof(number));
    }
}


static ngx_int_t
ngx_http_llmgw_param_value(ngx_conf_t *cf, ngx_str_t *value,
    ngx_http_complex_value_t **field)
{
    ngx_http_compile_complex_value_t  ccv;

    ngx_memzero(&ccv, sizeof(ngx_http_compile_complex_value_t));

    ccv.cf = cf;
    ccv.value = value;
    ccv.complex_value = ngx_palloc(cf->pool, sizeof(ngx_http_complex_value_t));

    if (ccv.complex_value == NULL
        || ngx_http_compile_complex_value(&ccv) != NGX_OK)
    {
        return NGX_ERROR;
    }

    *field = ccv.complex_value;

    return NGX_OK;
}


/* --- errors */

char *
ngx_http_llmgw_conf_invalid(ngx_conf_t *cf, ngx_str_t *arg, const char *right)
{
    ngx_str_t  *args;

    args = cf->args->elts;

    ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                       "\"%V\": invalid parameter \"%V\", it must be %s",
                       &args[0], arg, right);

    return NGX_CONF_ERROR;
}


static char *
ngx_http_llmgw_param_wrong(ngx_conf_t *cf,
    const ngx_http_llmgw_param_t *param, ngx_str_t *arg)
{
    u_char  text[2 * NGX_INT64_LEN + sizeof(" to ")], *p;

    if (param->right) {
        return ngx_http_llmgw_conf_invalid(cf, arg, param->right);
    }

    switch (param->kind) {

    case NGX_HTTP_LLMGW_MSEC:
        p = ngx_sprintf(text, "a time above 0");
        break;

    case NGX_HTTP_LLMGW_ZONE:
        p = ngx_sprintf(text, "at least %uzk", 16 * ngx_pagesize / 1024);
        break;

    default: /* NUMBER */
        p = ngx_sprintf(text, "%L to %L", param->min, param->max);
    }

    *p = '\0';

    return ngx_http_llmgw_conf_invalid(cf, arg, (char *) text);
}


/* The error names the parameters that the directive has. */

static char *
ngx_http_llmgw_param_unknown(ngx_conf_t *cf,
    const ngx_http_llmgw_param_t *table, ngx_uint_t i)
{
    u_char                         text[NGX_MAX_CONF_ERRSTR], *p, *last;
    ngx_str_t                     *args;
    const ngx_http_llmgw_param_t  *param;

    args = cf->args->elts;
    p = text;
    last = text + sizeof(text) - 1;

    for (param = table; param->kind; param++) {
        if (param->name || i == 1) {
            p = ngx_slprintf(p, last, "%s%s%s",
                             p == text ? "" : param[1].kind ? ", " : " or ",
                             param->name ? param->name : param->right,
                             param->name ? "=" : "");
        }
    }

    *p = '\0';

    return ngx_http_llmgw_conf_invalid(cf, &args[i], (char *) text);
}
