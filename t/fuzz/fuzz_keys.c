
/*
 * Bytes as a key file: the result is the same if it is read line by line or in
 * one step, and everything that is returned lies within the file.
 */

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "proto/keys/keys.h"


int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);


static void
check_text(const llmgw_keys_t *keys, llmgw_key_text_t text, size_t len)
{
    if (text.text != NULL) {
        assert(text.text >= keys->text);
        assert(text.text + text.len <= keys->text + len);
        assert(memchr(text.text, '\n', text.len) == NULL);
        assert(memchr(text.text, '\0', text.len) == NULL);
    }
}


static void
check_keys(const llmgw_keys_t *keys, size_t len)
{
    uint32_t                    i, nkeys;
    const llmgw_key_account_t  *account;

    for (i = nkeys = 0; i < keys->naccounts; i++) {
        account = &keys->accounts[i];
        nkeys += account->nkeys;
        check_text(keys, account->name, len);
        check_text(keys, account->models, len);
        check_text(keys, account->slo_class, len);
        check_text(keys, account->tenant, len);
        assert(llmgw_keys_account(keys, account->name.text, account->name.len)
               == account);
        assert(account->limits.rpm <= LLMGW_LIMIT_MAX);
        assert(account->limits.tpm <= LLMGW_LIMIT_MAX);
        assert(account->limits.budget <= LLMGW_LIMIT_MAX);
        assert(account->limits.streams <= LLMGW_STREAMS_MAX);
        (void) llmgw_key_allows(account, (const char *) keys->text, len);
    }

    assert(keys->nkeys == nkeys + 1);
    assert(keys->nkeys <= len / 67 + 2);

    for (i = 1; i < keys->nkeys; i++) {
        assert(keys->keys[i].account < keys->naccounts);
        assert(keys->keys[i].line > 0 && keys->keys[i].line <= keys->line);
    }
}


static llmgw_keys_t *
read_keys(const uint8_t *data, size_t len, uint32_t lines, int goes_on,
    llmgw_keys_error_t *error)
{
    char             *text;
    llmgw_keys_t     *keys;
    llmgw_keys_rc_t   rc;

    text = malloc(len);
    memcpy(text, data, len);
    keys = llmgw_keys_create(text, len);

    do {
        rc = llmgw_keys_step(keys, lines, error);
        assert(rc != LLMGW_KEYS_ENOMEM);
        assert(rc != LLMGW_KEYS_ERROR
               || strlen(error->text) < LLMGW_KEY_ERROR_BYTES);
    } while (rc == LLMGW_KEYS_MORE || (rc == LLMGW_KEYS_ERROR && goes_on));

    if (rc == LLMGW_KEYS_DONE) {
        check_keys(keys, len);
        return keys;
    }

    llmgw_keys_destroy(keys);

    return NULL;
}


int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    llmgw_keys_t        *one, *many;
    const llmgw_key_t   *key;
    llmgw_keys_error_t   error = { 0 }, again = { 0 };

    if (len == 0 || len > LLMGW_KEY_FILE_MAX) {
        return 0;
    }

    one = read_keys(data, len, 1, 0, &error);
    many = read_keys(data, len, UINT32_MAX, 0, &again);

    assert((one == NULL) == (many == NULL));
    assert(one != NULL || (error.line == again.line
                           && strcmp(error.text, again.text) == 0));

    if (one != NULL) {
        assert(one->naccounts == many->naccounts);
        assert(llmgw_keys_find(one, data, len, 0, &key)
               == llmgw_keys_find(many, data, len, 0, &key));
    }

    llmgw_keys_destroy(one);
    llmgw_keys_destroy(many);
    llmgw_keys_destroy(read_keys(data, len, 3, 1, &error));

    return 0;
}
