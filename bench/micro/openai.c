
/*
 * What the body of an OpenAI request costs: reading it with its key, and its
 * text; and a token as a string of JSON.
 */

#include <string.h>

#include "bench/micro/micro.h"
#include "core/openai/body_blocks.h"
#include "core/openai/affinity_key.h"
#include "core/openai/prompt_text.h"
#include "proto/json/write.h"


#define SMALL_BYTES  1000
#define LARGE_BYTES  400000
#define BLOCK_BYTES  64
#define BLOCKS       256

typedef struct {
    char   *json;
    size_t  len;
} body_t;


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


/* A chat whose user message is the filling, repeated. */
static body_t
make(const char *filling, size_t bytes)
{
    char    *p;
    body_t   body;

    body.json = micro_must(malloc(bytes + 100));
    p = body.json + sprintf(body.json,
                            "{\"model\":\"org/model\",\"messages\":["
                            "{\"role\":\"system\",\"content\":\"Be brief.\"},"
                            "{\"role\":\"user\",\"content\":\"");

    while (p + strlen(filling) + 40 < body.json + bytes) {
        p = stpcpy(p, filling);
    }

    p = stpcpy(p, "\"}],\"stream\":true,\"max_tokens\":100}");
    body.len = p - body.json;

    return body;
}


static void
read_one(const body_t *body, llmgw_openai_body_t *read)
{
    llmgw_openai_error_t  error;

    if (llmgw_openai_body_read(read, LLMGATEWAY__API__API_CHAT, body->json,
                               body->len, &memory, &error)
        != 0)
    {
        micro_must(NULL);
    }
}


static uint64_t
read_all(void *data, size_t n)
{
    uint64_t             sum;
    llmgw_openai_body_t  read;

    for (sum = 0; n > 0; n--) {
        read_one(data, &read);
        sum += llmgw_openai_affinity_key(&read, 1024, LLMGW_OPENAI_BY_PROMPT);
        llmgw_openai_body_done(&read);
    }

    return sum;
}


static uint64_t
blocks_all(void *data, size_t n)
{
    uint64_t             sum, blocks[BLOCKS];
    llmgw_openai_body_t  read;

    read_one(data, &read);

    for (sum = 0; n > 0; n--) {
        sum += llmgw_openai_blocks(&read, BLOCK_BYTES, blocks, BLOCKS);
        sum += blocks[0];
    }

    llmgw_openai_body_done(&read);

    return sum;
}


static uint64_t
text_all(void *data, size_t n)
{
    char                 *text;
    size_t                len;
    uint64_t              sum;
    llmgw_openai_body_t   read;

    read_one(data, &read);

    for (sum = 0; n > 0; n--) {
        text = micro_must(llmgw_openai_text(&read, &len));
        sum += len;
        free(text);
    }

    llmgw_openai_body_done(&read);

    return sum;
}


static uint64_t
write_all(void *data, size_t n)
{
    char      out[LLMGW_JSON_STRING_BYTES(16)];
    uint64_t  sum;

    for (sum = 0; n > 0; n--) {
        sum += llmgw_json_string(out, data, 7 + (n & 1)) - out;
    }

    return sum;
}


int
main(void)
{
    body_t  small, plain, escaped;

    small = make("word ", SMALL_BYTES);
    plain = make("word ", LARGE_BYTES);
    escaped = make("line\\n\\\"\\u00e9\\\" ", LARGE_BYTES);

    micro_measure("openai: read a body of 1 kB", read_all, &small, 20000);
    micro_measure("openai: read 400 kB", read_all, &plain, 50);
    micro_measure("openai: read 400 kB with escapes", read_all, &escaped, 50);
    micro_measure("openai: text of 400 kB with escapes", text_all, &escaped,
                  50);
    micro_measure("openai: blocks of 1 kB", blocks_all, &small, 20000);
    micro_measure("openai: blocks of 400 kB", blocks_all, &plain, 1000);
    micro_measure("openai: blocks of 400 kB with escapes", blocks_all,
                  &escaped, 1000);
    micro_measure("openai: escape a token", write_all, " nabolus", 1000000);

    free(small.json);
    free(plain.json);
    free(escaped.json);

    return 0;
}
