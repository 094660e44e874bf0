
/* A line of the key file.  keys.h has the format. */

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "proto/keys/keys_inner.h"
#include "proto/date.h"


/* The number of bytes of an invalid word that an error shows. */
#define SHOWN  60

typedef struct {
    const char  *at;
    const char  *end;
} key_words_t;


int
key_line_fail(llmgw_keys_error_t *error, const char *format, ...)
{
    va_list  args;

    va_start(args, format);
    (void) vsnprintf(error->text, sizeof(error->text), format, args);
    va_end(args);

    return -1;
}


const char *
llmgw_key_fact_name(llmgw_key_fact_t fact)
{
    static const char *const  names[LLMGW_NKEY_FACTS] = {
        "models", "rpm", "tpm", "streams", "budget", "class", "tenant"
    };

    return names[fact];
}


static int
key_is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r';
}


/* Takes the next word.  0: there is none, or a comment begins. */
static int
key_next_word(key_words_t *words, llmgw_key_text_t *word)
{
    while (words->at < words->end && key_is_blank(*words->at)) {
        words->at++;
    }

    if (words->at == words->end || *words->at == '#') {
        return 0;
    }

    word->text = words->at;

    while (words->at < words->end && !key_is_blank(*words->at)) {
        words->at++;
    }

    word->len = (uint32_t) (words->at - word->text);

    return 1;
}


static int
key_is_printable(llmgw_key_text_t text)
{
    uint32_t  i;

    for (i = 0; i < text.len; i++) {
        if (text.text[i] <= ' ' || text.text[i] > '~' || text.text[i] == '"'
            || text.text[i] == '\\' || text.text[i] == '#')
        {
            return 0;
        }
    }

    return 1;
}


/* An integer from 1 to max; 0: it is none. */
static uint64_t
key_integer(llmgw_key_text_t text, uint64_t max)
{
    uint32_t  i;
    uint64_t  n;

    for (i = 0, n = 0; i < text.len; i++) {
        if (text.text[i] < '0' || text.text[i] > '9') {
            return 0;
        }

        n = n * 10 + (uint64_t) (text.text[i] - '0');

        if (n > max) {
            return 0;
        }
    }

    return n;
}


static int
key_check_printable(llmgw_keys_error_t *error, llmgw_key_text_t word)
{
    return key_is_printable(word) ? 0
           : key_line_fail(error, "a character that is not printable ASCII, "
                           "or one of \" \\ #");
}


/* Sets the error about a value; the word is printable. */
static int
key_bad_value(llmgw_keys_error_t *error, llmgw_key_text_t word,
    const char *right)
{
    return key_line_fail(error, "\"%.*s\" is not valid: %s",
                         (int) (word.len > SHOWN ? SHOWN : word.len),
                         word.text, right);
}


static int
key_parse_hash(key_line_t *line, llmgw_key_text_t word,
    llmgw_keys_error_t *error)
{
    uint32_t     i, digit;
    const char  *at;
    static const char  digits[] = "0123456789abcdefABCDEF";

    if (word.len == 1 && word.text[0] == '-') {
        line->has_hash = 0;
        return 0;
    }

    line->has_hash = 1;

    for (i = 0; i < word.len && word.len == 2 * LLMGW_KEY_HASH_BYTES; i++) {
        at = memchr(digits, word.text[i], sizeof(digits) - 1);

        if (at == NULL) {
            break;
        }

        digit = (uint32_t) (at - digits);
        digit = digit > 15 ? digit - 6 : digit;
        line->hash[i / 2] = (uint8_t) (line->hash[i / 2] << 4 | digit);
    }

    if (i == 2 * LLMGW_KEY_HASH_BYTES) {
        return 0;
    }

    /* the word is not shown, since it may be a key */

    return key_line_fail(error, "the second word is not the SHA-256 of a key "
                         "(64 hexadecimal digits) nor \"-\" for an identity; "
                         "\"llmgwctl keys add\" writes such a line");
}


static int
key_parse_models(key_line_t *line, llmgw_key_text_t value)
{
    uint32_t  i, begin;

    for (i = begin = 0; i <= value.len; i++) {

        if (i < value.len && value.text[i] != ',') {
            if (value.text[i] == '*' && i + 1 < value.len
                && value.text[i + 1] != ',')
            {
                return -1;              /* a '*' in the middle */
            }

            continue;
        }

        if (i == begin) {
            return -1;                  /* an empty name */
        }

        begin = i + 1;
    }

    line->models = value;

    return 0;
}


static int
key_parse_budget(key_line_t *line, llmgw_key_text_t value)
{
    const char        *slash;
    llmgw_key_text_t   number, period;

    slash = memchr(value.text, '/', value.len);

    if (slash == NULL) {
        return -1;
    }

    number.text = value.text;
    number.len = (uint32_t) (slash - value.text);
    period.text = slash + 1;
    period.len = value.len - number.len - 1;

    line->limits.budget = key_integer(number, LLMGW_LIMIT_MAX);

    if (period.len == 3 && memcmp(period.text, "day", 3) == 0) {
        line->limits.period = LLMGW_PERIOD_DAY;

    } else if (period.len == 5 && memcmp(period.text, "month", 5) == 0) {
        line->limits.period = LLMGW_PERIOD_MONTH;

    } else {
        return -1;
    }

    return line->limits.budget > 0 ? 0 : -1;
}


int
llmgw_key_date(const char *text, size_t len, uint64_t *unix_ms)
{
    uint64_t  ms;

    if (llmgw_date_read(text, len, &ms) != 0) {
        return -1;
    }

    *unix_ms = ms + (len == strlen("2027-01-31") ? LLMGW_DAY_MS : 0);

    return 0;
}


/* Reads expires= or until=.  If both are given, the earlier time counts. */
static int
key_parse_date(key_line_t *line, llmgw_key_text_t value)
{
    uint64_t  ms;

    if (llmgw_key_date(value.text, value.len, &ms) != 0) {
        return -1;
    }

    if (ms < line->until_ms) {
        line->until_ms = ms;
    }

    return 0;
}


static int
key_parse_name(llmgw_key_text_t *name, llmgw_key_text_t value)
{
    if (value.len == 0 || value.len > LLMGW_KEY_WORD_MAX) {
        return -1;
    }

    *name = value;

    return 0;
}


static int
key_parse_fact(key_line_t *line, llmgw_key_fact_t fact,
    llmgw_key_text_t value)
{
    switch (fact) {
    case LLMGW_KEY_MODELS:
        return key_parse_models(line, value);
    case LLMGW_KEY_RPM:
        line->limits.rpm = key_integer(value, LLMGW_LIMIT_MAX);
        return line->limits.rpm > 0 ? 0 : -1;
    case LLMGW_KEY_TPM:
        line->limits.tpm = key_integer(value, LLMGW_LIMIT_MAX);
        return line->limits.tpm > 0 ? 0 : -1;
    case LLMGW_KEY_STREAMS:
        line->limits.streams = (uint32_t) key_integer(value,
                                                      LLMGW_STREAMS_MAX);
        return line->limits.streams > 0 ? 0 : -1;
    case LLMGW_KEY_BUDGET:
        return key_parse_budget(line, value);
    case LLMGW_KEY_CLASS:
        return key_parse_name(&line->slo_class, value);
    default:
        return key_parse_name(&line->tenant, value);
    }
}


static const char *const  key_right[LLMGW_NKEY_FACTS] = {
    "models=NAME,... with \"*\" at most at the end of each",
    "rpm=N, an integer from 1 to 1000000000000",
    "tpm=N, an integer from 1 to 1000000000000",
    "streams=N, an integer from 1 to 1000000",
    "budget=N/day or budget=N/month, N from 1 to 1000000000000",
    "class=NAME, of 1 to 64 characters",
    "tenant=NAME, of 1 to 64 characters"
};


/* 1: the word begins with that name and '='; *value is the rest. */
static int
key_value_of(llmgw_key_text_t word, const char *name,
    llmgw_key_text_t *value)
{
    size_t  len = strlen(name);

    if (word.len <= len || memcmp(word.text, name, len) != 0
        || word.text[len] != '=')
    {
        return 0;
    }

    value->text = word.text + len + 1;
    value->len = word.len - (uint32_t) len - 1;

    return 1;
}


static int
key_parse_word(key_line_t *line, llmgw_key_text_t word,
    llmgw_keys_error_t *error)
{
    llmgw_key_fact_t  fact;
    llmgw_key_text_t  value;

    if (key_check_printable(error, word) != 0) {
        return -1;
    }

    if (word.len == 5 && memcmp(word.text, "admin", 5) == 0) {
        line->is_admin = 1;
        return line->has_hash ? 0
               : key_line_fail(error, "an identity cannot be \"admin\"; only a"
                               " key can");
    }

    if (key_value_of(word, "expires", &value)
        || key_value_of(word, "until", &value))
    {
        return key_parse_date(line, value) == 0 ? 0
               : key_bad_value(error, word, "a date like 2027-06-30 or "
                               "2027-06-30T12:00Z");
    }

    for (fact = 0; fact < LLMGW_NKEY_FACTS; fact++) {

        if (!key_value_of(word, llmgw_key_fact_name(fact), &value)) {
            continue;
        }

        if (line->given & (1u << fact)) {
            return key_line_fail(error, "%s= is given twice",
                                 llmgw_key_fact_name(fact));
        }

        line->given |= 1u << fact;

        return key_parse_fact(line, fact, value) == 0 ? 0
               : key_bad_value(error, word, key_right[fact]);
    }

    return key_bad_value(error, word, "models=, rpm=, tpm=, streams=, budget=,"
                         " class=, tenant=, expires=, until= and admin are"
                         " known");
}


int
key_line_parse(key_line_t *line, const char *text, size_t len,
    llmgw_keys_error_t *error)
{
    key_words_t       words = { text, text + len };
    llmgw_key_text_t  word;

    memset(line, 0, sizeof(*line));
    line->until_ms = LLMGW_KEY_FOREVER;

    if (!key_next_word(&words, &line->name)) {
        return 0;
    }

    if (key_check_printable(error, line->name) != 0) {
        return -1;
    }

    if (line->name.len >= LLMGW_KEY_NAME_BYTES) {
        return key_bad_value(error, line->name, "a name has 1 to 96 "
                             "characters");
    }

    if (!key_next_word(&words, &word)) {
        return key_line_fail(error, "the SHA-256 of the key, or \"-\", is "
                             "missing after the name");
    }

    if (key_parse_hash(line, word, error) != 0) {
        return -1;
    }

    if (line->has_hash && line->name.len == 1 && line->name.text[0] == '*') {
        return key_line_fail(error, "\"*\" stands for identities, and has "
                             "\"-\" in place of a hash");
    }

    while (key_next_word(&words, &word)) {
        if (key_parse_word(line, word, error) != 0) {
            return -1;
        }
    }

    return 1;
}
