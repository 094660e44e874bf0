
#include <stdint.h>
#include <string.h>

#include "proto/utf8.h"


/* The high bit of each of eight bytes: none is set in ASCII. */
#define LLMGW_UTF8_HIGH  0x8080808080808080ull


static size_t llmgw_utf8_char(const unsigned char *p, size_t left);


static inline uint64_t
llmgw_utf8_eight(const unsigned char *p)
{
    uint64_t  eight;

    memcpy(&eight, p, 8);

    return eight;
}


/*
 * Prompts and tokens are mostly ASCII, and tokens are short.  So eight or four
 * bytes are checked at once; the last group may overlap the one before.
 */

static inline int
llmgw_utf8_is_ascii(const unsigned char *p, size_t len)
{
    size_t    i;
    uint32_t  first, last;
    uint64_t  all;

    if (len >= 8) {
        all = llmgw_utf8_eight(p + len - 8);

        for (i = 0; i + 8 < len; i += 8) {
            all |= llmgw_utf8_eight(p + i);
        }

        return (all & LLMGW_UTF8_HIGH) == 0;
    }

    if (len >= 4) {
        memcpy(&first, p, 4);
        memcpy(&last, p + len - 4, 4);

        return ((first | last) & 0x80808080u) == 0;
    }

    return len == 0 || (p[0] | p[len / 2] | p[len - 1]) < 0x80;
}


int
llmgw_utf8_is_valid(const void *text, size_t len)
{
    return llmgw_utf8_is_ascii(text, len)
           || llmgw_utf8_prefix(text, len) == len;
}


size_t
llmgw_utf8_prefix(const void *text, size_t len)
{
    size_t                n;
    const unsigned char  *p = text, *end = p + len;

    while (p < end) {

        if (end - p >= 8 && (llmgw_utf8_eight(p) & LLMGW_UTF8_HIGH) == 0) {
            p += 8;
            continue;
        }

        n = llmgw_utf8_char(p, end - p);

        if (n == 0) {
            break;
        }

        p += n;
    }

    return p - (const unsigned char *) text;
}


size_t
llmgw_utf8_shown(const void *text, size_t len)
{
    const unsigned char  *p = text;

    if (len == 0 || p[0] < 0x20 || p[0] == 0x7f) {
        return 0;
    }

    if (p[0] == 0xc2 && len > 1 && p[1] < 0xa0) {
        return 0;
    }

    return llmgw_utf8_char(p, len);
}


/* The number of bytes of the character at p; 0: no character begins there. */

static size_t
llmgw_utf8_char(const unsigned char *p, size_t left)
{
    size_t         i, n;
    unsigned char  low, high;

    low = 0x80;
    high = 0xbf;

    if (p[0] < 0x80) {
        return 1;

    } else if (p[0] >= 0xc2 && p[0] <= 0xdf) {
        n = 2;

    } else if (p[0] >= 0xe0 && p[0] <= 0xef) {
        n = 3;
        low = (p[0] == 0xe0) ? 0xa0 : 0x80;
        high = (p[0] == 0xed) ? 0x9f : 0xbf;

    } else if (p[0] >= 0xf0 && p[0] <= 0xf4) {
        n = 4;
        low = (p[0] == 0xf0) ? 0x90 : 0x80;
        high = (p[0] == 0xf4) ? 0x8f : 0xbf;

    } else {
        return 0;
    }

    if (left < n || p[1] < low || p[1] > high) {
        return 0;
    }

    for (i = 2; i < n; i++) {
        if (p[i] < 0x80 || p[i] > 0xbf) {
            return 0;
        }
    }

    return n;
}
