
#include "proto/json/json_inner.h"
#include "proto/json/scan.h"


typedef enum {
    SCAN_VALUE = 0,     /* a value is expected */
    SCAN_FIRST,         /* a value, or the end of an array */
    SCAN_KEY,
    SCAN_FIRST_KEY,     /* a key, or the end of an object */
    SCAN_COLON,
    SCAN_BEHIND,        /* a comma, or the end of the container */
    SCAN_STRING,
    SCAN_WORD,          /* a number, true, false or null */
    SCAN_DONE,
    SCAN_WRONG
} scan_state_t;


void
llmgw_json_scan_init(llmgw_json_scan_t *scan, llmgw_json_scan_pt on_value,
    void *arg)
{
    memset(scan, 0, sizeof(llmgw_json_scan_t));
    scan->on_value = on_value;
    scan->arg = arg;
    scan->has_path = 1;
}


/* Appends bytes to the text, and leaves room for a closing quote. */
static void
scan_add(llmgw_json_scan_t *scan, const uint8_t *p, size_t len)
{
    size_t  room;

    room = sizeof(scan->text) - 1 - scan->text_len;

    if (len > room) {
        scan->is_cut = 1;
        len = room;
    }

    memcpy(scan->text + scan->text_len, p, len);
    scan->text_len += (uint8_t) len;
}


static void
scan_begin(llmgw_json_scan_t *scan, scan_state_t state, const uint8_t *p)
{
    scan->is_key = scan->state == SCAN_KEY || scan->state == SCAN_FIRST_KEY;
    scan->state = state;
    scan->is_cut = 0;
    scan->text_len = 0;
    scan_add(scan, p, 1);
}


static void
scan_behind(llmgw_json_scan_t *scan)
{
    scan->state = scan->depth == 0 ? SCAN_DONE : SCAN_BEHIND;
}


static void
scan_value(llmgw_json_scan_t *scan, llmgw_json_kind_t kind)
{
    llmgw_json_t  value = { kind, scan->text, scan->text + scan->text_len };

    if (scan->has_path && scan->depth > 0 && scan->known == scan->depth) {
        scan->on_value(scan->arg, scan->path, value);
    }

    scan_behind(scan);
}


/* A key has ended: the text is the key with its opening quote. */
static void
scan_key(llmgw_json_scan_t *scan)
{
    size_t  at, len;

    scan->state = SCAN_COLON;
    scan->has_path = 0;

    if (scan->known != scan->depth) {
        return;
    }

    at = scan->ends[scan->known - 1];
    len = scan->text_len - 1;

    if (scan->is_cut || at + len + 2 > sizeof(scan->path)
        || memchr(scan->text, '\\', scan->text_len) != NULL
        || memchr(scan->text, '.', scan->text_len) != NULL)
    {
        return;
    }

    if (at > 0) {
        scan->path[at++] = '.';
    }

    memcpy(scan->path + at, scan->text + 1, len);
    scan->path_len = (uint8_t) (at + len);
    scan->path[scan->path_len] = '\0';
    scan->has_path = 1;
}


static const uint8_t *
scan_string(llmgw_json_scan_t *scan, const uint8_t *p, const uint8_t *end)
{
    const uint8_t  *stop;

    stop = scan->is_escaped ? p + 1 : json_special(p, end);
    scan_add(scan, p, (size_t) (stop - p));

    if (scan->is_escaped || stop == end) {
        scan->is_escaped = 0;
        return stop;
    }

    if (*stop == '\\') {
        scan_add(scan, stop, 1);
        scan->is_escaped = 1;

    } else if (*stop != '"') {
        scan->state = SCAN_WRONG;

    } else if (scan->is_key) {
        scan_key(scan);

    } else {
        scan->text[scan->text_len++] = '"';
        scan_value(scan, LLMGW_JSON_STRING);
    }

    return stop + 1;
}


static int
scan_is_word(uint8_t c)
{
    return (c >= '0' && c <= '9') || ((c | 0x20) >= 'a' && (c | 0x20) <= 'z')
           || c == '-' || c == '+' || c == '.';
}


static llmgw_json_kind_t
scan_word_kind(const llmgw_json_scan_t *scan)
{
    size_t             i;
    const uint8_t     *text;
    llmgw_json_kind_t  kind;

    static const char *const  words[] = { "true", "false", "null" };

    text = scan->text;

    if (scan->is_cut) {
        return LLMGW_JSON_END;
    }

    if (*text == '-' || (*text >= '0' && *text <= '9')) {
        return LLMGW_JSON_NUMBER;
    }

    for (i = 0, kind = LLMGW_JSON_TRUE; i < 3; i++, kind++) {
        if (scan->text_len == strlen(words[i])
            && memcmp(text, words[i], scan->text_len) == 0)
        {
            return kind;
        }
    }

    return LLMGW_JSON_END;
}


static const uint8_t *
scan_word(llmgw_json_scan_t *scan, const uint8_t *p, const uint8_t *end)
{
    const uint8_t      *stop;
    llmgw_json_kind_t   kind;

    for (stop = p; stop < end && scan_is_word(*stop); stop++) { /* void */ }

    scan_add(scan, p, (size_t) (stop - p));

    if (stop == end) {
        return stop;
    }

    kind = scan_word_kind(scan);

    if (kind == LLMGW_JSON_END) {
        scan->state = SCAN_WRONG;
    } else {
        scan_value(scan, kind);
    }

    return stop;
}


static void
scan_open(llmgw_json_scan_t *scan, unsigned is_object)
{
    if (scan->depth == LLMGW_JSON_MAX_DEPTH) {
        scan->state = SCAN_WRONG;
        return;
    }

    if (is_object && scan->has_path && scan->known == scan->depth
        && scan->known < LLMGW_JSON_SCAN_LEVELS)
    {
        scan->ends[scan->known++] = scan->path_len;
    }

    scan->objects = scan->objects << 1 | is_object;
    scan->depth++;
    scan->state = is_object ? SCAN_FIRST_KEY : SCAN_FIRST;
}


static void
scan_close(llmgw_json_scan_t *scan, unsigned is_object)
{
    if ((scan->objects & 1) != is_object) {
        scan->state = SCAN_WRONG;
        return;
    }

    scan->objects >>= 1;
    scan->depth--;
    scan->known = scan->known > scan->depth ? scan->depth : scan->known;
    scan_behind(scan);
}


static void
scan_value_begins(llmgw_json_scan_t *scan, const uint8_t *p)
{
    if (*p == '{' || *p == '[') {
        scan_open(scan, *p == '{');

    } else if (*p == '"' || scan_is_word(*p)) {
        scan_begin(scan, *p == '"' ? SCAN_STRING : SCAN_WORD, p);

    } else {
        scan->state = SCAN_WRONG;
    }
}


/* Handles a byte outside of strings and words. */
static void
scan_mark(llmgw_json_scan_t *scan, const uint8_t *p)
{
    unsigned      is_end;
    scan_state_t  state;

    state = scan->state;
    is_end = *p == '}' || *p == ']';

    if (*p == ' ' || *p == '\n' || *p == '\r' || *p == '\t') {
        return;
    }

    if (is_end && (state == SCAN_BEHIND || state == SCAN_FIRST
                   || state == SCAN_FIRST_KEY))
    {
        scan_close(scan, *p == '}');

    } else if (state == SCAN_VALUE || state == SCAN_FIRST) {
        scan_value_begins(scan, p);

    } else if (*p == ',' && state == SCAN_BEHIND) {
        scan->state = scan->objects & 1 ? SCAN_KEY : SCAN_VALUE;

    } else if (*p == ':' && state == SCAN_COLON) {
        scan->state = SCAN_VALUE;

    } else if (*p == '"' && (state == SCAN_KEY || state == SCAN_FIRST_KEY)) {
        scan_begin(scan, SCAN_STRING, p);

    } else {
        scan->state = SCAN_WRONG;
    }
}


int
llmgw_json_scan(llmgw_json_scan_t *scan, const void *bytes, size_t len)
{
    const uint8_t  *p, *end;

    p = bytes;
    end = p + len;

    while (p < end && scan->state < SCAN_DONE) {

        if (scan->state == SCAN_STRING) {
            p = scan_string(scan, p, end);

        } else if (scan->state == SCAN_WORD) {
            p = scan_word(scan, p, end);

        } else {
            scan_mark(scan, p++);
        }
    }

    return scan->state < SCAN_DONE ? 0 : scan->state == SCAN_DONE ? 1 : -1;
}
