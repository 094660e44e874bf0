
#include <stdint.h>
#include <string.h>

#include "proto/utf8.h"


static inline size_t llmgw_utf8_ascii(const unsigned char *p, size_t left);
static size_t llmgw_utf8_char(const unsigned char *p, size_t left);


int
llmgw_utf8_is_valid(const void *text, size_t len)
{
    size_t                n;
    const unsigned char  *p = text, *end = p + len;

    while (p < end) {

        n = llmgw_utf8_ascii(p, end - p);

        if (n == 0) {
            n = llmgw_utf8_char(p, end - p);

            if (n == 0) {
                return 0;
            }
        }

        p += n;
    }

    return 1;
}


/*
 * Prompts and tokens are mostly ASCII, and tokens short: so many bytes at once
 * of 8, 4 or 1.  0: not one.
 */

static inline size_t
llmgw_utf8_ascii(const unsigned char *p, size_t left)
{
    uint64_t  eight;
    uint32_t  four;

    if (left >= 8) {
        memcpy(&eight, p, 8);

        if ((eight & 0x8080808080808080ull) == 0) {
            return 8;
        }

    } else if (left >= 4) {
        memcpy(&four, p, 4);

        if ((four & 0x80808080u) == 0) {
            return 4;
        }
    }

    return *p < 0x80;
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


/* The bytes of the character at p, 0: there is none. */

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
