
/*
 * Reads what was used before, and gives it to the accounts: at a start, when
 * the zone is new, and again when the older generation beside which it was
 * started has ended.
 *
 * A state that does not count, as another gateway's or one that was damaged,
 * does not keep nginx from starting: the usage log has the same figures of this
 * month, unless there is no such log.  An error is logged, and the file is kept
 * under another name, since the next state takes its own.
 */

#include <sys/random.h>

#include "keys/state.h"
#include "keys/usage.h"


/* A start that takes longer logs its progress. */
#define NGX_HTTP_LLMGW_STATE_SHOWN_MS  5000


static ngx_int_t ngx_http_llmgw_books_past(ngx_http_llmgw_books_file_t *books,
    const char *below);
static void ngx_http_llmgw_books_trouble(void *data, const char *path,
    const char *why, int error);
static void ngx_http_llmgw_books_read_all(ngx_http_llmgw_books_file_t *books);
static void ngx_http_llmgw_books_is_read(ngx_http_llmgw_books_file_t *books,
    int rc);
static ngx_int_t ngx_http_llmgw_books_read_some(
    ngx_http_llmgw_books_file_t *books);
static ngx_int_t ngx_http_llmgw_books_give_some(
    ngx_http_llmgw_books_file_t *books);
static ngx_int_t ngx_http_llmgw_books_give(ngx_http_llmgw_books_file_t *books,
    llmgw_accounts_t *accounts);
static void ngx_http_llmgw_books_are_given(
    ngx_http_llmgw_books_file_t *books);


ngx_int_t
ngx_http_llmgw_books_birth(ngx_http_llmgw_keys_t *keys,
    char birth[LLMGW_USAGE_BIRTH_BYTES], ngx_log_t *log)
{
    uint8_t                       chance[LLMGW_USAGE_CHANCE_BYTES];
    const char                   *above;
    llmgw_moment_t                now;
    ngx_http_llmgw_books_file_t  *books;

    above = "";

    if (keys->state.len && !ngx_test_config) {

        if (ngx_http_llmgw_books_open(keys, log) != NGX_OK) {
            return NGX_ERROR;
        }

        books = keys->books;
        books->log = log;
        books->is_oldest = ngx_http_llmgw_books_is_oldest(books, NULL);

        if (ngx_http_llmgw_books_past(books, NULL) != NGX_OK) {
            return NGX_ERROR;
        }

        ngx_http_llmgw_books_read_all(books);
        above = llmgw_books_birth(llmgw_past_books(books->past));
    }

    if (getrandom(chance, sizeof(chance), 0) != sizeof(chance)) {
        ngx_log_error(NGX_LOG_EMERG, log, ngx_errno, "getrandom() failed");
        return NGX_ERROR;
    }

    ngx_http_llmgw_keys_now(&now);
    llmgw_usage_birth(birth, now.unix_ms, chance, above);

    return NGX_OK;
}


ngx_int_t
ngx_http_llmgw_books_start(ngx_http_llmgw_keys_t *keys,
    llmgw_accounts_t *accounts, ngx_log_t *log)
{
    ngx_http_llmgw_books_file_t  *books;

    books = keys->books;

    if (books == NULL) {
        return NGX_OK;
    }

    while (ngx_http_llmgw_books_give(books, accounts) == NGX_AGAIN) {
        /* void */
    }

    ngx_http_llmgw_books_are_given(books);

    if (!books->is_oldest) {
        ngx_log_error(NGX_LOG_NOTICE, log, 0,
                      "llmgw: state \"%V\" is another nginx's, which was "
                      "started before; this one reads it again and writes it "
                      "when that one has ended", &keys->state);
    }

    return NGX_OK;
}


ngx_int_t
ngx_http_llmgw_books_read(ngx_http_llmgw_books_file_t *books,
    const char *birth)
{
    books->log = ngx_cycle->log;

    if (ngx_http_llmgw_books_past(books, birth) != NGX_OK) {
        return NGX_ERROR;
    }

    books->step = ngx_http_llmgw_books_read_some;

    return NGX_OK;
}


static ngx_int_t
ngx_http_llmgw_books_past(ngx_http_llmgw_books_file_t *books,
    const char *below)
{
    char                         gateway[LLMGW_USAGE_GATEWAY_BYTES];
    llmgw_moment_t               now;
    llmgw_past_files_t           files;
    ngx_http_llmgw_usage_log_t  *log;

    log = books->keys->main->usage_log;
    ngx_http_llmgw_usage_gateway(books->keys, gateway);
    ngx_http_llmgw_keys_now(&now);

    files.gateway = gateway;
    files.below = below;
    files.state = (char *) books->keys->state.data;
    files.log = log ? (char *) log->path.data : NULL;
    files.unix_ms = now.unix_ms;
    files.on_trouble = ngx_http_llmgw_books_trouble;
    files.data = books;

    books->given = 0;
    books->ungiven = 0;
    books->past = llmgw_past_begin(&files);

    return books->past ? NGX_OK : NGX_ERROR;
}


static void
ngx_http_llmgw_books_trouble(void *data, const char *path, const char *why,
    int error)
{
    ngx_http_llmgw_books_file_t  *books = data;

    if (path == (char *) books->keys->state.data) {
        ngx_log_error(NGX_LOG_ERR, books->log, error,
                      "llmgw: state \"%s\" is not used, %s; it is renamed to "
                      "\"%s.refused\", and only what the usage log has counts "
                      "against budgets", path, why, path);
        return;
    }

    ngx_log_error(NGX_LOG_ERR, books->log, error,
                  "llmgw: usage log \"%s\": %s; what only it has does not "
                  "count against budgets until it can be read and nginx is "
                  "started anew", path, why);
}


static void
ngx_http_llmgw_books_read_all(ngx_http_llmgw_books_file_t *books)
{
    int                         rc;
    ngx_msec_t                  shown;
    const llmgw_past_counts_t  *counts;

    ngx_time_update();
    shown = ngx_current_msec;
    counts = llmgw_past_counts(books->past);

    while ((rc = llmgw_past_step(books->past)) == 1) {
        ngx_time_update();

        if (ngx_current_msec - shown >= NGX_HTTP_LLMGW_STATE_SHOWN_MS) {
            shown = ngx_current_msec;
            ngx_log_error(NGX_LOG_NOTICE, books->log, 0,
                          "llmgw: earlier usage is being read, %uL records of "
                          "%uD files of the usage log so far",
                          counts->records, counts->files);
        }
    }

    ngx_http_llmgw_books_is_read(books, rc);
}


static void
ngx_http_llmgw_books_is_read(ngx_http_llmgw_books_file_t *books, int rc)
{
    char  *path;

    if (rc == -1) {
        ngx_log_error(NGX_LOG_ERR, books->log, 0,
                      "llmgw: there is no memory for all that state \"%V\" and "
                      "the usage log have, only a part of it counts against "
                      "budgets", &books->keys->state);
    }

    if (!llmgw_past_counts(books->past)->is_refused) {
        return;
    }

    path = ngx_http_llmgw_books_path(books->keys, ".refused", books->log);

    if (path && ngx_rename_file(books->keys->state.data, path)
                == NGX_FILE_ERROR)
    {
        ngx_log_error(NGX_LOG_ERR, books->log, ngx_errno,
                      "llmgw: state \"%V\" cannot be renamed to \"%s\"",
                      &books->keys->state, path);
    }

    ngx_free(path);
}


static ngx_int_t
ngx_http_llmgw_books_read_some(ngx_http_llmgw_books_file_t *books)
{
    int  rc;

    rc = llmgw_past_step(books->past);

    if (rc != 1) {
        ngx_http_llmgw_books_is_read(books, rc);
        books->step = ngx_http_llmgw_books_give_some;
    }

    return NGX_AGAIN;
}


static ngx_int_t
ngx_http_llmgw_books_give_some(ngx_http_llmgw_books_file_t *books)
{
    ngx_int_t          rc;
    ngx_uint_t         i;
    llmgw_accounts_t  *accounts;

    rc = NGX_AGAIN;

    for (i = 0; i < NGX_HTTP_LLMGW_STATE_STEP && rc == NGX_AGAIN;
         i += NGX_HTTP_LLMGW_STATE_HOLD)
    {
        accounts = ngx_http_llmgw_keys_lock(books->keys);
        rc = ngx_http_llmgw_books_give(books, accounts);

        if (rc == NGX_OK) {
            ngx_http_llmgw_keys_shared(books->keys)->is_based = 1;
        }

        ngx_http_llmgw_keys_unlock(books->keys);
    }

    if (rc == NGX_OK) {
        ngx_http_llmgw_books_are_given(books);
    }

    return rc;
}


/*
 * Gives some accounts their usage.  May run under the lock: nothing is logged
 * here.
 */

static ngx_int_t
ngx_http_llmgw_books_give(ngx_http_llmgw_books_file_t *books,
    llmgw_accounts_t *accounts)
{
    ngx_uint_t                    i;
    llmgw_moment_t                now;
    llmgw_accounts_text_t         name;
    const llmgw_books_account_t  *account;

    ngx_http_llmgw_keys_now(&now);

    for (i = 0; i < NGX_HTTP_LLMGW_STATE_HOLD; i++) {
        account = llmgw_books_at(llmgw_past_books(books->past), books->given);

        if (account == NULL) {
            return NGX_OK;
        }

        name.text = account->name;
        name.len = ngx_strlen(account->name);
        books->given++;

        if (llmgw_accounts_base(accounts, name, &account->sums, &now) != 0) {
            books->ungiven++;
        }
    }

    return NGX_AGAIN;
}


static void
ngx_http_llmgw_books_are_given(ngx_http_llmgw_books_file_t *books)
{
    llmgw_past_done(books->past);
    books->past = NULL;

    if (books->ungiven) {
        ngx_log_error(NGX_LOG_ERR, books->log, 0,
                      "llmgw: zone \"%V\" has no account left for %ui names "
                      "that used something this month, it does not count "
                      "against their budgets; enlarge it in \"llmgw_keys\"",
                      &books->keys->zone_name, books->ungiven);
    }
}
