
/* Trace context: trace.h. */

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "proto/trace.h"


/* Offsets of the parts. */
#define ID         3
#define SPAN       36
#define FLAGS      53
#define END        55

#define KNOWN      0x03     /* flags: sampled, random trace id */


static int
digit(char c)
{
    if (c >= '0' && c <= '9') {
        return c - '0';
    }

    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}


/* Lower-case hexadecimal digits, not all 0 unless may_be_zero. */
static int
is_hex(const char *p, size_t n, int may_be_zero)
{
    size_t  i;
    int     any;

    any = may_be_zero;

    for (i = 0; i < n; i++) {
        if (digit(p[i]) == -1) {
            return 0;
        }

        any |= (p[i] != '0');
    }

    return any;
}


int
llmgw_trace_parse(llmgw_trace_t *trace, const char *value, size_t len)
{
    if (len < END
        || !is_hex(value, 2, 1) || memcmp(value, "ff", 2) == 0
        || value[ID - 1] != '-' || !is_hex(value + ID, 32, 0)
        || value[SPAN - 1] != '-' || !is_hex(value + SPAN, 16, 0)
        || value[FLAGS - 1] != '-' || !is_hex(value + FLAGS, 2, 1))
    {
        return 0;
    }

    if (len > END && (memcmp(value, "00", 2) == 0 || value[END] != '-')) {
        return 0;
    }

    memcpy(trace->id, value + ID, 32);
    trace->id[32] = '\0';
    trace->flags = (uint8_t) ((digit(value[FLAGS]) << 4
                               | digit(value[FLAGS + 1])) & KNOWN);

    return 1;
}


void
llmgw_trace_format(const llmgw_trace_t *trace, uint64_t span,
    char text[LLMGW_TRACE_PARENT_BYTES])
{
    snprintf(text, LLMGW_TRACE_PARENT_BYTES, "00-%s-%016" PRIx64 "-%02x",
             trace->id, span, trace->flags);
}


size_t
llmgw_trace_state_len(const char *value, size_t len)
{
    size_t  i, end;

    end = 0;

    for (i = 0; i < len; i++) {
        if ((value[i] < ' ' && value[i] != '\t') || value[i] > '~') {
            return 0;
        }

        if (value[i] == ',' && i <= LLMGW_TRACE_STATE_MAX) {
            end = i;
        }
    }

    if (len > LLMGW_TRACE_STATE_MAX) {
        len = end;
    }

    while (len && (value[len - 1] == ' ' || value[len - 1] == '\t')) {
        len--;
    }

    return len;
}
