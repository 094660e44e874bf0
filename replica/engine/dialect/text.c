
/*
 * Strings of JSON as text.
 */

#include <string.h>

#include "replica/engine/dialect/value.h"


static unsigned
hex4(const char *p)
{
    unsigned  n;
    int       i;

    for (n = 0, i = 0; i < 4; i++, p++) {
        n = n * 16 + (unsigned) (*p <= '9' ? *p - '0' : (*p | 32) - 'a' + 10);
    }

    return n;
}


static void
buf_utf8(buf_t *buf, unsigned c)
{
    char                        b[4];
    size_t                      len, i;

    static const unsigned char  first[] = { 0, 0, 0xc0, 0xe0, 0xf0 };

    len = c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;

    for (i = len - 1; i > 0; i--, c >>= 6) {
        b[i] = (char) (0x80 | (c & 0x3f));
    }

    b[0] = (char) (first[len] | c);
    buf_add(buf, b, len);
}


/* At the u of an escape; returns behind it. */
static const char *
string_unicode(const char *p, const char *end, buf_t *buf)
{
    unsigned  c, low;

    c = hex4(p + 1);
    p += 5;

    if (c >= 0xd800 && c < 0xdc00 && end - p >= 6 && p[0] == '\\'
        && p[1] == 'u')
    {
        low = hex4(p + 2);

        if (low >= 0xdc00 && low < 0xe000) {
            c = 0x10000 + ((c - 0xd800) << 10) + (low - 0xdc00);
            p += 6;
        }
    }

    buf_utf8(buf, c >= 0xd800 && c < 0xe000 ? 0xfffd : c);

    return p;
}


void
value_string(value_t value, buf_t *buf)
{
    const char         *p, *end, *plain;

    static const char   from[] = "bfnrt";
    static const char   to[] = "\b\f\n\r\t";

    if (!value_is_string(value)) {
        return;
    }

    end = value.end - 1;

    for (p = value.p + 1; p < end; ) {
        plain = memchr(p, '\\', (size_t) (end - p));

        if (plain == NULL) {
            buf_add(buf, p, (size_t) (end - p));
            return;
        }

        buf_add(buf, p, (size_t) (plain - p));
        p = plain + 1;

        if (*p == 'u') {
            p = string_unicode(p, end, buf);
            continue;
        }

        plain = strchr(from, *p);
        buf_add(buf, plain == NULL ? p : to + (plain - from), 1);
        p++;
    }
}


void
value_copy(value_t value, char *to, size_t size)
{
    buf_t   buf = { NULL, 0, 0, 0 };
    size_t  len;

    value_string(value, &buf);
    len = buf.failed ? 0 : buf.len;

    if (len >= size) {
        for (len = size - 1; len > 0 && (buf.data[len] & 0xc0) == 0x80; ) {
            len--;
        }
    }

    if (len > 0) {
        memcpy(to, buf.data, len);
    }

    to[len] = '\0';
    buf_free(&buf);
}
