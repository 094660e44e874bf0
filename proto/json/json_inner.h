
/* What reading and writing share. */

#ifndef LLMGW_JSON_INNER_H
#define LLMGW_JSON_INNER_H

#include <endian.h>
#include <stdint.h>
#include <string.h>


#define JSON_EACH(byte)  (0x0101010101010101ull * (byte))


/*
 * To the first quote, backslash or control character; end: there is none.
 * Eight bytes at a time.  A byte's highest bit is set if it became zero by the
 * xor, or if it is below a space; what a borrow sets besides lies behind the
 * first that is right.
 */
static inline const uint8_t *
json_special(const uint8_t *p, const uint8_t *end)
{
    uint64_t  eight, quote, slash, marks;

    for ( /* void */ ; end - p >= 8; p += 8) {
        memcpy(&eight, p, 8);
        eight = le64toh(eight);

        quote = eight ^ JSON_EACH('"');
        slash = eight ^ JSON_EACH('\\');

        marks = (((quote - JSON_EACH(1)) & ~quote)
                 | ((slash - JSON_EACH(1)) & ~slash)
                 | ((eight - JSON_EACH(0x20)) & ~eight)) & JSON_EACH(0x80);

        if (marks) {
            return p + __builtin_ctzll(marks) / 8;
        }
    }

    while (p < end && *p != '"' && *p != '\\' && *p >= 0x20) {
        p++;
    }

    return p;
}

#endif /* LLMGW_JSON_INNER_H */
