
/* JSON into bounded memory.  line.h has the rules. */

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/decision/line.h"
#include "proto/json/write.h"


#define LINE_DOUBLE_BYTES  32           /* -1.2345678901234567e-308 */
#define LINE_INTEGER_MAX   1e15         /* printed without an exponent */
#define LINE_RUN_BYTES     64           /* escaped at once */


void
llmgw_line_init(llmgw_line_t *out, char *memory, size_t size)
{
    out->start = memory;
    out->size = size;
    out->len = 0;
    out->last = '[';                    /* nothing stands before */
}


static void
line_put(llmgw_line_t *out, const char *bytes, size_t len)
{
    if (len == 0) {
        return;
    }

    if (out->len <= out->size && len <= out->size - out->len) {
        memcpy(out->start + out->len, bytes, len);
    }

    out->len += len;
    out->last = bytes[len - 1];
}


static void
line_key(llmgw_line_t *out, const char *key)
{
    if (out->last != '{' && out->last != '[') {
        line_put(out, ",", 1);
    }

    if (key != NULL) {
        line_put(out, "\"", 1);
        line_put(out, key, strlen(key));
        line_put(out, "\":", 2);
    }
}


void
llmgw_line_open(llmgw_line_t *out, const char *key, char open)
{
    line_key(out, key);
    line_put(out, &open, 1);
}


void
llmgw_line_close(llmgw_line_t *out, char close)
{
    line_put(out, &close, 1);
}


void
llmgw_line_int(llmgw_line_t *out, const char *key, int64_t value)
{
    char  digits[LLMGW_JSON_NUMBER_BYTES];

    line_key(out, key);
    line_put(out, digits, (size_t) (llmgw_json_number(digits, value)
                                    - digits));
}


void
llmgw_line_bool(llmgw_line_t *out, const char *key, int value)
{
    line_key(out, key);
    line_put(out, value ? "true" : "false", value ? 4 : 5);
}


/* Fast path for most numbers: the same digits, in 20 ns instead of 220. */
static int
line_is_integer(double value)
{
    return value >= 0 && value < LINE_INTEGER_MAX
           && value == (double) (int64_t) value && !signbit(value);
}


void
llmgw_line_double(llmgw_line_t *out, const char *key, double value)
{
    int   len;
    char  digits[LINE_DOUBLE_BYTES];

    if (line_is_integer(value)) {
        llmgw_line_int(out, key, (int64_t) value);
        return;
    }

    line_key(out, key);

    if (!isfinite(value)) {
        line_put(out, "null", 4);
        return;
    }

    len = snprintf(digits, sizeof(digits), "%.17g", value);
    line_put(out, digits, (size_t) len);
}


void
llmgw_line_hex(llmgw_line_t *out, const char *key, uint64_t value)
{
    int   len;
    char  digits[20];

    line_key(out, key);
    len = snprintf(digits, sizeof(digits), "\"%016" PRIx64 "\"", value);
    line_put(out, digits, (size_t) len);
}


/* HTML's special characters are escaped, too, since logs are shown in pages. */
static void
line_markup(llmgw_line_t *out, char c)
{
    char  escaped[8];

    snprintf(escaped, sizeof(escaped), "\\u%04x", (unsigned char) c);
    line_put(out, escaped, 6);
}


static int
line_is_markup(char c)
{
    return c == '<' || c == '>' || c == '&';
}


void
llmgw_line_text(llmgw_line_t *out, const char *key,
    llmgw_line_text_t text)
{
    char    escaped[LLMGW_JSON_STRING_BYTES(LINE_RUN_BYTES)], *end;
    size_t  i, n;

    line_key(out, key);
    line_put(out, "\"", 1);

    for (i = 0; i < text.len; i += n) {

        if (line_is_markup(text.text[i])) {
            line_markup(out, text.text[i]);
            n = 1;
            continue;
        }

        for (n = 1; n < LINE_RUN_BYTES && i + n < text.len
                    && !line_is_markup(text.text[i + n]); n++)
        {
            /* void */
        }

        end = llmgw_json_escape(escaped, text.text + i, n);
        line_put(out, escaped, (size_t) (end - escaped));
    }

    line_put(out, "\"", 1);
}


void
llmgw_line_word(llmgw_line_t *out, const char *key, const char *word)
{
    llmgw_line_text(out, key, (llmgw_line_text_t) { word, strlen(word) });
}


void
llmgw_line_end(llmgw_line_t *out)
{
    line_put(out, "\n", 1);
    out->last = '[';
}
