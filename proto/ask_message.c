
#include "proto/ask_message.h"


#define OPENAI_TAG    0x32      /* field 6 of GenerateRequest: bytes follow */
#define BODY_TAG      0x12      /* field 2 of OpenaiRequest */

#define PREFIX_BYTES  5         /* a tag, and a length of four bytes */


/* Both without what is written behind them. */
static void
take_apart(const Llmgateway__GenerateRequest *whole,
    Llmgateway__GenerateRequest *request, Llmgateway__OpenaiRequest *openai)
{
    *request = *whole;
    request->openai = NULL;

    llmgateway__openai_request__init(openai);

    if (whole->openai != NULL) {
        *openai = *whole->openai;
        openai->body.len = 0;
        openai->body.data = NULL;
    }
}


size_t
llmgw_ask_message_size(const Llmgateway__GenerateRequest *whole)
{
    size_t                       size;
    Llmgateway__OpenaiRequest    openai;
    Llmgateway__GenerateRequest  request;

    take_apart(whole, &request, &openai);
    size = llmgateway__generate_request__get_packed_size(&request);

    if (whole->openai != NULL) {
        size += 2 * PREFIX_BYTES
                + llmgateway__openai_request__get_packed_size(&openai);
    }

    return size;
}


/* The length has four bytes whatever it is. */
static uint8_t *
write_prefix(uint8_t *p, uint8_t tag, size_t len)
{
    p[0] = tag;
    p[1] = (len & 0x7f) | 0x80;
    p[2] = (len >> 7 & 0x7f) | 0x80;
    p[3] = (len >> 14 & 0x7f) | 0x80;
    p[4] = len >> 21 & 0x7f;

    return p + PREFIX_BYTES;
}


void
llmgw_ask_message_write(const Llmgateway__GenerateRequest *whole, uint8_t *p)
{
    size_t                       size, body_len;
    Llmgateway__OpenaiRequest    openai;
    Llmgateway__GenerateRequest  request;

    take_apart(whole, &request, &openai);
    p += llmgateway__generate_request__pack(&request, p);

    if (whole->openai == NULL) {
        return;
    }

    body_len = whole->openai->body.len;
    size = llmgateway__openai_request__get_packed_size(&openai);

    p = write_prefix(p, OPENAI_TAG, size + PREFIX_BYTES + body_len);
    p += llmgateway__openai_request__pack(&openai, p);
    (void) write_prefix(p, BODY_TAG, body_len);
}
