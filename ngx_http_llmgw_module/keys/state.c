
/* Which process may write the state, and when.  state.h has the rules. */

#include "keys/state.h"
#include "keys/usage.h"


#define NGX_HTTP_LLMGW_STATE_REST_MS  1


static ngx_int_t ngx_http_llmgw_books_no_folder(ngx_http_llmgw_keys_t *keys,
    ngx_log_t *log);
static ngx_int_t ngx_http_llmgw_books_fcntl(
    const ngx_http_llmgw_books_file_t *books, int command, struct flock *lock,
    short type, off_t from, off_t len);
static off_t ngx_http_llmgw_books_byte(const char *birth);
static ngx_uint_t ngx_http_llmgw_books_may(ngx_http_llmgw_books_file_t *books);
static ngx_int_t ngx_http_llmgw_books_begin(
    ngx_http_llmgw_books_file_t *books);
static void ngx_http_llmgw_books_handler(ngx_event_t *ev);


char *
ngx_http_llmgw_books_path(const ngx_http_llmgw_keys_t *keys,
    const char *suffix, ngx_log_t *log)
{
    char  *path;

    path = ngx_alloc(keys->state.len + ngx_strlen(suffix) + 1, log);

    if (path) {
        ngx_sprintf((u_char *) path, "%V%s%Z", &keys->state, suffix);
    }

    return path;
}


ngx_int_t
ngx_http_llmgw_books_open(ngx_http_llmgw_keys_t *keys, ngx_log_t *log)
{
    char                         *path;
    ngx_fd_t                      fd;
    ngx_http_llmgw_books_file_t  *books;

    path = ngx_http_llmgw_books_path(keys, ".lock", log);
    if (path == NULL) {
        return NGX_ERROR;
    }

    fd = open(path, O_RDWR|O_CREAT|O_CLOEXEC|O_NOFOLLOW, 0600);
    ngx_free(path);

    if (fd == NGX_INVALID_FILE) {
        return ngx_http_llmgw_books_no_folder(keys, log);
    }

    books = ngx_calloc(sizeof(ngx_http_llmgw_books_file_t), log);
    if (books == NULL) {
        (void) ngx_close_file(fd);
        return NGX_ERROR;
    }

    books->keys = keys;
    books->fd = NGX_INVALID_FILE;
    books->event.handler = ngx_http_llmgw_books_handler;
    books->event.data = books;
    books->event.cancelable = 1;
    books->lock = fd;
    keys->books = books;

    return NGX_OK;
}


static ngx_int_t
ngx_http_llmgw_books_no_folder(ngx_http_llmgw_keys_t *keys, ngx_log_t *log)
{
    ngx_log_error(NGX_LOG_EMERG, log, ngx_errno,
                  "llmgw: \"%V.lock\" cannot be opened; make the folder of "
                  "\"state=\", and give it to the user of nginx's workers",
                  &keys->state);

    return NGX_ERROR;
}


ngx_int_t
ngx_http_llmgw_books_hold(ngx_http_llmgw_keys_t *keys, ngx_log_t *log)
{
    struct flock                   lock;
    ngx_http_llmgw_keys_shared_t  *shared;

    if (keys->state.len == 0) {
        return NGX_OK;
    }

    if (ngx_test_config) {
        return ngx_http_llmgw_usage_may_make(&keys->state) == NGX_OK
               ? NGX_OK : ngx_http_llmgw_books_no_folder(keys, log);
    }

    if (keys->books == NULL && ngx_http_llmgw_books_open(keys, log) != NGX_OK) {
        return NGX_ERROR;
    }

    shared = ngx_http_llmgw_keys_shared(keys);

    if (keys->books->is_oldest) {
        shared->is_based = 1;
    }

    if (ngx_http_llmgw_books_fcntl(keys->books, F_OFD_SETLK, &lock, F_RDLCK,
                           ngx_http_llmgw_books_byte(shared->accounts->birth),
                           1)
        == NGX_OK)
    {
        return NGX_OK;
    }

    ngx_log_error(NGX_LOG_EMERG, log, ngx_errno,
                  "llmgw: \"%V.lock\" cannot be locked; put \"state=\" on a "
                  "local disk", &keys->state);

    return NGX_ERROR;
}


void
ngx_http_llmgw_books_release(ngx_http_llmgw_keys_t *keys)
{
    ngx_http_llmgw_books_file_t  *books;

    books = keys->books;

    if (books == NULL) {
        return;
    }

    if (books->event.timer_set) {
        ngx_del_timer(&books->event);
    }

    if (books->fd != NGX_INVALID_FILE) {
        (void) ngx_close_file(books->fd);
    }

    llmgw_past_done(books->past);
    (void) ngx_close_file(books->lock);
    ngx_free(books);
    keys->books = NULL;
}


static ngx_int_t
ngx_http_llmgw_books_fcntl(const ngx_http_llmgw_books_file_t *books,
    int command, struct flock *lock, short type, off_t from, off_t len)
{
    ngx_memzero(lock, sizeof(struct flock));
    lock->l_type = type;
    lock->l_whence = SEEK_SET;
    lock->l_start = from;
    lock->l_len = len;

    return fcntl(books->lock, command, lock) == -1 ? NGX_ERROR : NGX_OK;
}


/*
 * The byte of a generation: byte 0 is the writer's, byte 1 comes before all
 * others.
 */

static off_t
ngx_http_llmgw_books_byte(const char *birth)
{
    return 2 + (ngx_hextoi((u_char *) birth, LLMGW_USAGE_BIRTH_BYTES - 1
                                             - 2 * LLMGW_USAGE_CHANCE_BYTES));
}


ngx_uint_t
ngx_http_llmgw_books_is_oldest(const ngx_http_llmgw_books_file_t *books,
    const char *birth)
{
    off_t         len;
    struct flock  lock;

    len = birth ? ngx_http_llmgw_books_byte(birth) - 1 : 0;     /* 0: to the
                                                                   end */

    return ngx_http_llmgw_books_fcntl(books, F_OFD_GETLK, &lock, F_WRLCK, 1,
                                      len)
           == NGX_OK
           && lock.l_type == F_UNLCK;
}


void
ngx_http_llmgw_books_tick(ngx_http_llmgw_keys_t *keys)
{
    ngx_http_llmgw_books_file_t  *books;

    books = keys->books;

    if (books && books->step == NULL
        && ngx_http_llmgw_books_may(books)
        && ngx_http_llmgw_books_begin(books) == NGX_OK && books->step)
    {
        books->event.log = ngx_cycle->log;
        ngx_http_llmgw_books_handler(&books->event);
    }
}


void
ngx_http_llmgw_books_end(ngx_http_llmgw_keys_t *keys)
{
    struct flock                  lock;
    ngx_http_llmgw_books_file_t  *books;

    books = keys->books;

    if (books == NULL || !ngx_http_llmgw_keys_shared(keys)->is_based
        || !ngx_http_llmgw_books_may(books))
    {
        return;
    }

    /* a state that was begun earlier covers less */

    while (books->step && books->step(books) == NGX_AGAIN) {
        /* void */
    }

    books->step = NULL;

    if (ngx_http_llmgw_books_write(books) == NGX_OK && books->step) {
        while (books->step(books) == NGX_AGAIN) {
            /* void */
        }
    }

    (void) ngx_http_llmgw_books_fcntl(books, F_SETLK, &lock, F_UNLCK, 0, 1);
}


/* A generation that has become the oldest stays so. */

static ngx_uint_t
ngx_http_llmgw_books_may(ngx_http_llmgw_books_file_t *books)
{
    struct flock                   lock;
    ngx_http_llmgw_keys_shared_t  *shared;

    shared = ngx_http_llmgw_keys_shared(books->keys);

    if (!shared->is_based
        && !ngx_http_llmgw_books_is_oldest(books, shared->accounts->birth))
    {
        return 0;
    }

    return ngx_http_llmgw_books_fcntl(books, F_SETLK, &lock, F_WRLCK, 0, 1)
           == NGX_OK;
}


static ngx_int_t
ngx_http_llmgw_books_begin(ngx_http_llmgw_books_file_t *books)
{
    ngx_http_llmgw_keys_shared_t  *shared;

    shared = ngx_http_llmgw_keys_shared(books->keys);

    if (shared->is_based) {
        return ngx_http_llmgw_books_write(books);
    }

    return ngx_http_llmgw_books_read(books, shared->accounts->birth);
}


static void
ngx_http_llmgw_books_handler(ngx_event_t *ev)
{
    ngx_http_llmgw_books_file_t  *books = ev->data;

    if (books->step(books) == NGX_AGAIN) {
        ngx_add_timer(ev, NGX_HTTP_LLMGW_STATE_REST_MS);
        return;
    }

    books->step = NULL;
}
