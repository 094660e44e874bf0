
/* Accounts' usage before a start.  books.h has the rules. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "proto/json/check.h"
#include "proto/json/text.h"
#include "proto/json/write.h"
#include "proto/usage/books.h"
#include "proto/usage/seen.h"
#include "proto/usage/usage_inner.h"


#define STATE_VERSION  1

struct llmgw_books_s {
    char                    gateway[LLMGW_USAGE_GATEWAY_BYTES];
    char                    below[LLMGW_USAGE_BIRTH_BYTES];
    char                    birth[LLMGW_USAGE_BIRTH_BYTES];
    llmgw_seen_t           *seen;
    llmgw_books_account_t  *accounts;
    size_t                  n;
    size_t                  size;       /* a power of two: number of entries in
                                           `index` */
    uint32_t               *index;      /* by name: number of the account + 1 */
    uint64_t                lines;      /* lines of the state read so far */
};


llmgw_books_t *
llmgw_books_create(const char *gateway, const char *below)
{
    llmgw_books_t  *books;

    books = calloc(1, sizeof(*books));

    if (books == NULL) {
        return NULL;
    }

    books->seen = llmgw_seen_create();

    if (books->seen == NULL) {
        free(books);
        return NULL;
    }

    llmgw_usage_text(books->gateway, sizeof(books->gateway), gateway,
                     strlen(gateway));

    if (below != NULL) {
        llmgw_usage_text(books->below, sizeof(books->below), below,
                         strlen(below));
    }

    return books;
}


void
llmgw_books_destroy(llmgw_books_t *books)
{
    if (books != NULL) {
        llmgw_seen_destroy(books->seen);
        free(books->accounts);
        free(books->index);
        free(books);
    }
}


/* The entry of a name in the index, or a free entry. */
static uint32_t *
books_place(const llmgw_books_t *books, const char *name)
{
    size_t     i;
    uint32_t  *place;

    i = XXH3_64bits(name, strlen(name));

    for ( ;; i++) {
        place = &books->index[i & (books->size - 1)];

        if (*place == 0 || strcmp(books->accounts[*place - 1].name, name) == 0)
        {
            return place;
        }
    }
}


/*
 * Makes room for one more account.  The index always has at least twice as many
 * entries as there are accounts.
 */
static int
books_grow(llmgw_books_t *books)
{
    size_t                  i, size;
    uint32_t               *index;
    llmgw_books_account_t  *accounts;

    if (books->n < books->size / 2) {
        return 0;
    }

    size = books->size ? 2 * books->size : 64;
    accounts = realloc(books->accounts, size / 2 * sizeof(*accounts));

    if (accounts == NULL) {
        return -1;
    }

    books->accounts = accounts;
    index = calloc(size, sizeof(*index));

    if (index == NULL) {
        return -1;
    }

    free(books->index);
    books->index = index;
    books->size = size;

    for (i = 0; i < books->n; i++) {
        *books_place(books, accounts[i].name) = (uint32_t) i + 1;
    }

    return 0;
}


/*
 * The account of that name, which is added if need be; NULL: there is no room.
 */
static llmgw_books_account_t *
books_account(llmgw_books_t *books, const char *name)
{
    uint32_t               *place;
    llmgw_books_account_t  *account;

    if (books_grow(books) != 0) {
        return NULL;
    }

    place = books_place(books, name);

    if (*place > 0) {
        return &books->accounts[*place - 1];
    }

    if (books->n == LLMGW_BOOKS_ACCOUNTS) {
        return NULL;
    }

    account = &books->accounts[books->n++];
    memset(account, 0, sizeof(*account));
    llmgw_usage_text(account->name, sizeof(account->name), name, strlen(name));
    *place = (uint32_t) books->n;

    return account;
}


int
llmgw_books_record(void *data, const llmgw_usage_source_t *source,
    const llmgw_usage_t *usage)
{
    int                     order;
    llmgw_books_t          *books = data;
    llmgw_books_account_t  *account;

    order = strcmp(source->birth, books->birth);

    if (strcmp(source->gateway, books->gateway) != 0 || order < 0
        || (books->below[0] != '\0'
            && strcmp(source->birth, books->below) >= 0))
    {
        return 0;
    }

    account = books_account(books, usage->key);

    if (account == NULL) {
        return -1;
    }

    if (order == 0 && usage->n <= account->n) {
        return 0;
    }

    switch (llmgw_seen_add(books->seen, source, usage->n)) {
    case LLMGW_SEEN_NEW:
        llmgw_sums_use(&account->sums, usage->ended_ms,
                       usage->prompt + usage->completion);
        return 0;
    case LLMGW_SEEN_DOUBLE:
        return 0;
    default:
        return -1;
    }
}


const llmgw_books_account_t *
llmgw_books_at(const llmgw_books_t *books, size_t i)
{
    return i < books->n ? &books->accounts[i] : NULL;
}


const char *
llmgw_books_birth(const llmgw_books_t *books)
{
    return books->birth;
}


/* Reads a member of a line as a number.  -1: the line has no such number. */
static int
state_number(llmgw_json_t line, const char *name, uint64_t max,
    uint64_t *number)
{
    return llmgw_json_uint(llmgw_json_member(line, name), max, number);
}


/*
 * Copies the text of a member.  It must not be empty, nor longer than its
 * field.
 */
static int
state_text(llmgw_json_t line, const char *name, char *text, size_t size)
{
    char  copy[LLMGW_STATE_LINE_BYTES];

    llmgw_json_copy(llmgw_json_member(line, name), copy, sizeof(copy));

    if (copy[0] == '\0' || strlen(copy) >= size) {
        return -1;
    }

    strcpy(text, copy);

    return 0;
}


static const char *
state_read_head(llmgw_books_t *books, llmgw_json_t line)
{
    char      gateway[LLMGW_USAGE_GATEWAY_BYTES];
    uint64_t  version;

    if (state_number(line, "llmgw_usage_state", UINT32_MAX, &version) != 0
        || state_text(line, "birth", books->birth, sizeof(books->birth)) != 0)
    {
        return "it is no state of usage";
    }

    if (version != STATE_VERSION) {
        return "it is of another version";
    }

    llmgw_json_copy(llmgw_json_member(line, "gateway"), gateway,
                    sizeof(gateway));

    return strcmp(gateway, books->gateway) == 0 ? NULL
           : "it is another gateway's";
}


static const char *
state_read_account(llmgw_books_t *books, llmgw_json_t line)
{
    char                    name[LLMGW_KEY_NAME_BYTES];
    uint64_t                n, day, month, used[LLMGW_NPERIODS];
    llmgw_books_account_t  *account;

    if (state_text(line, "key", name, sizeof(name)) != 0
        || state_number(line, "n", LLMGW_USAGE_NUMBER_MAX, &n) != 0
        || state_number(line, "day", UINT32_MAX, &day) != 0
        || state_number(line, "day_tokens", LLMGW_USAGE_NUMBER_MAX,
                        &used[LLMGW_PERIOD_DAY]) != 0
        || state_number(line, "month", UINT32_MAX, &month) != 0
        || state_number(line, "month_tokens", LLMGW_USAGE_NUMBER_MAX,
                        &used[LLMGW_PERIOD_MONTH]) != 0)
    {
        return "a line is no account's";
    }

    account = books_account(books, name);

    if (account == NULL) {
        return "there is no memory for its accounts";
    }

    account->n = n;
    account->sums.number[LLMGW_PERIOD_DAY] = (uint32_t) day;
    account->sums.number[LLMGW_PERIOD_MONTH] = (uint32_t) month;
    memcpy(account->sums.used, used, sizeof(used));

    return NULL;
}


/*
 * Reads the next line.  1: more must follow; 0: it was the last; -1: an error.
 */
static int
state_read_line(llmgw_books_t *books, const char *text, size_t len,
    const char **why)
{
    uint64_t            n;
    llmgw_json_t        line;
    llmgw_json_error_t  error;

    if (llmgw_json_check_strict(text, len, &line, &error) != 0) {
        *why = "a line is no JSON";
        return -1;
    }

    if (books->lines > 0
        && state_number(line, "end", UINT64_MAX / 2, &n) == 0)
    {
        *why = n == books->n && n == books->lines - 1
               ? NULL : "its last line gives another number of accounts";
        return *why == NULL ? 0 : -1;
    }

    *why = books->lines++ == 0 ? state_read_head(books, line)
                               : state_read_account(books, line);

    return *why == NULL ? 1 : -1;
}


static void
state_drop(llmgw_books_t *books)
{
    free(books->accounts);
    free(books->index);

    books->accounts = NULL;
    books->index = NULL;
    books->n = books->size = 0;
    books->lines = 0;
    books->birth[0] = '\0';
}


int
llmgw_books_state(llmgw_books_t *books, const char *text, size_t len,
    size_t *at, uint32_t lines, const char **why)
{
    int          rc;
    const char  *line, *newline;

    for (rc = 1; rc == 1 && lines > 0; lines--) {
        line = text + *at;
        newline = memchr(line, '\n', len - *at);

        if (newline == NULL) {
            *why = *at == 0 ? "it is no state of usage" : "it is cut off";
            rc = -1;
            break;
        }

        rc = state_read_line(books, line, (size_t) (newline - line), why);
        *at = (size_t) (newline + 1 - text);
    }

    if (rc == 0 && *at < len) {
        *why = "there is more after its last line";
        rc = -1;
    }

    if (rc == -1) {
        state_drop(books);
    }

    return rc;
}


size_t
llmgw_state_head(char line[LLMGW_STATE_LINE_BYTES],
    const llmgw_usage_source_t *source)
{
    char  *p = line;

    p += sprintf(p, "{\"llmgw_usage_state\":%d,\"gateway\":\"",
                 STATE_VERSION);
    p = usage_escape(p, source->gateway, sizeof(source->gateway));
    p += sprintf(p, "\",\"birth\":\"%s\"}\n", source->birth);

    return (size_t) (p - line);
}


size_t
llmgw_state_account(char line[LLMGW_STATE_LINE_BYTES], const char *name,
    const llmgw_sums_t *sums, uint64_t n)
{
    char  *p = line;

    p = llmgw_json_literal(p, "{\"key\":\"");
    p = usage_escape(p, name, LLMGW_KEY_NAME_BYTES);
    p += sprintf(p, "\",\"n\":%llu,\"day\":%u,\"day_tokens\":%llu,"
                 "\"month\":%u,\"month_tokens\":%llu}\n",
                 (unsigned long long) n, sums->number[LLMGW_PERIOD_DAY],
                 (unsigned long long) sums->used[LLMGW_PERIOD_DAY],
                 sums->number[LLMGW_PERIOD_MONTH],
                 (unsigned long long) sums->used[LLMGW_PERIOD_MONTH]);

    return (size_t) (p - line);
}


size_t
llmgw_state_end(char line[LLMGW_STATE_LINE_BYTES], uint64_t accounts)
{
    return (size_t) sprintf(line, "{\"end\":%llu}\n",
                            (unsigned long long) accounts);
}
