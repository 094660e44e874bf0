
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "proto/utf8.h"
#include "replica/engine/dialect/value.h"


#define BUF_FIRST_BYTES  64


void
buf_add(buf_t *buf, const void *data, size_t len)
{
    char    *grown;
    size_t   size;

    if (buf->failed || len == 0) {
        return;
    }

    if (len > buf->size - buf->len) {
        size = buf->size == 0 ? BUF_FIRST_BYTES : buf->size;

        while (size - buf->len < len) {
            size *= 2;
        }

        grown = realloc(buf->data, size);

        if (grown == NULL) {
            buf->failed = 1;
            return;
        }

        buf->data = grown;
        buf->size = size;
    }

    memcpy(buf->data + buf->len, data, len);
    buf->len += len;
}


void
buf_text(buf_t *buf, const char *text)
{
    buf_add(buf, text, strlen(text));
}


void
buf_value(buf_t *buf, value_t value)
{
    buf_add(buf, value.p, (size_t) (value.end - value.p));
}


void
buf_number(buf_t *buf, int64_t number)
{
    char  text[24];
    int   len;

    len = snprintf(text, sizeof(text), "%" PRId64, number);
    buf_add(buf, text, (size_t) len);
}


static void
buf_escape(buf_t *buf, unsigned char c)
{
    char  text[8];

    if (c == '"' || c == '\\') {
        text[0] = '\\';
        text[1] = (char) c;
        buf_add(buf, text, 2);

    } else {
        snprintf(text, sizeof(text), "\\u%04x", c);
        buf_add(buf, text, 6);
    }
}


void
buf_string(buf_t *buf, const void *text, size_t len)
{
    const unsigned char  *p, *end, *plain;

    if (len == 0) {
        buf_text(buf, "\"\"");
        return;
    }

    if (!llmgw_utf8_is_valid(text, len)) {
        buf->failed = 1;
        return;
    }

    end = (const unsigned char *) text + len;
    buf_add(buf, "\"", 1);

    for (plain = p = text; p < end; p++) {
        if (*p >= 0x20 && *p != '"' && *p != '\\') {
            continue;
        }

        buf_add(buf, plain, (size_t) (p - plain));
        buf_escape(buf, *p);
        plain = p + 1;
    }

    buf_add(buf, plain, (size_t) (p - plain));
    buf_add(buf, "\"", 1);
}


void
buf_free(buf_t *buf)
{
    free(buf->data);
    memset(buf, 0, sizeof(buf_t));
}
