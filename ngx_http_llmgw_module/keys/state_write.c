
/*
 * Writes the state: a new file beside it, account by account, which then takes
 * its name.  If that fails, the old file stays as it is.
 *
 * An account that has used nothing in this month is left out: what the usage
 * log has of it belongs to periods that are over.
 */

#include "keys/state.h"
#include "keys/usage.h"


static ngx_int_t ngx_http_llmgw_books_write_some(
    ngx_http_llmgw_books_file_t *books);
static ngx_uint_t ngx_http_llmgw_books_copy(
    ngx_http_llmgw_books_file_t *books, llmgw_account_look_t *looks,
    ngx_uint_t *end);
static ngx_int_t ngx_http_llmgw_books_flush(
    ngx_http_llmgw_books_file_t *books);
static ngx_int_t ngx_http_llmgw_books_rename(
    ngx_http_llmgw_books_file_t *books);
static ngx_int_t ngx_http_llmgw_books_failed(
    ngx_http_llmgw_books_file_t *books, ngx_err_t err);


/* A worker that becomes the writer writes a state in any case. */

ngx_int_t
ngx_http_llmgw_books_write(ngx_http_llmgw_books_file_t *books)
{
    char                  *path;
    llmgw_accounts_t      *accounts;
    llmgw_usage_source_t   source;

    accounts = ngx_http_llmgw_keys_lock(books->keys);
    books->next_n = accounts->words.next_n;
    ngx_http_llmgw_keys_unlock(books->keys);

    if (books->next_n == books->saved_n) {
        return NGX_OK;
    }

    path = ngx_http_llmgw_books_path(books->keys, ".tmp", ngx_cycle->log);
    if (path == NULL) {
        return NGX_ERROR;
    }

    books->fd = open(path, O_WRONLY|O_CREAT|O_TRUNC|O_CLOEXEC|O_NOFOLLOW, 0640);
    ngx_free(path);

    if (books->fd == NGX_INVALID_FILE) {
        return ngx_http_llmgw_books_failed(books, ngx_errno);
    }

    ngx_http_llmgw_usage_gateway(books->keys, source.gateway);
    ngx_memcpy(source.birth, accounts->birth, sizeof(source.birth));

    books->len = llmgw_state_head(books->text, &source);
    books->account = 0;
    books->lines = 0;
    books->step = ngx_http_llmgw_books_write_some;

    return NGX_OK;
}


static ngx_int_t
ngx_http_llmgw_books_write_some(ngx_http_llmgw_books_file_t *books)
{
    ngx_uint_t            i, n, looked, is_end;
    llmgw_account_look_t  looks[NGX_HTTP_LLMGW_STATE_HOLD];

    for (looked = 0, is_end = 0;
         looked < NGX_HTTP_LLMGW_STATE_STEP && !is_end;
         looked += NGX_HTTP_LLMGW_STATE_HOLD)
    {
        n = ngx_http_llmgw_books_copy(books, looks, &is_end);

        for (i = 0; i < n; i++) {
            books->len += llmgw_state_account(books->text + books->len,
                                              looks[i].name, &looks[i].sums,
                                              looks[i].n);
        }

        books->lines += n;
    }

    if (ngx_http_llmgw_books_flush(books) != NGX_OK) {
        return NGX_ERROR;
    }

    return is_end ? ngx_http_llmgw_books_rename(books) : NGX_AGAIN;
}


/*
 * Copies the next accounts that have used something, and returns how many;
 * *end: the last.
 */

static ngx_uint_t
ngx_http_llmgw_books_copy(ngx_http_llmgw_books_file_t *books,
    llmgw_account_look_t *looks, ngx_uint_t *end)
{
    int                rc;
    ngx_uint_t         i, n;
    llmgw_moment_t     now;
    llmgw_accounts_t  *accounts;

    ngx_http_llmgw_keys_now(&now);
    accounts = ngx_http_llmgw_keys_lock(books->keys);

    for (i = 0, n = 0; i < NGX_HTTP_LLMGW_STATE_HOLD && !*end; i++) {
        rc = llmgw_accounts_look(accounts, books->account, &now, &looks[n]);

        if (rc == -1) {
            *end = 1;
            break;
        }

        books->account++;
        n += rc == 1 && looks[n].sums.used[LLMGW_PERIOD_MONTH] > 0;
    }

    ngx_http_llmgw_keys_unlock(books->keys);

    return n;
}


static ngx_int_t
ngx_http_llmgw_books_flush(ngx_http_llmgw_books_file_t *books)
{
    ssize_t  n;

    n = write(books->fd, books->text, books->len);

    if (n != (ssize_t) books->len) {
        return ngx_http_llmgw_books_failed(books, n == -1 ? ngx_errno
                                                          : NGX_ENOSPC);
    }

    books->len = 0;

    return NGX_OK;
}


static ngx_int_t
ngx_http_llmgw_books_rename(ngx_http_llmgw_books_file_t *books)
{
    int    rc;
    char  *path;

    books->len = llmgw_state_end(books->text, books->lines);

    if (ngx_http_llmgw_books_flush(books) != NGX_OK) {
        return NGX_ERROR;
    }

    rc = ngx_close_file(books->fd);
    books->fd = NGX_INVALID_FILE;

    if (rc == NGX_FILE_ERROR) {
        return ngx_http_llmgw_books_failed(books, ngx_errno);
    }

    path = ngx_http_llmgw_books_path(books->keys, ".tmp", ngx_cycle->log);
    if (path == NULL) {
        return NGX_ERROR;
    }

    rc = ngx_rename_file(path, books->keys->state.data);
    ngx_free(path);

    if (rc == NGX_FILE_ERROR) {
        return ngx_http_llmgw_books_failed(books, ngx_errno);
    }

    books->saved_n = books->next_n;

    if (books->failed) {
        books->failed = 0;
        ngx_log_error(NGX_LOG_NOTICE, ngx_cycle->log, 0,
                      "llmgw: state \"%V\" is written again",
                      &books->keys->state);
    }

    return NGX_OK;
}


static ngx_int_t
ngx_http_llmgw_books_failed(ngx_http_llmgw_books_file_t *books, ngx_err_t err)
{
    if (books->fd != NGX_INVALID_FILE) {

        if (ftruncate(books->fd, 0) == -1) {
            /* the next write frees its room on the disk */
        }

        (void) ngx_close_file(books->fd);
        books->fd = NGX_INVALID_FILE;
    }

    if (!books->failed) {
        books->failed = 1;
        ngx_log_error(NGX_LOG_ERR, ngx_cycle->log, err,
                      "llmgw: state \"%V\" cannot be written, the last one "
                      "stays; let the user of nginx's workers write to its "
                      "folder, and make room on its disk",
                      &books->keys->state);
    }

    return NGX_ERROR;
}
