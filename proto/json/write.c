
#include <stdio.h>

#include "proto/json/json_inner.h"
#include "proto/json/write.h"


static char *json_escape_one(char *p, uint8_t c);


/* The letters of the short escapes; 'u': the character has none. */
static const char  json_letters[0x20] = {
    'u', 'u', 'u', 'u', 'u', 'u', 'u', 'u', 'b', 't', 'n', 'u', 'f', 'r', 'u',
    'u', 'u', 'u', 'u', 'u', 'u', 'u', 'u', 'u', 'u', 'u', 'u', 'u', 'u', 'u',
    'u', 'u'
};


char *
llmgw_json_raw(char *p, const void *json, size_t len)
{
    if (len > 0) {                          /* json may be NULL */
        memcpy(p, json, len);
    }

    return p + len;
}


char *
llmgw_json_string(char *p, const void *text, size_t len)
{
    *p++ = '"';
    p = llmgw_json_escape(p, text, len);
    *p++ = '"';

    return p;
}


char *
llmgw_json_escape(char *p, const void *text, size_t len)
{
    const uint8_t  *at = text, *end = at + len, *special;

    for ( ;; ) {
        special = json_special(at, end);
        p = llmgw_json_raw(p, at, special - at);

        if (special == end) {
            return p;
        }

        p = json_escape_one(p, *special);
        at = special + 1;
    }
}


static char *
json_escape_one(char *p, uint8_t c)
{
    static const char  hex[] = "0123456789abcdef";

    *p++ = '\\';

    if (c >= 0x20) {
        *p++ = (char) c;
        return p;
    }

    *p++ = json_letters[c];

    if (json_letters[c] == 'u') {
        *p++ = '0';
        *p++ = '0';
        *p++ = hex[c >> 4];
        *p++ = hex[c & 15];
    }

    return p;
}


size_t
llmgw_json_string_bytes(const void *text, size_t len)
{
    return llmgw_json_escape_bytes(text, len) + 2;
}


size_t
llmgw_json_escape_bytes(const void *text, size_t len)
{
    size_t          bytes;
    const uint8_t  *p = text, *end = p + len;

    bytes = len;

    while ((p = json_special(p, end)) != end) {
        bytes += (*p < 0x20 && json_letters[*p] == 'u') ? 5 : 1;
        p++;
    }

    return bytes;
}


char *
llmgw_json_number(char *p, int64_t number)
{
    char       digits[LLMGW_JSON_NUMBER_BYTES], *at;
    uint64_t   left;

    left = number < 0 ? 0 - (uint64_t) number : (uint64_t) number;
    at = digits + sizeof(digits);

    do {
        *--at = (char) ('0' + left % 10);
        left /= 10;
    } while (left);

    if (number < 0) {
        *--at = '-';
    }

    return llmgw_json_raw(p, at, digits + sizeof(digits) - at);
}


char *
llmgw_json_real(char *p, double number)
{
    char  *end;

    end = p + snprintf(p, LLMGW_JSON_REAL_BYTES, "%.6g", number);

    return strpbrk(p, ".e") ? end : llmgw_json_literal(end, ".0");
}
