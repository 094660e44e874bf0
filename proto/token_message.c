
#include "proto/token_message.h"


#define TEXT_TAG         0x0a       /* field 1: bytes, with a length */
#define FINAL_TAG        0x10       /* field 2: a number */

#define LEN_BYTES_MAX    4          /* 256 MiB: more than any message has */


static const uint8_t  final_message[] = { FINAL_TAG, 1 };

const llmgw_token_t  llmgw_token_final = {
    final_message, sizeof(final_message), final_message, 0, 1, 0, NULL
};


/* NULL: not in its shortest form, too large, or cut off. */
static const uint8_t *
token_len(const uint8_t *p, const uint8_t *end, size_t *len)
{
    unsigned  i;

    *len = 0;

    for (i = 0; i < LEN_BYTES_MAX && p < end; i++) {
        *len |= (size_t) (*p & 0x7f) << (7 * i);

        if (*p++ < 0x80) {
            return p[-1] == 0 ? NULL : p;
        }
    }

    return NULL;
}


int
llmgw_token_message_read(const uint8_t *message, size_t len,
    llmgw_token_t *token)
{
    const uint8_t  *p, *end;

    p = message;
    end = message + len;

    token->message = message;
    token->len = len;
    token->text = p;
    token->text_len = 0;
    token->is_final = 0;
    token->count = 1;
    token->more = NULL;

    if (len > 0 && *p == TEXT_TAG) {
        p = token_len(p + 1, end, &token->text_len);

        if (p == NULL || token->text_len > (size_t) (end - p)) {
            return 0;
        }

        token->text = p;
        p += token->text_len;
    }

    if (end - p == 2 && p[0] == FINAL_TAG && p[1] == 1) {
        token->is_final = 1;
        return 1;
    }

    return p == end;
}
