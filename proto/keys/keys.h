
/*
 * The key file, and the keys that it lists.
 *
 *     # name  SHA-256 of the key, or -   what it may
 *     alice   9f86d081884c7d65...        models=qwen*,embed rpm=600 tpm=200000
 *     alice   2c26b46b68ffc68f...        until=2027-01-31
 *     ops     fcde2b2edba56bf4...        admin
 *     bob     -                          rpm=60
 *     *       -                          rpm=10 streams=2
 *
 * A key a line (the first one above is cut in two for this page): words between
 * blanks; a word that begins with '#' begins a comment.
 *
 *   name     of an account: 1 to 96 printable ASCII characters but " \ and #
 *   SHA-256  of the key, 64 hexadecimal digits.  '-': no key, but an identity
 *            that something else has checked; with the name '*', for all
 *            identities that have no line
 *   models=LIST     names between commas; '*' at the end of one: any that begin
 *                   so.  Without it, all models may be used
 *   rpm=N tpm=N streams=N budget=N/day budget=N/month      limits.h
 *   class=NAME tenant=NAME                                 win over headers
 *   expires=DATE until=DATE    valid before that time, or up to the end of that
 *                              day (UTC); until= is what a rotation writes
 *   admin                      may see the pages
 *
 * Lines of one name are one account.  expires=, until= and admin are of their
 * line's key; the others are of the account, in whichever of its lines they
 * stand.  Two lines with different values for one of them are an error, so the
 * order of lines does not matter.
 *
 * A set is read in steps of some lines, each below a millisecond, and never
 * changes afterwards.  It belongs to one process.  All texts in it point into
 * the file's text, which the set owns.
 */

#ifndef LLMGW_KEYS_H
#define LLMGW_KEYS_H

#include <stddef.h>
#include <stdint.h>

#include "proto/limits.h"


/* Room for some 100,000 keys; a larger file is a mistake. */
#define LLMGW_KEY_FILE_MAX     (16u << 20)

#define LLMGW_KEY_LINE_MAX     4096     /* without its newline */
#define LLMGW_KEY_WORD_MAX     64       /* for class= and tenant= */
#define LLMGW_KEY_MAX          512      /* bytes of a key that is presented */
#define LLMGW_KEY_HASH_BYTES   32
#define LLMGW_KEY_ERROR_BYTES  256

/* Lines that a step reads within half a millisecond. */
#define LLMGW_KEYS_STEP_LINES  256

#define LLMGW_KEY_FOREVER      UINT64_MAX

typedef struct {
    const char        *text;            /* NULL: not given */
    uint32_t           len;
} llmgw_key_text_t;

/*
 * Facts that a line may state about its account.  `lines` of an account has the
 * line that states each; 0: none does.
 */
typedef enum {
    LLMGW_KEY_MODELS = 0,
    LLMGW_KEY_RPM,
    LLMGW_KEY_TPM,
    LLMGW_KEY_STREAMS,
    LLMGW_KEY_BUDGET,
    LLMGW_KEY_CLASS,
    LLMGW_KEY_TENANT,
    LLMGW_NKEY_FACTS
} llmgw_key_fact_t;

typedef struct {
    llmgw_key_text_t   name;
    llmgw_key_text_t   models;          /* names between commas; NULL: all */
    llmgw_key_text_t   slo_class;
    llmgw_key_text_t   tenant;
    llmgw_limits_t     limits;          /* for all gateways, as in the file */
    uint64_t           identity_ms;     /* end of validity of the line with '-';
                                           0: the account has none */
    uint32_t           nkeys;
    uint32_t           next;            /* next account with the same hash of
                                           name */
    uint32_t           lines[LLMGW_NKEY_FACTS];
} llmgw_key_account_t;

typedef struct {
    uint8_t            hash[LLMGW_KEY_HASH_BYTES];
    uint64_t           until_ms;        /* ms since 1970, or
                                           LLMGW_KEY_FOREVER */
    uint32_t           account;
    uint32_t           line;
    uint32_t           next;            /* next key with the same first bytes */
    uint32_t           is_admin;
} llmgw_key_t;

/* A set of keys.  To users it is read only. */
typedef struct {
    llmgw_key_account_t  *accounts;     /* numbered from 0 */
    llmgw_key_t          *keys;         /* numbered from 1; number 0 matches
                                           nothing */
    uint32_t              naccounts;
    uint32_t              nkeys;        /* number 0 included */
    uint32_t              longest;      /* length of the longest list of keys */
    uint32_t              nbuckets;     /* a power of two */
    uint32_t             *key_buckets;
    uint32_t             *name_buckets; /* number of the account + 1; 0: none */
    uint32_t              accounts_size;
    uint32_t              line;         /* the line that was read last */
    const char           *at;           /* where the next one begins */
    const char           *end;
    char                 *text;
} llmgw_keys_t;

typedef enum {
    LLMGW_KEYS_MORE = 0,                /* call again */
    LLMGW_KEYS_DONE,
    LLMGW_KEYS_ERROR,                   /* *error is set */
    LLMGW_KEYS_ENOMEM
} llmgw_keys_rc_t;

typedef struct {
    uint32_t           line;            /* 0: the error is about the whole
                                           file */
    char               text[LLMGW_KEY_ERROR_BYTES];     /* what is wrong, and
                                           what would be right; never a hash or
                                           a key */
} llmgw_keys_error_t;

typedef enum {
    LLMGW_KEY_UNKNOWN = 0,
    LLMGW_KEY_EXPIRED,
    LLMGW_KEY_VALID
} llmgw_key_state_t;


/*
 * Begins to read a file's text.  The text is from malloc(), and belongs to the
 * set from now on.  NULL: no memory, and the text still belongs to the caller.
 */
llmgw_keys_t *llmgw_keys_create(char *text, size_t len);

/* Frees the set and its text; NULL is allowed. */
void llmgw_keys_destroy(llmgw_keys_t *keys);

/*
 * Reads that many lines.  A caller that needs a whole file stops at the first
 * error.  One that wants all errors calls again: the wrong line is skipped, and
 * the lines after it are checked as if it were not there.  A file without any
 * line of a key or an identity is an error; a further step after that, and
 * after DONE, returns DONE.
 */
llmgw_keys_rc_t llmgw_keys_step(llmgw_keys_t *keys, uint32_t lines,
    llmgw_keys_error_t *error);

/*
 * Finds a presented key.  *key is set to it; for UNKNOWN to number 0, which has
 * no account.
 *
 * The work depends on the key's length alone, and not on whether the key is
 * known, expired, unknown or no key at all: its SHA-256 is compared, without an
 * early end, with as many hashes as the longest list has; at the end of a
 * shorter list, number 0 is compared.  The memory that is read differs, as it
 * must.  A key of over LLMGW_KEY_MAX bytes is UNKNOWN after the work for that
 * many.
 */
llmgw_key_state_t llmgw_keys_find(const llmgw_keys_t *keys,
    const void *presented, size_t len, uint64_t unix_ms,
    const llmgw_key_t **key);

/* Writes the SHA-256 of a key in the form that the file has, with a NUL. */
void llmgw_key_hash(const void *key, size_t len,
    char hex[2 * LLMGW_KEY_HASH_BYTES + 1]);

/*
 * The account of an identity: that of the line with its name and '-', or else
 * that of the line with '*' and '-', whose limits hold for each name by itself.
 * NULL: neither line exists, or it has expired.  The work is not constant: an
 * identity is no secret.
 */
const llmgw_key_account_t *llmgw_keys_identity(const llmgw_keys_t *keys,
    const char *name, size_t len, uint64_t unix_ms);

/* The account of that name, whichever lines it has; NULL: there is none. */
const llmgw_key_account_t *llmgw_keys_account(const llmgw_keys_t *keys,
    const char *name, size_t len);

/* Whether an account may use a model, by the name that the client asks for. */
int llmgw_key_allows(const llmgw_key_account_t *account, const char *model,
    size_t len);

/* The same for a list of models as it stands in the file. */
int llmgw_key_list_has(llmgw_key_text_t list, const char *model, size_t len);

/*
 * Reads a date of the file, and sets *until_ms to the end of validity: a time
 * itself, or the end of a day.  0; -1: it is no date.
 */
int llmgw_key_date(const char *text, size_t len, uint64_t *unix_ms);

/* The name of a fact: "rpm" ... */
const char *llmgw_key_fact_name(llmgw_key_fact_t fact);

#endif /* LLMGW_KEYS_H */
