
/*
 * Bytes as a line of a usage log, and as a state: what was read can be
 * written, and reads the same again.
 */

#include <assert.h>
#include <string.h>

#include "proto/usage/books.h"


int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);


static void
try_record(const char *text, size_t len)
{
    char                   line[LLMGW_USAGE_LINE_BYTES];
    const char            *why;
    llmgw_usage_t          usage, again;
    llmgw_usage_source_t   source, from;

    if (llmgw_usage_read(text, len, &source, &usage, &why) != 0) {
        assert(why != NULL);
        return;
    }

    len = llmgw_usage_write(line, &source, &usage);
    assert(len <= sizeof(line) && line[len - 1] == '\n');
    assert(llmgw_usage_read(line, len - 1, &from, &again, &why) == 0);
    assert(memcmp(&usage, &again, sizeof(usage)) == 0);
    assert(memcmp(&from, &source, sizeof(from)) == 0);
}


static void
try_state(const char *text, size_t len)
{
    int                           rc;
    size_t                        i, at = 0;
    const char                   *why = NULL;
    llmgw_books_t                *books;
    const llmgw_books_account_t  *account;

    books = llmgw_books_create("gw1", NULL);

    do {
        rc = llmgw_books_state(books, text, len, &at, 2, &why);
        assert(at <= len);
    } while (rc == 1);

    if (rc == -1) {
        assert(why != NULL && llmgw_books_at(books, 0) == NULL);
    }

    for (i = 0; (account = llmgw_books_at(books, i)) != NULL; i++) {
        assert(strlen(account->name) > 0
               && strlen(account->name) < LLMGW_KEY_NAME_BYTES);
    }

    llmgw_books_destroy(books);
}


int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    try_record((const char *) data, len);
    try_state((const char *) data, len);

    return 0;
}
