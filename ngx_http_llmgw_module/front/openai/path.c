
#include "front/openai/openai.h"
#include "front/openai/path.h"


#define NGX_HTTP_LLMGW_OPENAI_V0  1             /* no version */
#define NGX_HTTP_LLMGW_OPENAI_V1  2
#define NGX_HTTP_LLMGW_OPENAI_V2  4

/* A path of llmgw_openai_path; engines have none that is half as long. */
#define NGX_HTTP_LLMGW_OPENAI_PATH_MAX  128

#define V0    NGX_HTTP_LLMGW_OPENAI_V0
#define V1    NGX_HTTP_LLMGW_OPENAI_V1
#define V2    NGX_HTTP_LLMGW_OPENAI_V2
#define FREE  1
#define FORM  1
#define API(name)  LLMGATEWAY__API__API_ ## name


static const ngx_http_llmgw_path_t  ngx_http_llmgw_openai_paths[] = {
    { ngx_string("/chat/completions"), V1, API(CHAT), 0, 0, NULL, 0 },
    { ngx_string("/completions"), V1, API(COMPLETIONS), 0, 0, NULL, 0 },
    { ngx_string("/embeddings"), V1, API(EMBEDDINGS), 0, 0, NULL, 0 },
    { ngx_string("/responses"), V1, API(RESPONSES), 0, 0, NULL, 0 },
    { ngx_string("/messages"), V1, API(MESSAGES), 0, 0, NULL, 0 },
    { ngx_string("/messages/count_tokens"), V1, API(PASS), FREE, 0, NULL, 0 },
    { ngx_string("/rerank"), V0|V1|V2, API(PASS), 0, 0, NULL, 0 },
    { ngx_string("/score"), V0|V1, API(PASS), 0, 0, NULL, 0 },
    { ngx_string("/classify"), V0, API(PASS), 0, 0, NULL, 0 },
    { ngx_string("/pooling"), V0, API(PASS), 0, 0, NULL, 0 },
    { ngx_string("/tokenize"), V0, API(PASS), FREE, 0, NULL, 0 },
    { ngx_string("/detokenize"), V0, API(PASS), FREE, 0, NULL, 0 },
    { ngx_string("/images/generations"), V1, API(PASS), 0, 0, NULL, 0 },
    { ngx_string("/audio/speech"), V1, API(PASS), 0, 0, NULL, 0 },
    { ngx_string("/audio/transcriptions"), V1, API(PASS), FREE, FORM, NULL, 0 },
    { ngx_string("/audio/translations"), V1, API(PASS), FREE, FORM, NULL, 0 },
};

#define NGX_HTTP_LLMGW_OPENAI_NPATHS                                          \
    (sizeof(ngx_http_llmgw_openai_paths)                                      \
     / sizeof(ngx_http_llmgw_openai_paths[0]))

static const ngx_str_t  ngx_http_llmgw_openai_versions[] = {
    [V0] = ngx_null_string,
    [V1] = ngx_string("/v1"),
    [V2] = ngx_string("/v2")
};


static ngx_uint_t ngx_http_llmgw_openai_path_fits(ngx_http_request_t *r,
    const ngx_http_llmgw_path_t *path, ngx_uint_t n,
    ngx_http_llmgw_openai_asked_t *asked);
static ngx_uint_t ngx_http_llmgw_openai_path_version(const u_char *p,
    size_t len);
static ngx_uint_t ngx_http_llmgw_openai_path_base(ngx_http_request_t *r,
    size_t len);
static ngx_uint_t ngx_http_llmgw_openai_path_is_plain(const ngx_str_t *path);
static ngx_uint_t ngx_http_llmgw_openai_path_is_known(
    const ngx_http_llmgw_path_t *path, ngx_uint_t n,
    const ngx_http_llmgw_path_t *other);


ngx_int_t
ngx_http_llmgw_openai_path_find(ngx_http_request_t *r,
    ngx_http_llmgw_openai_asked_t *asked)
{
    ngx_array_t                *paths;
    ngx_http_llmgw_loc_conf_t  *llcf;

    llcf = ngx_http_get_module_loc_conf(r, ngx_http_llmgw_module);
    paths = llcf->paths;
    asked->path = NULL;

    if (!ngx_http_llmgw_openai_path_fits(r, ngx_http_llmgw_openai_paths,
                                         NGX_HTTP_LLMGW_OPENAI_NPATHS, asked)
        && paths)
    {
        (void) ngx_http_llmgw_openai_path_fits(r, paths->elts, paths->nelts,
                                               asked);
    }

    return asked->path ? NGX_OK : NGX_DECLINED;
}


/*
 * 1: one of these paths has the version that the client has used.  Otherwise
 * the first that fits but for its version is kept, if none was before.
 */

static ngx_uint_t
ngx_http_llmgw_openai_path_fits(ngx_http_request_t *r,
    const ngx_http_llmgw_path_t *path, ngx_uint_t n,
    ngx_http_llmgw_openai_asked_t *asked)
{
    size_t      base;
    ngx_uint_t  version;

    for ( /* void */ ; n > 0; n--, path++) {

        if (r->uri.len < path->path.len) {
            continue;
        }

        base = r->uri.len - path->path.len;

        if (ngx_memcmp(r->uri.data + base, path->path.data, path->path.len)
            != 0)
        {
            continue;
        }

        version = ngx_http_llmgw_openai_path_base(r, base);

        if (version & path->versions) {
            asked->path = path;
            asked->version = version;
            return 1;
        }

        if ((version & (V0|V1)) && asked->path == NULL) {
            asked->path = path;
            asked->version = (path->versions & V1) ? V1
                             : (path->versions & V0) ? V0 : V2;
        }
    }

    return 0;
}


char *
ngx_http_llmgw_openai_path_engine(ngx_pool_t *pool,
    const ngx_http_llmgw_openai_asked_t *asked)
{
    u_char           *p;
    const ngx_str_t  *version;

    version = &ngx_http_llmgw_openai_versions[asked->version];

    p = ngx_pnalloc(pool, version->len + asked->path->path.len + 1);
    if (p) {
        (void) ngx_sprintf(p, "%V%V%Z", version, &asked->path->path);
    }

    return (char *) p;
}


/* The version at the end of the bytes. */

static ngx_uint_t
ngx_http_llmgw_openai_path_version(const u_char *p, size_t len)
{
    if (len < 3) {
        return V0;
    }

    p += len - 3;

    return ngx_memcmp(p, "/v1", 3) == 0 ? V1
           : ngx_memcmp(p, "/v2", 3) == 0 ? V2 : V0;
}


/* The version at the end of the URI's first bytes; 0: they are no base. */

static ngx_uint_t
ngx_http_llmgw_openai_path_base(ngx_http_request_t *r, size_t len)
{
    u_char                    *uri;
    ngx_str_t                  name;
    ngx_uint_t                 version;
    ngx_http_core_loc_conf_t  *clcf;

    clcf = ngx_http_get_module_loc_conf(r, ngx_http_core_module);
    name = clcf->name;
    uri = r->uri.data;
    version = ngx_http_llmgw_openai_path_version(uri, len);

#if (NGX_PCRE)
    if (clcf->regex) {
        return version;
    }
#endif

    if (clcf->named) {
        name.len = 0;
    }

    /* the location may end within the path: /v1/chat/ */

    if (len <= name.len && ngx_memcmp(uri, name.data, len) == 0) {
        return version;
    }

    if (version == V0) {
        return 0;
    }

    len -= ngx_http_llmgw_openai_versions[version].len;

    if (name.len && name.data[name.len - 1] == '/') {
        name.len--;
    }

    return len == 0
           || (len == name.len && ngx_memcmp(uri, name.data, len) == 0)
           ? version : 0;
}


ngx_uint_t
ngx_http_llmgw_openai_path_is_base(ngx_http_request_t *r, size_t len)
{
    return ngx_http_llmgw_openai_path_base(r, len) & (V0|V1);
}


/* llmgw_openai_path PATH; */

char *
ngx_http_llmgw_openai_path_conf(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    size_t                      skip;
    ngx_str_t                  *value;
    ngx_http_llmgw_path_t      *path, new;
    ngx_http_llmgw_loc_conf_t  *llcf = conf;

    value = cf->args->elts;

    if (!ngx_http_llmgw_openai_path_is_plain(&value[1])) {
        return "needs a path of at most 128 bytes that begins with \"/\" and "
               "has letters, digits, \"/\", \"-\", \"_\", \".\" and \"~\"";
    }

    if (llcf->paths == NULL) {
        llcf->paths = ngx_array_create(cf->pool, 4,
                                       sizeof(ngx_http_llmgw_path_t));
        if (llcf->paths == NULL) {
            return NGX_CONF_ERROR;
        }
    }

    ngx_memzero(&new, sizeof(ngx_http_llmgw_path_t));

    skip = value[1].len > 4 && value[1].data[3] == '/' ? 3 : 0;
    new.versions = ngx_http_llmgw_openai_path_version(value[1].data, skip);
    skip = new.versions == V0 ? 0 : skip;
    new.path.data = value[1].data + skip;
    new.path.len = value[1].len - skip;
    new.api = LLMGATEWAY__API__API_PASS;
    new.file = cf->conf_file->file.name.data;
    new.line = cf->conf_file->line;

    if (ngx_http_llmgw_openai_path_is_known(ngx_http_llmgw_openai_paths,
                                            NGX_HTTP_LLMGW_OPENAI_NPATHS, &new)
        || ngx_http_llmgw_openai_path_is_known(llcf->paths->elts,
                                               llcf->paths->nelts, &new)
        || (new.path.len == 7 && ngx_memcmp(new.path.data, "/models", 7) == 0))
    {
        return "is duplicate: that path is served already";
    }

    path = ngx_array_push(llcf->paths);
    if (path == NULL) {
        return NGX_CONF_ERROR;
    }

    *path = new;

    return NGX_CONF_OK;
}


/* 1: every server reads the path in the same way. */

static ngx_uint_t
ngx_http_llmgw_openai_path_is_plain(const ngx_str_t *path)
{
    u_char  c, last, *p, *end;

    end = path->data + path->len;
    last = 0;

    for (p = path->data; p < end; p++) {
        c = *p | 0x20;

        if ((c < 'a' || c > 'z') && (*p < '0' || *p > '9')
            && ngx_strchr("/-_.~", *p) == NULL)
        {
            return 0;
        }

        if (last == '/' && (*p == '/' || *p == '.')) {
            return 0;
        }

        last = *p;
    }

    return path->len > 1 && path->len <= NGX_HTTP_LLMGW_OPENAI_PATH_MAX
           && path->data[0] == '/' && last != '/';
}


static ngx_uint_t
ngx_http_llmgw_openai_path_is_known(const ngx_http_llmgw_path_t *path,
    ngx_uint_t n, const ngx_http_llmgw_path_t *other)
{
    for ( /* void */ ; n > 0; n--, path++) {
        if ((path->versions & other->versions)
            && path->path.len == other->path.len
            && ngx_memcmp(path->path.data, other->path.data, other->path.len)
               == 0)
        {
            return 1;
        }
    }

    return 0;
}
