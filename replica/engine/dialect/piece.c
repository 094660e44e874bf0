
/*
 * Ids of which only the text is known.
 *
 * llama.cpp holds tokens back until a character is whole, and then reports only
 * the last of their ids.  The ids before it are sent to the gateway as pieces:
 * ids that no vocabulary has, with the text of all of them.  The adapter that
 * takes over tokenizes each text again and must get as many ids with the same
 * last one, or it refuses: a tokenizer cuts the bytes of one character in one
 * way.
 *
 *      31  30..28  27..21           20..0
 *       1  0       ASCII before it  a character
 *                  or 0             or 0: no more text
 *
 * So the gateway stores nothing but ids, and their number is right.  Without
 * pieces, an answer could not be resumed by ids after its first emoji, which
 * has two tokens or three.
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "replica/engine/dialect/dialect_inner.h"


#define PIECE_MARK       0x80000000u
#define PIECE_SEPARATOR  0          /* an id between two texts: any */


int
piece_is_one(uint32_t id)
{
    return (id & PIECE_MARK) != 0;
}


/* The next character of text that is UTF-8. */
static uint32_t
piece_char(const char **p)
{
    int                   more;
    uint32_t              c;
    const unsigned char  *b;

    b = (const unsigned char *) *p;
    more = b[0] < 0x80 ? 0 : b[0] < 0xe0 ? 1 : b[0] < 0xf0 ? 2 : 3;
    c = more == 0 ? b[0] : b[0] & (0x3f >> more);
    *p += more + 1;

    while (more-- > 0) {
        c = c << 6 | (*++b & 0x3f);
    }

    return c;
}


static uint32_t
piece_next(const char **p, const char *end)
{
    uint32_t  before, c;

    if (*p == end) {
        return PIECE_MARK;
    }

    before = 0;
    c = piece_char(p);

    if (c < 0x80 && *p < end) {
        before = c;
        c = piece_char(p);
    }

    return PIECE_MARK | before << 21 | c;
}


int
piece_fill(dialect_call_t *call, uint64_t missing)
{
    size_t       n;
    uint32_t     last;
    const char  *p, *end;

    if (call->token.len == 0
        || memchr(call->token.data, '\0', call->token.len) != NULL)
    {
        return -1;
    }

    p = call->token.data;
    end = p + call->token.len;
    n = --call->nids;
    last = call->ids[n];

    while (missing-- > 0 && message_id(call, piece_next(&p, end)) == 0) {
        /* void */
    }

    if (p == end && message_id(call, last) == 0) {
        return 0;
    }

    call->ids[n] = last;
    call->nids = n + 1;

    return -1;
}


static void
piece_text(uint32_t c, buf_t *to)
{
    char    text[16];
    size_t  len;

    if (c == 0) {
        return;
    }

    /* It is written as an escape, so that it need not be encoded here. */
    if (c < 0x10000) {
        len = (size_t) snprintf(text, sizeof(text), "\\u%04x", c);
        buf_add(to, text, len);
        return;
    }

    c -= 0x10000;
    snprintf(text, sizeof(text), "\\u%04x", 0xd800 + (c >> 10));
    buf_add(to, text, 6);
    snprintf(text, sizeof(text), "\\u%04x", 0xdc00 + (c & 0x3ff));
    buf_add(to, text, 6);
}


void
piece_write(const dialect_call_t *call, buf_t *to)
{
    size_t    i;
    uint32_t  id;

    buf_text(to, "[");

    for (i = 0; i < call->nkept; i++) {
        id = call->given[i];

        if (!piece_is_one(id)) {
            continue;
        }

        if (i == 0 || !piece_is_one(call->given[i - 1])) {
            buf_text(to, to->data[to->len - 1] == '[' ? "\"" : ",0,\"");
        }

        piece_text(id >> 21 & 0x7f, to);
        piece_text(id & 0x1fffff, to);

        if (i + 1 == call->nkept || !piece_is_one(call->given[i + 1])) {
            buf_text(to, "\"");
        }
    }

    buf_text(to, "]");
}


/* Reads the next id.  0, or -1: there is none. */
static int
piece_read_one(llmgw_json_items_t *ids, uint64_t *id)
{
    llmgw_json_item_t  item;

    return llmgw_json_next(ids, &item)
           ? llmgw_json_uint(item.value, INT32_MAX, id) : -1;
}


/* 0: the next id is the expected one. */
static int
piece_expect(llmgw_json_items_t *ids, uint32_t expected)
{
    uint64_t  id;

    return piece_read_one(ids, &id) == 0 && id == expected ? 0 : -1;
}


int
piece_read(dialect_call_t *call, llmgw_json_t ids)
{
    int                 is_piece, was_piece, is_behind;
    size_t              i;
    uint64_t            id;
    uint32_t           *given;
    llmgw_json_item_t   item;
    llmgw_json_items_t  items;

    given = malloc(call->nkept * sizeof(uint32_t));

    if (given == NULL) {
        return -1;
    }

    memcpy(given, call->given, call->nkept * sizeof(uint32_t));
    call->given_ids = given;
    items = llmgw_json_elements(ids);

    was_piece = is_behind = 0;

    for (i = 0; i < call->nkept; i++, was_piece = is_piece) {
        is_piece = piece_is_one(given[i]);

        if (is_piece && !was_piece && is_behind
            && piece_expect(&items, PIECE_SEPARATOR) != 0)
        {
            return -1;
        }

        if (is_piece) {
            if (piece_read_one(&items, &id) != 0) {
                return -1;
            }

            given[i] = (uint32_t) id;
            is_behind = 1;

        } else if (was_piece && piece_expect(&items, given[i]) != 0) {
            return -1;
        }
    }

    call->given = given;

    return was_piece || llmgw_json_next(&items, &item) ? -1 : 0;
}
