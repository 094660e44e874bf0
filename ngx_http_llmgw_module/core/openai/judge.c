
#include <setjmp.h>
#include <string.h>

#include <yajl/yajl_parse.h>

#include "core/openai/judge.h"
#include "proto/json/check.h"
#include "proto/json/text.h"
#include "proto/utf8.h"


/*
 * What yajl allocates for every body: some 500 bytes, the text of an error
 * included, and the first 2 kB of a buffer.
 */
#define FIXED_BYTES  3072

/* memchr() costs as much as looking at so many bytes. */
#define NEAR_BYTES   16

/*
 * yajl does not look whether it got memory, so a lack of it leaves by longjmp.
 * What yajl has got by then is reachable from its handle.
 */
typedef struct {
    const llmgw_openai_memory_t  *memory;
    yajl_handle                   yajl;
    size_t                        depth;
    size_t                        used;     /* of fixed */
    jmp_buf                       no_memory;
    _Alignas(16) char             fixed[FIXED_BYTES];
} judge_t;


static int judge_space(const uint8_t *bytes, size_t len,
    llmgw_openai_error_t *error);
static int judge_syntax(const uint8_t *bytes, size_t len,
    const llmgw_openai_memory_t *memory, llmgw_openai_error_t *error);
static int judge_guarded(judge_t *judge, const uint8_t *bytes, size_t len,
    llmgw_openai_error_t *error);
static int judge_parse(judge_t *judge, const uint8_t *bytes, size_t len,
    llmgw_openai_error_t *error);
static int judge_opens(void *data);
static int judge_closes(void *data);
static void *judge_malloc(void *data, size_t bytes);
static void *judge_realloc(void *data, void *p, size_t bytes);
static void *judge_resize(judge_t *judge, void *p, size_t bytes);
static void judge_free(void *data, void *p);
static int judge_is_fixed(const judge_t *judge, const void *p);
static int judge_tells(judge_t *judge, size_t at, int is_cut,
    llmgw_openai_error_t *error);
static int judge_surrogates(const uint8_t *bytes, size_t len,
    llmgw_openai_error_t *error);
static const uint8_t *judge_backslash(const uint8_t *p, const uint8_t *end);
static int judge_says(llmgw_openai_error_t *error, const char *what,
    size_t at);


int
llmgw_judge_json(const uint8_t *bytes, size_t len,
    const llmgw_openai_memory_t *memory, llmgw_openai_error_t *error)
{
    size_t        valid;
    llmgw_json_t  value;

    if (llmgw_json_check(bytes, len, &value) == 0) {
        return judge_surrogates(bytes, len, error);
    }

    valid = llmgw_utf8_prefix(bytes, len);

    if (valid < len) {
        return judge_says(error, "invalid UTF-8", valid);
    }

    if (judge_space(bytes, len, error) != 0
        || judge_syntax(bytes, len, memory, error) != 0)
    {
        return -1;
    }

    return judge_surrogates(bytes, len, error);
}


/* yajl would take both for white space; in strings nothing allows them. */
static int
judge_space(const uint8_t *bytes, size_t len, llmgw_openai_error_t *error)
{
    size_t          i;
    const uint8_t  *found;

    for (i = 0; i < 2; i++) {
        found = memchr(bytes, "\v\f"[i], len);

        if (found) {
            return judge_says(error, "a control character", found - bytes);
        }
    }

    return 0;
}


static int
judge_syntax(const uint8_t *bytes, size_t len,
    const llmgw_openai_memory_t *memory, llmgw_openai_error_t *error)
{
    int      rc;
    judge_t  judge;

    judge.memory = memory;
    judge.yajl = NULL;
    judge.depth = 0;
    judge.used = 0;

    rc = judge_guarded(&judge, bytes, len, error);

    if (judge.yajl) {
        yajl_free(judge.yajl);
    }

    return rc;
}


static int
judge_guarded(judge_t *judge, const uint8_t *bytes, size_t len,
    llmgw_openai_error_t *error)
{
    if (setjmp(judge->no_memory) == 0) {
        return judge_parse(judge, bytes, len, error);
    }

    llmgw_openai_error_no_memory(error);

    return -1;
}


/*
 * yajl is asked for brackets alone: so it decodes no string, and needs no more
 * memory unless the body ends within a token.  A newline completes a number and
 * no string, whose lack of an end yajl would not notice behind the value.
 */
static int
judge_parse(judge_t *judge, const uint8_t *bytes, size_t len,
    llmgw_openai_error_t *error)
{
    yajl_status                  status;
    yajl_alloc_funcs             funcs = { judge_malloc, judge_realloc,
                                           judge_free, judge };
    static const unsigned char   newline[] = "\n";
    static const yajl_callbacks  callbacks = {
        .yajl_start_map = judge_opens,
        .yajl_end_map = judge_closes,
        .yajl_start_array = judge_opens,
        .yajl_end_array = judge_closes,
    };

    judge->yajl = yajl_alloc(&callbacks, &funcs, judge);
    yajl_config(judge->yajl, yajl_dont_validate_strings, 1);

    status = yajl_parse(judge->yajl, bytes, len);

    if (status == yajl_status_client_canceled) {
        llmgw_openai_error_set(error, 400, LLMGW_OPENAI_INVALID_REQUEST,
                               "invalid_json", NULL,
                               "The body is nested more than %d levels deep.",
                               LLMGW_JSON_MAX_DEPTH);
        return -1;
    }

    if (status != yajl_status_ok) {
        return judge_tells(judge, yajl_get_bytes_consumed(judge->yajl), 0,
                           error);
    }

    if (yajl_parse(judge->yajl, newline, 1) != yajl_status_ok
        || yajl_complete_parse(judge->yajl) != yajl_status_ok)
    {
        return judge_tells(judge, len, 1, error);
    }

    return 0;
}


static int
judge_opens(void *data)
{
    judge_t  *judge = data;

    return ++judge->depth <= LLMGW_JSON_MAX_DEPTH;
}


static int
judge_closes(void *data)
{
    judge_t  *judge = data;

    judge->depth--;

    return 1;
}


static void *
judge_malloc(void *data, size_t bytes)
{
    void     *p;
    judge_t  *judge = data;

    bytes = (bytes + 15) & ~(size_t) 15;

    if (bytes > FIXED_BYTES - judge->used) {
        return judge_resize(judge, NULL, bytes);
    }

    p = judge->fixed + judge->used;
    judge->used += bytes;

    return p;
}


static void *
judge_realloc(void *data, void *p, size_t bytes)
{
    void     *new;
    size_t    left;
    judge_t  *judge = data;

    if (p == NULL) {
        return judge_malloc(judge, bytes);
    }

    if (!judge_is_fixed(judge, p)) {
        return judge_resize(judge, p, bytes);
    }

    new = judge_resize(judge, NULL, bytes);
    left = judge->fixed + FIXED_BYTES - (char *) p;

    return memcpy(new, p, left < bytes ? left : bytes);
}


static void *
judge_resize(judge_t *judge, void *p, size_t bytes)
{
    p = judge->memory->resize(judge->memory->data, p, bytes);

    if (p == NULL) {
        longjmp(judge->no_memory, 1);
    }

    return p;
}


static void
judge_free(void *data, void *p)
{
    judge_t  *judge = data;

    if (p && !judge_is_fixed(judge, p)) {
        (void) judge->memory->resize(judge->memory->data, p, 0);
    }
}


static int
judge_is_fixed(const judge_t *judge, const void *p)
{
    return (const char *) p >= judge->fixed
           && (const char *) p < judge->fixed + FIXED_BYTES;
}


/*
 * Passes on yajl's words without what ends their line, but not those about our
 * newline in a token that is_cut ("lexical error: ...").
 */
static int
judge_tells(judge_t *judge, size_t at, int is_cut,
    llmgw_openai_error_t *error)
{
    size_t          len;
    unsigned char  *text;

    text = yajl_get_error(judge->yajl, 0, NULL, 0);
    len = strcspn((const char *) text, ".\n");
    text[len] = '\0';

    (void) judge_says(error, is_cut && text[0] == 'l' ? "premature EOF"
                             : (const char *) text, at);
    yajl_free_error(judge->yajl, text);

    return -1;
}


/* Half a surrogate pair is no character: engines answer it with 500. */
static int
judge_surrogates(const uint8_t *bytes, size_t len,
    llmgw_openai_error_t *error)
{
    size_t          n;
    uint32_t        character;
    const uint8_t  *p = bytes, *end = bytes + len;

    /* backslashes stand in strings only, and never last */

    while ((p = judge_backslash(p, end)) != NULL) {
        n = (p[1] == 'u') ? llmgw_json_unicode(p, end, &character) : 2;

        if (n == 0) {
            return judge_says(error, "half a surrogate pair", p - bytes);
        }

        p += n;
    }

    return 0;
}


/* NULL: there is none.  Where there is one there are often more soon. */
static const uint8_t *
judge_backslash(const uint8_t *p, const uint8_t *end)
{
    const uint8_t  *near;

    near = end - p > NEAR_BYTES ? p + NEAR_BYTES : end;

    for ( /* void */ ; p < near; p++) {
        if (*p == '\\') {
            return p;
        }
    }

    return memchr(p, '\\', end - p);
}


static int
judge_says(llmgw_openai_error_t *error, const char *what, size_t at)
{
    llmgw_openai_error_set(error, 400, LLMGW_OPENAI_INVALID_REQUEST,
                           "invalid_json", NULL,
                           "The body is not valid JSON: %s near byte %zu.",
                           what, at);
    return -1;
}
