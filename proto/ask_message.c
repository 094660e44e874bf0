
#include <string.h>

#include "proto/ask_message.h"


#define OPENAI_TAG    0x32      /* field 6 of GenerateRequest: bytes follow */
#define BODY_TAG      0x12      /* field 2 of OpenaiRequest */

#define PREFIX_BYTES  5         /* a tag, and a length of four bytes */


void
llmgw_ask_message_init(llmgw_ask_message_t *m,
    const Llmgateway__GenerateRequest *request)
{
    memset(m, 0, sizeof(*m));
    m->request = *request;
    m->request.openai = NULL;
    m->bytes = llmgateway__generate_request__get_packed_size(&m->request);

    if (request->openai == NULL) {
        return;
    }

    m->openai = *request->openai;
    m->body_bytes = m->openai.body.len;
    m->openai.body.len = 0;
    m->openai_bytes = llmgateway__openai_request__get_packed_size(&m->openai);
    m->bytes += PREFIX_BYTES + m->openai_bytes + PREFIX_BYTES;
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
llmgw_ask_message_write(const llmgw_ask_message_t *m, uint8_t *p)
{
    p += llmgateway__generate_request__pack(&m->request, p);

    if (m->openai.base.descriptor == NULL) {
        return;
    }

    p = write_prefix(p, OPENAI_TAG,
                     m->openai_bytes + PREFIX_BYTES + m->body_bytes);
    p += llmgateway__openai_request__pack(&m->openai, p);
    (void) write_prefix(p, BODY_TAG, m->body_bytes);
}
