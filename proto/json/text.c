
#include "proto/json/json_inner.h"
#include "proto/json/text.h"


#define PIECE_BYTES  64


static size_t text_escape(const uint8_t *p, const uint8_t *end,
    uint8_t out[4], size_t *written);
static size_t text_utf8(uint32_t character, uint8_t out[4]);


size_t
llmgw_json_text(const llmgw_json_t *string, const uint8_t **from,
    void *to, size_t room)
{
    size_t          n, len, written;
    uint8_t        *out = to;
    const uint8_t  *p, *end, *run;

    p = *from ? *from : string->begin + 1;
    end = string->end - 1;
    written = 0;

    while (p < end) {
        run = (size_t) (end - p) > room - written ? p + (room - written) : end;
        run = json_special(p, run);

        while (run < end && run > p && (*run & 0xc0) == 0x80) {
            run--;                          /* leave the whole character for
                                               later */
        }

        n = run - p;
        memcpy(out + written, p, n);
        written += n;
        p = run;

        if (p == end || room - written < LLMGW_JSON_TEXT_ROOM) {
            break;
        }

        if (*p == '\\') {
            len = text_escape(p, end, out + written, &n);
            written += n;
            p += len;

        } else if (n == 0) {
            out[written++] = *p++;          /* a byte that json_special() stops
                                               at */
        }
    }

    *from = p;

    return written;
}


/* Writes the escape's character; returns the escape's length. */
static size_t
text_escape(const uint8_t *p, const uint8_t *end, uint8_t out[4],
    size_t *written)
{
    size_t              n;
    uint32_t            character;
    const char         *found;
    static const char   letters[] = "bfnrt", controls[] = "\b\f\n\r\t";

    *written = 1;

    if (end - p < 2) {
        out[0] = '\\';
        return 1;
    }

    if (p[1] == 'u') {
        n = llmgw_json_unicode(p, end, &character);
        *written = text_utf8(n ? character : 0xfffd, out);

        return n ? n : (end - p < JSON_UNIT_BYTES) ? (size_t) (end - p)
                                                   : JSON_UNIT_BYTES;
    }

    found = memchr(letters, p[1], sizeof(letters) - 1);
    out[0] = found ? (uint8_t) controls[found - letters] : p[1];

    return 2;
}


size_t
llmgw_json_unicode(const uint8_t *p, const uint8_t *end, uint32_t *character)
{
    int  high, low;

    high = json_unit(p, end);

    if (high < 0xd800 || high > 0xdfff) {
        *character = (uint32_t) high;
        return high < 0 ? 0 : JSON_UNIT_BYTES;
    }

    p += JSON_UNIT_BYTES;

    if (high > 0xdbff || end - p < JSON_UNIT_BYTES || p[0] != '\\'
        || p[1] != 'u')
    {
        return 0;
    }

    low = json_unit(p, end);

    if (low < 0xdc00 || low > 0xdfff) {
        return 0;
    }

    *character = (uint32_t) (0x10000 + ((high - 0xd800) << 10)
                             + (low - 0xdc00));

    return 2 * JSON_UNIT_BYTES;
}


static size_t
text_utf8(uint32_t c, uint8_t out[4])
{
    if (c < 0x80) {
        out[0] = (uint8_t) c;
        return 1;
    }

    if (c < 0x800) {
        out[0] = (uint8_t) (0xc0 | (c >> 6));
        out[1] = (uint8_t) (0x80 | (c & 0x3f));
        return 2;
    }

    if (c < 0x10000) {
        out[0] = (uint8_t) (0xe0 | (c >> 12));
        out[1] = (uint8_t) (0x80 | ((c >> 6) & 0x3f));
        out[2] = (uint8_t) (0x80 | (c & 0x3f));
        return 3;
    }

    out[0] = (uint8_t) (0xf0 | (c >> 18));
    out[1] = (uint8_t) (0x80 | ((c >> 12) & 0x3f));
    out[2] = (uint8_t) (0x80 | ((c >> 6) & 0x3f));
    out[3] = (uint8_t) (0x80 | (c & 0x3f));

    return 4;
}


void
llmgw_json_copy(llmgw_json_t value, char *to, size_t size)
{
    size_t          len;
    const uint8_t  *from;

    from = NULL;
    len = value.kind == LLMGW_JSON_STRING
          ? llmgw_json_text(&value, &from, to, size - 1) : 0;
    to[len] = '\0';
}


int
llmgw_json_is_escaped(llmgw_json_t string, const char *text)
{
    size_t          n, len;
    uint8_t         piece[PIECE_BYTES];
    const uint8_t  *from;

    len = strlen(text);

    for (from = NULL; (n = llmgw_json_text(&string, &from, piece,
                                           sizeof(piece))) > 0;
         text += n, len -= n)
    {
        if (n > len || memcmp(piece, text, n) != 0) {
            return 0;
        }
    }

    return len == 0;
}
