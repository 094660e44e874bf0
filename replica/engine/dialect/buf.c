
#include <stdlib.h>
#include <string.h>

#include "proto/json/text.h"
#include "proto/json/write.h"
#include "proto/utf8.h"
#include "replica/engine/dialect/buf.h"


#define BUF_FIRST_BYTES  64


/* Room for len bytes; NULL: the buffer has failed. */
static inline char *
buf_reserve(buf_t *buf, size_t len)
{
    char    *grown;
    size_t   size;

    if (buf->failed) {
        return NULL;
    }

    if (len > buf->size - buf->len) {
        size = buf->size == 0 ? BUF_FIRST_BYTES : buf->size;

        while (size - buf->len < len) {
            size += size / 2;       /* each stream has two for an event */
        }

        grown = realloc(buf->data, size);

        if (grown == NULL) {
            buf->failed = 1;
            return NULL;
        }

        buf->data = grown;
        buf->size = size;
    }

    return buf->data + buf->len;
}


void
buf_add(buf_t *buf, const void *data, size_t len)
{
    char  *to;

    if (len > 0 && (to = buf_reserve(buf, len)) != NULL) {
        memcpy(to, data, len);
        buf->len += len;
    }
}


void
buf_text(buf_t *buf, const char *text)
{
    buf_add(buf, text, strlen(text));
}


void
buf_value(buf_t *buf, llmgw_json_t value)
{
    buf_add(buf, value.begin, llmgw_json_bytes(value));
}


void
buf_number(buf_t *buf, int64_t number)
{
    char  digits[LLMGW_JSON_NUMBER_BYTES];

    buf_add(buf, digits, (size_t) (llmgw_json_number(digits, number) - digits));
}


void
buf_string(buf_t *buf, const void *text, size_t len)
{
    char  *to;

    if (len == 0) {
        buf_text(buf, "\"\"");
        return;
    }

    if (!llmgw_utf8_is_valid(text, len)) {
        buf->failed = 1;
        return;
    }

    to = buf_reserve(buf, llmgw_json_string_bytes(text, len));

    if (to != NULL) {
        buf->len += (size_t) (llmgw_json_string(to, text, len) - to);
    }
}


void
buf_unescape(buf_t *buf, llmgw_json_t value)
{
    char           *to;
    size_t          room;
    const uint8_t  *from;

    if (value.kind != LLMGW_JSON_STRING) {
        return;
    }

    /* no text is longer than its string */

    room = llmgw_json_bytes(value) + LLMGW_JSON_TEXT_ROOM;
    to = buf_reserve(buf, room);
    from = NULL;

    if (to != NULL) {
        buf->len += llmgw_json_text(&value, &from, to, room);
    }
}


void
buf_free(buf_t *buf)
{
    free(buf->data);
    memset(buf, 0, sizeof(buf_t));
}
