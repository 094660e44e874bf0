
/*
 * A client that sends any bytes as the body of an OpenAI request.  The first
 * byte chooses the API, or that the key is looked for before the body is
 * checked.
 *
 * A body that is accepted must be JSON for jansson too, and one that is
 * refused as no JSON must not be, except for what jansson cannot hold or we do
 * not want.  Members must be at their reported places; key and text must be
 * found within them.
 */

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "core/openai/body_blocks.h"
#include "core/openai/affinity_key.h"
#include "core/openai/prompt_text.h"
#include "proto/json/write.h"
#include "proto/utf8.h"


int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);


static void *
resize(void *data, void *p, size_t bytes)
{
    if (bytes > 0) {
        return realloc(p, bytes);
    }

    free(p);

    return NULL;
}


static const llmgw_openai_memory_t  memory = { resize, NULL };


/* The text as jansson reads it; NULL if it is not JSON, with the reason in
   *why. */
static json_t *
load(const uint8_t *text, size_t len, enum json_error_code *why)
{
    json_t        *json;
    json_error_t   error;

    json = json_loadb((const char *) text, len, JSON_ALLOW_NUL
                      | JSON_DECODE_INT_AS_REAL | JSON_DECODE_ANY, &error);
    *why = json ? json_error_unknown : json_error_code(&error);

    return json;
}


static void
check_members(const llmgw_openai_body_t *body)
{
    size_t                        i, quote, last;
    json_t                       *json;
    enum json_error_code          why;
    const llmgw_openai_member_t  *m;

    last = 1;

    for (i = 0; i < body->nmembers; i++) {
        m = &body->members[i];

        assert(last <= m->begin && m->begin < m->value && m->value < m->end);
        assert(body->bytes[m->begin] == '"');

        for (quote = m->value - 1; body->bytes[quote] != '"'; quote--) {
            assert(quote > m->begin);
        }

        json = load(body->bytes + m->begin, quote + 1 - m->begin, &why);
        assert(json && strcmp(json_string_value(json), m->key) == 0);
        json_decref(json);

        json = load(body->bytes + m->value, m->end - m->value, &why);
        assert(json || why == json_error_numeric_overflow
               || why == json_error_null_byte_in_key);
        json_decref(json);

        last = m->end;
    }

    assert(last < body->len);
    assert(body->n >= 1 && body->n <= LLMGW_OPENAI_MAX_CHOICES);
    assert(body->model[body->model_len] == '\0');
}


/* A key of each kind is the same each time it is computed, and can be computed
   of all bytes. */
static void
check_key(const llmgw_openai_body_t *body)
{
    llmgw_openai_by_t  by;

    for (by = LLMGW_OPENAI_BY_PROMPT; by <= LLMGW_OPENAI_BY_USER; by++) {
        assert(llmgw_openai_affinity_key(body, 64, by)
               == llmgw_openai_affinity_key(body, 64, by));
        (void) llmgw_openai_affinity_key(body, SIZE_MAX, by);
    }
}


/* The limit on the number of blocks does not change the first of them. */
static void
check_blocks(const llmgw_openai_body_t *body)
{
    uint32_t  n;
    uint64_t  few[4], many[64];

    n = llmgw_openai_blocks(body, 16, many, 64);
    assert(n <= 64);
    assert(llmgw_openai_blocks(body, 16, few, 4) == (n < 4 ? n : 4));
    assert(memcmp(few, many, (n < 4 ? n : 4) * sizeof(uint64_t)) == 0);
}


static void
check_text(const llmgw_openai_body_t *body, int is_judged)
{
    char                 *text, *json;
    size_t                len;
    json_t               *back;
    enum json_error_code  why;

    text = llmgw_openai_text(body, &len);

    if (text == NULL) {
        return;
    }

    if (is_judged) {
        assert(llmgw_utf8_is_valid(text, len));

        json = malloc(LLMGW_JSON_STRING_BYTES(len));
        assert(json != NULL);
        assert(llmgw_json_string(json, text, len)
               == json + llmgw_json_string_bytes(text, len));

        back = load((uint8_t *) json, llmgw_json_string_bytes(text, len),
                    &why);
        assert(json_string_length(back) == len);
        assert(memcmp(json_string_value(back), text, len) == 0);

        json_decref(back);
        free(json);
    }

    free(text);
}


static void
check_refused(const llmgw_openai_body_t *body,
    const llmgw_openai_error_t *error, const json_t *json)
{
    assert(error->status == 400 && error->message[0] != '\0');
    assert(body->members == NULL);

    /* jansson skips a NUL after a number */

    if (error->code && strcmp(error->code, "invalid_json") == 0) {
        assert(json == NULL || strstr(error->message, "nested")
               || memchr(body->bytes, '\0', body->len));
    }
}


int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    int                    is_judged;
    json_t                *json;
    uint8_t               *bytes;
    Llmgateway__Api        api;
    enum json_error_code   why;
    llmgw_openai_body_t    body;
    llmgw_openai_error_t   error;

    if (len < 1) {
        return 0;
    }

    api = (Llmgateway__Api) (data[0] % 6);
    is_judged = api != 5;
    api = is_judged ? api : LLMGW_OPENAI_ANY_API;

    len--;
    bytes = malloc(len + (len == 0));       /* so that its end is guarded */
    assert(bytes != NULL);
    memcpy(bytes, data + 1, len);

    json = load(bytes, len, &why);

    if (llmgw_openai_body_read(&body, api, bytes, len, &memory, &error) != 0) {
        check_refused(&body, &error, json);

    } else {

        if (is_judged) {
            assert(json || why == json_error_numeric_overflow
                   || why == json_error_null_byte_in_key);
            check_members(&body);
        }

        check_key(&body);
        check_blocks(&body);
        check_text(&body, is_judged);
        llmgw_openai_body_done(&body);
    }

    json_decref(json);
    free(bytes);

    return 0;
}
