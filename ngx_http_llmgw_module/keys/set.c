
/* A key file, read in steps; keys/set.h has the contract. */

#include "keys/set.h"


#define NGX_HTTP_LLMGW_KEY_STEP_BYTES  65536


static ngx_int_t ngx_http_llmgw_key_load_fails(
    ngx_http_llmgw_key_load_t *load, const char *what, ngx_err_t err);
static ngx_int_t ngx_http_llmgw_key_load_read(
    ngx_http_llmgw_key_load_t *load);
static void ngx_http_llmgw_key_file_of(const struct stat *st,
    ngx_http_llmgw_key_file_t *file);


ngx_int_t
ngx_http_llmgw_key_set_load(ngx_conf_t *cf, ngx_http_llmgw_keys_t *keys)
{
    ngx_int_t                  rc;
    ngx_http_llmgw_key_load_t  load;

    rc = ngx_http_llmgw_key_load_begin(&load, (char *) keys->path.data);

    if (rc == NGX_OK) {
        do {
            rc = ngx_http_llmgw_key_load_step(&load);
        } while (rc == NGX_AGAIN);

        ngx_http_llmgw_key_load_end(&load);
    }

    if (rc == NGX_DECLINED) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "llmgw: key file \"%V\" changed while it was read, "
                           "try again", &keys->path);
        return NGX_ERROR;
    }

    if (rc == NGX_ERROR) {
        ngx_http_llmgw_key_error(keys, &load.error, NGX_LOG_EMERG, cf->log);
        return NGX_ERROR;
    }

    keys->set = ngx_http_llmgw_key_set_create(load.keys, &load.file);

    return keys->set ? NGX_OK : NGX_ERROR;
}


/* Logs the file's line as well, if the error has one. */

void
ngx_http_llmgw_key_error(const ngx_http_llmgw_keys_t *keys,
    const llmgw_keys_error_t *error, ngx_uint_t level, ngx_log_t *log)
{
    const char  *stays;

    stays = level == NGX_LOG_EMERG ? "" : "; the keys read before stay in "
                                          "force";

    if (error->line) {
        ngx_log_error(level, log, 0, "llmgw: key file \"%V\", line %uD: %s%s",
                      &keys->path, error->line, error->text, stays);

    } else {
        ngx_log_error(level, log, 0, "llmgw: key file \"%V\": %s%s",
                      &keys->path, error->text, stays);
    }
}


ngx_http_llmgw_key_set_t *
ngx_http_llmgw_key_set_create(llmgw_keys_t *keys,
    const ngx_http_llmgw_key_file_t *file)
{
    ngx_http_llmgw_key_set_t  *set;

    set = calloc(1, sizeof(ngx_http_llmgw_key_set_t));

    if (set == NULL) {
        llmgw_keys_destroy(keys);
        return NULL;
    }

    set->keys = keys;
    set->file = *file;
    set->refs = 1;

    return set;
}


void
ngx_http_llmgw_key_set_release(ngx_http_llmgw_key_set_t *set)
{
    if (--set->refs == 0) {
        llmgw_keys_destroy(set->keys);
        free(set);
    }
}


/* Non-blocking: a path that is a pipe must not make a worker wait. */

ngx_int_t
ngx_http_llmgw_key_load_begin(ngx_http_llmgw_key_load_t *load,
    const char *path)
{
    struct stat  st;

    ngx_memzero(load, sizeof(ngx_http_llmgw_key_load_t));

    load->fd = open(path, O_RDONLY|O_NONBLOCK|O_CLOEXEC);

    if (load->fd == NGX_INVALID_FILE) {
        return ngx_http_llmgw_key_load_fails(load, "cannot be opened",
                                             ngx_errno);
    }

    if (fstat(load->fd, &st) == -1) {
        (void) ngx_http_llmgw_key_load_fails(load, "cannot be read",
                                             ngx_errno);

    } else if (!S_ISREG(st.st_mode)) {
        (void) ngx_http_llmgw_key_load_fails(load, "is no file", 0);

    } else if (st.st_size > LLMGW_KEY_FILE_MAX) {
        (void) ngx_http_llmgw_key_load_fails(load, "is larger than 16 MB", 0);

    } else {
        ngx_http_llmgw_key_file_of(&st, &load->file);
        load->text = malloc(st.st_size + 1);

        if (load->text) {
            return NGX_OK;
        }

        (void) ngx_http_llmgw_key_load_fails(load, "cannot be read", ENOMEM);
    }

    ngx_http_llmgw_key_load_end(load);

    return NGX_ERROR;
}


/* NGX_ERROR, always. */

static ngx_int_t
ngx_http_llmgw_key_load_fails(ngx_http_llmgw_key_load_t *load,
    const char *what, ngx_err_t err)
{
    u_char  *p, *end, text[128];

    p = (u_char *) load->error.text;
    end = p + sizeof(load->error.text) - 1;
    load->error.line = 0;

    if (err) {
        *ngx_strerror(err, text, sizeof(text) - 1) = '\0';
        p = ngx_slprintf(p, end, "%s: %s", what, text);

    } else {
        p = ngx_slprintf(p, end, "%s", what);
    }

    *p = '\0';

    return NGX_ERROR;
}


ngx_int_t
ngx_http_llmgw_key_load_step(ngx_http_llmgw_key_load_t *load)
{
    ngx_int_t  rc;

    if (load->fd != NGX_INVALID_FILE) {
        rc = ngx_http_llmgw_key_load_read(load);

        if (rc != NGX_OK) {
            return rc;
        }

        load->keys = llmgw_keys_create(load->text, load->len);

        if (load->keys == NULL) {
            return ngx_http_llmgw_key_load_fails(load, "cannot be read",
                                                 ENOMEM);
        }

        load->text = NULL;
        return NGX_AGAIN;
    }

    switch (llmgw_keys_step(load->keys, LLMGW_KEYS_STEP_LINES, &load->error)) {

    case LLMGW_KEYS_MORE:
        return NGX_AGAIN;

    case LLMGW_KEYS_DONE:
        return NGX_OK;

    case LLMGW_KEYS_ENOMEM:
        (void) ngx_http_llmgw_key_load_fails(load, "cannot be read", ENOMEM);
        break;

    case LLMGW_KEYS_ERROR:
        break;
    }

    llmgw_keys_destroy(load->keys);
    load->keys = NULL;

    return NGX_ERROR;
}


/* NGX_OK: the file was read, and has not changed since it was opened. */

static ngx_int_t
ngx_http_llmgw_key_load_read(ngx_http_llmgw_key_load_t *load)
{
    size_t                     left;
    ssize_t                    n;
    struct stat                st;
    ngx_http_llmgw_key_file_t  file;

    left = load->file.size + 1 - load->len;
    n = read(load->fd, load->text + load->len,
             ngx_min(left, NGX_HTTP_LLMGW_KEY_STEP_BYTES));

    if (n == -1) {
        return ngx_http_llmgw_key_load_fails(load, "cannot be read",
                                             ngx_errno);
    }

    load->len += n;

    if (load->len > load->file.size) {
        return NGX_DECLINED;
    }

    if (n > 0) {
        return NGX_AGAIN;
    }

    if (fstat(load->fd, &st) == -1) {
        return ngx_http_llmgw_key_load_fails(load, "cannot be read",
                                             ngx_errno);
    }

    (void) ngx_close_file(load->fd);
    load->fd = NGX_INVALID_FILE;
    ngx_http_llmgw_key_file_of(&st, &file);

    return load->len == file.size
           && ngx_http_llmgw_key_file_is(&file, &load->file) ? NGX_OK
                                                             : NGX_DECLINED;
}


void
ngx_http_llmgw_key_load_end(ngx_http_llmgw_key_load_t *load)
{
    if (load->fd != NGX_INVALID_FILE) {
        (void) ngx_close_file(load->fd);
        load->fd = NGX_INVALID_FILE;
    }

    free(load->text);
    load->text = NULL;
}


ngx_int_t
ngx_http_llmgw_key_file_look(const char *path, ngx_http_llmgw_key_file_t *file)
{
    struct stat  st;

    if (stat(path, &st) == -1) {
        return NGX_ERROR;
    }

    ngx_http_llmgw_key_file_of(&st, file);

    return NGX_OK;
}


static void
ngx_http_llmgw_key_file_of(const struct stat *st,
    ngx_http_llmgw_key_file_t *file)
{
    ngx_memzero(file, sizeof(ngx_http_llmgw_key_file_t));

    file->device = st->st_dev;
    file->inode = st->st_ino;
    file->size = st->st_size;
    file->changed_ns = st->st_ctim.tv_sec * 1000000000ull
                       + st->st_ctim.tv_nsec;
    file->modified_ns = st->st_mtim.tv_sec * 1000000000ull
                        + st->st_mtim.tv_nsec;
}


ngx_uint_t
ngx_http_llmgw_key_file_is(const ngx_http_llmgw_key_file_t *a,
    const ngx_http_llmgw_key_file_t *b)
{
    return ngx_memcmp(a, b, sizeof(ngx_http_llmgw_key_file_t)) == 0;
}
