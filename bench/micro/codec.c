
/*
 * What the messages of one token cost: protobuf-c's decoding of the replica's
 * answer, the encoding of the gateway's, and both; and
 * llmgw_token_message_read(), with which the gateway avoids them.  Each
 * message overwrites the memory of the one before.
 */

#include <string.h>

#include "llmgateway.pb-c.h"
#include "bench/micro/micro.h"
#include "proto/token_message.h"


#define TOKENS  1000000

typedef struct {
    size_t   used;
    char     bytes[1024];
} scratch_t;

typedef struct {
    ProtobufCAllocator  allocator;
    scratch_t           scratch;
    uint8_t             in[64];
    size_t              in_len;
    uint8_t             out[128];
} codec_t;


static void *
scratch_alloc(void *data, size_t size)
{
    void       *p;
    scratch_t  *s = data;

    size = (size + 15) & ~(size_t) 15;

    if (size > sizeof(s->bytes) - s->used) {
        return NULL;
    }

    p = s->bytes + s->used;
    s->used += size;

    return p;
}


static void
scratch_free(void *data, void *p)
{
}


static size_t
encode(codec_t *c, const uint8_t *token, size_t len)
{
    size_t                      size;
    Llmgateway__InferResponse   response;

    llmgateway__infer_response__init(&response);
    response.token.data = (uint8_t *) token;
    response.token.len = len;
    response.replica_id.data = (uint8_t *) "127.0.0.1:12345";
    response.replica_id.len = 15;
    size = llmgateway__infer_response__get_packed_size(&response);

    return size + llmgateway__infer_response__pack(&response, c->out);
}


static uint64_t
encode_all(void *data, size_t n)
{
    size_t    i;
    uint64_t  sum;

    for (sum = 0, i = 0; i < n; i++) {
        sum += encode(data, (const uint8_t *) " nabolus", 8 - (i & 1));
    }

    return sum;
}


static uint64_t
decode_all(void *data, size_t n)
{
    size_t                         i;
    codec_t                       *c = data;
    uint64_t                       sum;
    Llmgateway__GenerateResponse  *response;

    for (sum = 0, i = 0; i < n; i++) {
        c->scratch.used = 0;
        response = micro_must(llmgateway__generate_response__unpack(
                                  &c->allocator, c->in_len, c->in));
        sum += response->token.len;
    }

    return sum;
}


static uint64_t
translate_all(void *data, size_t n)
{
    size_t                         i;
    codec_t                       *c = data;
    uint64_t                       sum;
    Llmgateway__GenerateResponse  *response;

    for (sum = 0, i = 0; i < n; i++) {
        c->scratch.used = 0;
        response = micro_must(llmgateway__generate_response__unpack(
                                  &c->allocator, c->in_len, c->in));
        sum += encode(c, response->token.data, response->token.len);
    }

    return sum;
}


static uint64_t
look_all(void *data, size_t n)
{
    size_t         i;
    codec_t       *c = data;
    uint64_t       sum;
    llmgw_token_t  token;

    for (sum = 0, i = 0; i < n; i++) {
        sum += (uint64_t) llmgw_token_message_read(c->in, c->in_len, &token);
        sum += (uint64_t) token.is_final;
    }

    return sum;
}


int
main(void)
{
    codec_t                       c;
    Llmgateway__GenerateResponse  response;

    memset(&c, 0, sizeof(c));
    c.allocator.alloc = scratch_alloc;
    c.allocator.free = scratch_free;
    c.allocator.allocator_data = &c.scratch;

    llmgateway__generate_response__init(&response);
    response.token.data = (uint8_t *) " nabolus";
    response.token.len = 8;
    c.in_len = llmgateway__generate_response__pack(&response, c.in);

    micro_measure("codec: decode a GenerateResponse", decode_all, &c, TOKENS);
    micro_measure("codec: encode an InferResponse", encode_all, &c, TOKENS);
    micro_measure("codec: translate a token", translate_all, &c, TOKENS);
    micro_measure("codec: look at a token's bytes", look_all, &c, TOKENS);

    return 0;
}
