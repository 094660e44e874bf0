
#include <endian.h>
#include <string.h>

#include "proto/json/walk.h"


#define EACH(byte)  (0x0101010101010101ull * (byte))

#define UNICODE_BYTES  6            /* \uXXXX */


static llmgw_scan_kind_t scan_kind(uint8_t first);
static const uint8_t *scan_string_end(const uint8_t *p, const uint8_t *end);
static const uint8_t *scan_word_end(const uint8_t *p, const uint8_t *end);
static llmgw_scan_t scan_rest(llmgw_scan_t token, const uint8_t **p,
    const uint8_t *end);
static size_t scan_escape(const uint8_t *p, const uint8_t *end,
    uint8_t out[4], size_t *written);
static size_t scan_utf8(uint32_t character, uint8_t out[4]);


/*
 * Eight bytes at a time.  A byte's highest bit is set if it became zero by the
 * xor, or if it is below a space; what a borrow sets besides lies behind the
 * first that is right.
 */
static inline const uint8_t *
scan_special(const uint8_t *p, const uint8_t *end)
{
    uint64_t  eight, quote, slash, marks;

    for ( /* void */ ; end - p >= 8; p += 8) {
        memcpy(&eight, p, 8);
        eight = le64toh(eight);

        quote = eight ^ EACH('"');
        slash = eight ^ EACH('\\');

        marks = (((quote - EACH(1)) & ~quote) | ((slash - EACH(1)) & ~slash)
                 | ((eight - EACH(0x20)) & ~eight)) & EACH(0x80);

        if (marks) {
            return p + __builtin_ctzll(marks) / 8;
        }
    }

    while (p < end && *p != '"' && *p != '\\' && *p >= 0x20) {
        p++;
    }

    return p;
}


const uint8_t *
llmgw_scan_special(const uint8_t *p, const uint8_t *end)
{
    return scan_special(p, end);
}


llmgw_scan_t
llmgw_scan_token(const uint8_t **p, const uint8_t *end)
{
    const uint8_t  *at = *p;
    llmgw_scan_t    token;

    while (at < end && (*at == ' ' || *at == ',' || *at == ':' || *at == '\n'
                        || *at == '\t' || *at == '\r'))
    {
        at++;
    }

    token.kind = LLMGW_SCAN_END;
    token.begin = at;
    token.end = end;

    if (at == end) {
        *p = end;
        return token;
    }

    token.kind = scan_kind(*at);

    switch (token.kind) {

    case LLMGW_SCAN_STRING:
        token.end = scan_string_end(at + 1, end);
        break;

    case LLMGW_SCAN_NUMBER:
    case LLMGW_SCAN_TRUE:
    case LLMGW_SCAN_FALSE:
    case LLMGW_SCAN_NULL:
        token.end = scan_word_end(at + 1, end);
        break;

    default:
        token.end = at + 1;
    }

    *p = token.end;

    return token;
}


/* A value is known by its first byte. */
static llmgw_scan_kind_t
scan_kind(uint8_t first)
{
    switch (first) {

    case '{':
        return LLMGW_SCAN_OBJECT;
    case '}':
        return LLMGW_SCAN_OBJECT_END;
    case '[':
        return LLMGW_SCAN_ARRAY;
    case ']':
        return LLMGW_SCAN_ARRAY_END;
    case '"':
        return LLMGW_SCAN_STRING;
    case 't':
        return LLMGW_SCAN_TRUE;
    case 'f':
        return LLMGW_SCAN_FALSE;
    case 'n':
        return LLMGW_SCAN_NULL;
    default:
        return LLMGW_SCAN_NUMBER;
    }
}


/* Behind the closing quote. */
static const uint8_t *
scan_string_end(const uint8_t *p, const uint8_t *end)
{
    for ( ;; ) {
        p = scan_special(p, end);

        if (p == end || *p == '"') {
            return p == end ? end : p + 1;
        }

        p += (*p == '\\' && end - p > 1) ? 2 : 1;
    }
}


/* Behind a number, true, false or null. */
static const uint8_t *
scan_word_end(const uint8_t *p, const uint8_t *end)
{
    while (p < end && ((*p >= '0' && *p <= '9') || (*p >= 'a' && *p <= 'z')
                       || *p == '.' || *p == '-' || *p == '+' || *p == 'E'))
    {
        p++;
    }

    return p;
}


llmgw_scan_t
llmgw_scan_at(const uint8_t *begin, const uint8_t *end)
{
    llmgw_scan_t  value;

    value.kind = begin < end ? scan_kind(*begin) : LLMGW_SCAN_END;
    value.begin = begin;
    value.end = end;

    return value;
}


llmgw_scan_t
llmgw_scan_value(const uint8_t **p, const uint8_t *end)
{
    llmgw_scan_t  token;

    token = llmgw_scan_token(p, end);

    return scan_rest(token, p, end);
}


/* A token's value: of an opening bracket all up to the closing one. */
static llmgw_scan_t
scan_rest(llmgw_scan_t value, const uint8_t **p, const uint8_t *end)
{
    size_t        depth;
    llmgw_scan_t  token;

    depth = (value.kind == LLMGW_SCAN_OBJECT || value.kind == LLMGW_SCAN_ARRAY);

    while (depth > 0) {
        token = llmgw_scan_token(p, end);

        switch (token.kind) {

        case LLMGW_SCAN_OBJECT:
        case LLMGW_SCAN_ARRAY:
            depth++;
            break;

        case LLMGW_SCAN_OBJECT_END:
        case LLMGW_SCAN_ARRAY_END:
            depth--;
            break;

        case LLMGW_SCAN_END:
            depth = 0;
            break;

        default:
            break;
        }

        value.end = token.end;
    }

    return value;
}


llmgw_scan_items_t
llmgw_scan_items(const llmgw_scan_t *value)
{
    llmgw_scan_items_t  items;

    items.kind = value->kind;
    items.p = value->begin;
    items.end = value->begin;

    if (value->kind == LLMGW_SCAN_OBJECT || value->kind == LLMGW_SCAN_ARRAY) {
        items.p++;
        items.end = value->end;
    }

    return items;
}


int
llmgw_scan_next(llmgw_scan_items_t *items, llmgw_scan_item_t *item)
{
    if (!llmgw_scan_enter(items, item)) {
        return 0;
    }

    item->value = scan_rest(item->value, &items->p, items->end);

    return 1;
}


int
llmgw_scan_enter(llmgw_scan_items_t *items, llmgw_scan_item_t *item)
{
    item->key = llmgw_scan_at(items->p, items->p);
    item->value = llmgw_scan_token(&items->p, items->end);

    if (items->kind == LLMGW_SCAN_OBJECT) {

        if (item->value.kind != LLMGW_SCAN_STRING) {
            return 0;
        }

        item->key = item->value;
        item->value = llmgw_scan_token(&items->p, items->end);
    }

    switch (item->value.kind) {

    case LLMGW_SCAN_END:
    case LLMGW_SCAN_OBJECT_END:
    case LLMGW_SCAN_ARRAY_END:
        return 0;

    case LLMGW_SCAN_OBJECT:
    case LLMGW_SCAN_ARRAY:
        item->value.end = items->end;
        return 1;

    default:
        return 1;
    }
}


llmgw_scan_t
llmgw_scan_member(llmgw_scan_t object, const char *name)
{
    llmgw_scan_t        value;
    llmgw_scan_item_t   item;
    llmgw_scan_items_t  items;

    value = llmgw_scan_at(object.end, object.end);

    if (object.kind != LLMGW_SCAN_OBJECT) {
        return value;
    }

    for (items = llmgw_scan_items(&object); llmgw_scan_next(&items, &item); ) {
        if (llmgw_scan_is(&item.key, name)) {
            value = item.value;
        }
    }

    return value;
}


size_t
llmgw_scan_text(const llmgw_scan_t *string, const uint8_t **from,
    uint8_t *out, size_t room)
{
    size_t          n, len, written;
    const uint8_t  *p, *end, *run;

    p = *from ? *from : string->begin + 1;
    end = string->end - 1;
    written = 0;

    while (p < end) {
        run = (size_t) (end - p) > room - written ? p + (room - written) : end;
        run = scan_special(p, run);

        while (run < end && run > p && (*run & 0xc0) == 0x80) {
            run--;                          /* the whole character later */
        }

        n = run - p;
        memcpy(out + written, p, n);
        written += n;
        p = run;

        if (p == end || room - written < 4) {
            break;
        }

        if (*p == '\\') {
            len = scan_escape(p, end, out + written, &n);
            written += n;
            p += len;

        } else if (n == 0) {
            out[written++] = *p++;          /* nothing that was judged */
        }
    }

    *from = p;

    return written;
}


/* Writes the escape's character; returns the escape's length. */
static size_t
scan_escape(const uint8_t *p, const uint8_t *end, uint8_t out[4],
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
        n = llmgw_scan_unicode(p, end, &character);
        *written = scan_utf8(n ? character : 0xfffd, out);

        return n ? n : (end - p < UNICODE_BYTES) ? (size_t) (end - p)
                                                 : UNICODE_BYTES;
    }

    found = memchr(letters, p[1], sizeof(letters) - 1);
    out[0] = found ? (uint8_t) controls[found - letters] : p[1];

    return 2;
}


static uint32_t
scan_unit(const uint8_t *p)
{
    size_t    i;
    uint32_t  unit;

    for (unit = 0, i = 2; i < UNICODE_BYTES; i++) {
        unit = unit * 16
               + (p[i] <= '9' ? p[i] - '0' : (p[i] | 0x20) - 'a' + 10);
    }

    return unit & 0xffff;
}


size_t
llmgw_scan_unicode(const uint8_t *p, const uint8_t *end, uint32_t *character)
{
    uint32_t  high, low;

    if (end - p < UNICODE_BYTES) {
        return 0;
    }

    high = scan_unit(p);
    *character = high;

    if (high < 0xd800 || high > 0xdfff) {
        return UNICODE_BYTES;
    }

    if (high > 0xdbff || end - p < 2 * UNICODE_BYTES
        || p[UNICODE_BYTES] != '\\' || p[UNICODE_BYTES + 1] != 'u')
    {
        return 0;
    }

    low = scan_unit(p + UNICODE_BYTES);
    *character = 0x10000 + ((high - 0xd800) << 10) + (low - 0xdc00);

    return low < 0xdc00 || low > 0xdfff ? 0 : 2 * UNICODE_BYTES;
}


static size_t
scan_utf8(uint32_t c, uint8_t out[4])
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


int
llmgw_scan_is(const llmgw_scan_t *value, const char *text)
{
    size_t          n, len, raw;
    uint8_t         piece[64];
    const uint8_t  *from;

    if (value->kind != LLMGW_SCAN_STRING || value->end - value->begin < 2) {
        return 0;
    }

    len = strlen(text);
    raw = value->end - value->begin - 2;

    if (raw <= len) {
        return raw == len && memcmp(value->begin + 1, text, len) == 0;
    }

    /* longer: only escapes can make it the same */

    for (from = NULL; (n = llmgw_scan_text(value, &from, piece,
                                           sizeof(piece))) > 0;
         text += n, len -= n)
    {
        if (n > len || memcmp(piece, text, n) != 0) {
            return 0;
        }
    }

    return len == 0;
}
