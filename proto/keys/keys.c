
/* The set of keys: read in steps, and looked up.  keys.h has the rules. */

#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "proto/keys/keys_inner.h"


/* A line with a hash is no shorter: "a ", its digits, a newline. */
#define KEY_LINE_LEAST  67

static int keys_add(llmgw_keys_t *keys, const key_line_t *line,
    llmgw_keys_error_t *error);
static int keys_add_key(llmgw_keys_t *keys, uint32_t account,
    const key_line_t *line, llmgw_keys_error_t *error);


llmgw_keys_t *
llmgw_keys_create(char *text, size_t len)
{
    size_t         n;
    llmgw_keys_t  *keys;

    keys = calloc(1, sizeof(*keys));

    if (keys == NULL) {
        return NULL;
    }

    n = len / KEY_LINE_LEAST + 2;

    for (keys->nbuckets = 16; keys->nbuckets < n; keys->nbuckets *= 2) {
        /* void */
    }

    keys->keys = calloc(n, sizeof(llmgw_key_t));
    keys->key_buckets = calloc(keys->nbuckets, sizeof(uint32_t));
    keys->name_buckets = calloc(keys->nbuckets, sizeof(uint32_t));

    if (keys->keys == NULL || keys->key_buckets == NULL
        || keys->name_buckets == NULL)
    {
        llmgw_keys_destroy(keys);
        return NULL;
    }

    keys->nkeys = 1;
    keys->longest = 1;
    keys->text = text;
    keys->at = text;
    keys->end = text + len;

    return keys;
}


void
llmgw_keys_destroy(llmgw_keys_t *keys)
{
    if (keys == NULL) {
        return;
    }

    free(keys->accounts);
    free(keys->keys);
    free(keys->key_buckets);
    free(keys->name_buckets);
    free(keys->text);
    free(keys);
}


/* Takes the next line off the text; 0: it is too long. */
static int
keys_next_line(llmgw_keys_t *keys, llmgw_key_text_t *line)
{
    size_t       left;
    const char  *newline;

    line->text = keys->at;
    left = (size_t) (keys->end - keys->at);
    newline = memchr(keys->at, '\n', left > LLMGW_KEY_LINE_MAX + 1
                                     ? LLMGW_KEY_LINE_MAX + 1 : left);
    keys->line++;

    if (newline == NULL && left > LLMGW_KEY_LINE_MAX) {
        keys->at += LLMGW_KEY_LINE_MAX;
        return 0;
    }

    line->len = (uint32_t) (newline ? (size_t) (newline - keys->at) : left);
    keys->at += line->len + (newline != NULL);

    return 1;
}


/* Skips the rest of a line that is too long. */
static int
keys_skip(llmgw_keys_t *keys, llmgw_keys_error_t *error)
{
    const char  *newline;

    newline = memchr(keys->at, '\n', (size_t) (keys->end - keys->at));
    keys->at = newline ? newline + 1 : keys->end;

    return key_line_fail(error, "the line is longer than %u characters",
                         LLMGW_KEY_LINE_MAX);
}


static llmgw_keys_rc_t
keys_end(llmgw_keys_t *keys, llmgw_keys_error_t *error)
{
    int  is_empty;

    is_empty = keys->naccounts == 0 && keys->end != NULL;
    keys->end = keys->at = NULL;

    if (!is_empty) {
        return LLMGW_KEYS_DONE;
    }

    error->line = 0;
    (void) key_line_fail(error, "there is no key in it; \"llmgwctl keys add\" "
                         "makes one");

    return LLMGW_KEYS_ERROR;
}


llmgw_keys_rc_t
llmgw_keys_step(llmgw_keys_t *keys, uint32_t lines, llmgw_keys_error_t *error)
{
    int               rc;
    key_line_t        line;
    llmgw_key_text_t  text;

    for ( /* void */ ; lines > 0; lines--) {

        if (keys->at == keys->end) {
            return keys_end(keys, error);
        }

        if (!keys_next_line(keys, &text)) {
            error->line = keys->line;
            (void) keys_skip(keys, error);
            return LLMGW_KEYS_ERROR;
        }

        rc = key_line_parse(&line, text.text, text.len, error);

        if (rc == 1) {
            rc = keys_add(keys, &line, error);
        }

        if (rc == LLMGW_KEYS_ENOMEM) {
            return LLMGW_KEYS_ENOMEM;
        }

        if (rc < 0) {
            error->line = keys->line;
            return LLMGW_KEYS_ERROR;
        }
    }

    return LLMGW_KEYS_MORE;
}


static int
key_text_is(llmgw_key_text_t text, const char *other, size_t len)
{
    return text.len == len && memcmp(text.text, other, len) == 0;
}


static uint32_t *
keys_name_bucket(const llmgw_keys_t *keys, const char *name, size_t len)
{
    return &keys->name_buckets[XXH3_64bits(name, len) & (keys->nbuckets - 1)];
}


/* The number of the account with that name, from 1; 0: there is none. */
static uint32_t
keys_find_name(const llmgw_keys_t *keys, const char *name, size_t len)
{
    uint32_t  i;

    for (i = *keys_name_bucket(keys, name, len); i > 0;
         i = keys->accounts[i - 1].next)
    {
        if (key_text_is(keys->accounts[i - 1].name, name, len)) {
            break;
        }
    }

    return i;
}


/*
 * The number of the account with that name, which is added if need be; 0: no
 * memory.
 */
static uint32_t
keys_account(llmgw_keys_t *keys, llmgw_key_text_t name)
{
    uint32_t              i, size, *bucket;
    llmgw_key_account_t  *more;

    i = keys_find_name(keys, name.text, name.len);

    if (i > 0) {
        return i;
    }

    if (keys->naccounts == keys->accounts_size) {
        size = keys->accounts_size ? 2 * keys->accounts_size : 64;
        more = realloc(keys->accounts, size * sizeof(llmgw_key_account_t));

        if (more == NULL) {
            return 0;
        }

        keys->accounts = more;
        keys->accounts_size = size;
    }

    bucket = keys_name_bucket(keys, name.text, name.len);
    keys->accounts[keys->naccounts] = (llmgw_key_account_t) {
        .name = name, .next = *bucket
    };
    *bucket = ++keys->naccounts;

    return keys->naccounts;
}


static int
key_same_text(llmgw_key_text_t a, llmgw_key_text_t b)
{
    return key_text_is(a, b.text, b.len);
}


static int
key_same_fact(const llmgw_key_account_t *account, const key_line_t *line,
    llmgw_key_fact_t fact)
{
    switch (fact) {
    case LLMGW_KEY_MODELS:
        return key_same_text(account->models, line->models);
    case LLMGW_KEY_RPM:
        return account->limits.rpm == line->limits.rpm;
    case LLMGW_KEY_TPM:
        return account->limits.tpm == line->limits.tpm;
    case LLMGW_KEY_STREAMS:
        return account->limits.streams == line->limits.streams;
    case LLMGW_KEY_BUDGET:
        return account->limits.budget == line->limits.budget
               && account->limits.period == line->limits.period;
    case LLMGW_KEY_CLASS:
        return key_same_text(account->slo_class, line->slo_class);
    default:
        return key_same_text(account->tenant, line->tenant);
    }
}


static void
key_set_fact(llmgw_key_account_t *account, const key_line_t *line,
    llmgw_key_fact_t fact)
{
    switch (fact) {
    case LLMGW_KEY_MODELS:
        account->models = line->models;
        break;
    case LLMGW_KEY_RPM:
        account->limits.rpm = line->limits.rpm;
        break;
    case LLMGW_KEY_TPM:
        account->limits.tpm = line->limits.tpm;
        break;
    case LLMGW_KEY_STREAMS:
        account->limits.streams = line->limits.streams;
        break;
    case LLMGW_KEY_BUDGET:
        account->limits.budget = line->limits.budget;
        account->limits.period = line->limits.period;
        break;
    case LLMGW_KEY_CLASS:
        account->slo_class = line->slo_class;
        break;
    default:
        account->tenant = line->tenant;
    }
}


/*
 * Adds what a line says.  0; -1: error->text says what is wrong, and what other
 * lines said remains; LLMGW_KEYS_ENOMEM.
 */
static int
keys_add(llmgw_keys_t *keys, const key_line_t *line,
    llmgw_keys_error_t *error)
{
    uint32_t              i;
    llmgw_key_fact_t      fact;
    llmgw_key_account_t  *account;

    i = keys_account(keys, line->name);

    if (i == 0) {
        return LLMGW_KEYS_ENOMEM;
    }

    account = &keys->accounts[i - 1];

    for (fact = 0; fact < LLMGW_NKEY_FACTS; fact++) {
        if ((line->given & (1u << fact)) && account->lines[fact] != 0
            && !key_same_fact(account, line, fact))
        {
            return key_line_fail(error, "%s= of \"%.*s\" differs from line %u;"
                                 " give it in one line of an account",
                                 llmgw_key_fact_name(fact),
                                 (int) line->name.len, line->name.text,
                                 account->lines[fact]);
        }
    }

    if (!line->has_hash && account->identity_ms != 0) {
        return key_line_fail(error, "a second line of \"%.*s\" with \"-\"",
                             (int) line->name.len, line->name.text);
    }

    if (line->has_hash && keys_add_key(keys, i - 1, line, error) != 0) {
        return -1;
    }

    if (!line->has_hash) {
        account->identity_ms = line->until_ms;
    }

    for (fact = 0; fact < LLMGW_NKEY_FACTS; fact++) {
        if (line->given & (1u << fact)) {
            key_set_fact(account, line, fact);
            account->lines[fact] = keys->line;
        }
    }

    return 0;
}


static uint32_t *
keys_bucket(const llmgw_keys_t *keys, const uint8_t *hash)
{
    uint32_t  word;

    memcpy(&word, hash, sizeof(word));

    return &keys->key_buckets[word & (keys->nbuckets - 1)];
}


static int
keys_add_key(llmgw_keys_t *keys, uint32_t account, const key_line_t *line,
    llmgw_keys_error_t *error)
{
    uint32_t      i, length, *bucket;
    llmgw_key_t  *key;

    bucket = keys_bucket(keys, line->hash);
    length = 1;

    for (i = *bucket; i > 0; i = keys->keys[i].next) {

        if (memcmp(keys->keys[i].hash, line->hash, LLMGW_KEY_HASH_BYTES) == 0)
        {
            return key_line_fail(error, "this key is in line %u already",
                                 keys->keys[i].line);
        }

        length++;
    }

    key = &keys->keys[keys->nkeys];
    memcpy(key->hash, line->hash, LLMGW_KEY_HASH_BYTES);
    key->until_ms = line->until_ms;
    key->is_admin = line->is_admin;
    key->account = account;
    key->line = keys->line;
    key->next = *bucket;
    *bucket = keys->nkeys++;

    keys->accounts[account].nkeys++;
    keys->longest = length > keys->longest ? length : keys->longest;

    return 0;
}


/*
 * 1: both hashes are equal.  Equal or not, the same instructions are executed.
 */
static uint32_t
key_is_hash(const uint8_t *hash, const uint8_t *other)
{
    uint32_t  i;
    uint64_t  a, b, differs;

    for (i = 0, differs = 0; i < LLMGW_KEY_HASH_BYTES; i += sizeof(a)) {
        memcpy(&a, hash + i, sizeof(a));
        memcpy(&b, other + i, sizeof(b));
        differs |= a ^ b;
    }

    /* a number that is not 0 has its highest bit set, or its negative has */

    return 1 ^ (uint32_t) ((differs | (0 - differs)) >> 63);
}


llmgw_key_state_t
llmgw_keys_find(const llmgw_keys_t *keys, const void *presented, size_t len,
    uint64_t unix_ms, const llmgw_key_t **key)
{
    uint8_t   hash[LLMGW_KEY_HASH_BYTES];
    uint32_t  i, left, found, is_it, is_valid;

    (void) crypto_hash_sha256(hash, presented, len < LLMGW_KEY_MAX
                                               ? len : LLMGW_KEY_MAX);
    found = 0;
    i = *keys_bucket(keys, hash);

    for (left = keys->longest; left > 0; left--) {
        is_it = key_is_hash(keys->keys[i].hash, hash);
        found |= i & (0 - is_it);
        i = keys->keys[i].next;
    }

    found &= 0 - (uint32_t) (len <= LLMGW_KEY_MAX);
    *key = &keys->keys[found];

    is_it = (found != 0);
    is_valid = is_it & (unix_ms < keys->keys[found].until_ms);

    return (llmgw_key_state_t) (is_it + is_valid);
}


void
llmgw_key_hash(const void *key, size_t len,
    char hex[2 * LLMGW_KEY_HASH_BYTES + 1])
{
    uint8_t  hash[LLMGW_KEY_HASH_BYTES];

    (void) crypto_hash_sha256(hash, key, len);
    (void) sodium_bin2hex(hex, 2 * LLMGW_KEY_HASH_BYTES + 1, hash,
                          sizeof(hash));
}


const llmgw_key_account_t *
llmgw_keys_account(const llmgw_keys_t *keys, const char *name, size_t len)
{
    uint32_t  i;

    i = keys_find_name(keys, name, len);

    return i > 0 ? &keys->accounts[i - 1] : NULL;
}


const llmgw_key_account_t *
llmgw_keys_identity(const llmgw_keys_t *keys, const char *name, size_t len,
    uint64_t unix_ms)
{
    const llmgw_key_account_t  *account;

    account = llmgw_keys_account(keys, name, len);

    if (account == NULL || account->identity_ms == 0) {
        account = llmgw_keys_account(keys, "*", 1);
    }

    return account != NULL && unix_ms < account->identity_ms ? account : NULL;
}


int
llmgw_key_list_has(llmgw_key_text_t list, const char *model, size_t len)
{
    size_t       n;
    const char  *at, *end, *comma;

    end = list.text + list.len;

    for (at = list.text; at < end; at += n + 1) {
        comma = memchr(at, ',', (size_t) (end - at));
        n = (size_t) ((comma ? comma : end) - at);

        if (n > 0 && at[n - 1] == '*') {
            if (len >= n - 1 && memcmp(at, model, n - 1) == 0) {
                return 1;
            }

        } else if (len == n && memcmp(at, model, n) == 0) {
            return 1;
        }
    }

    return 0;
}


int
llmgw_key_allows(const llmgw_key_account_t *account, const char *model,
    size_t len)
{
    return account->models.text == NULL
           || llmgw_key_list_has(account->models, model, len);
}
