
/* Bytes as a traceparent and a tracestate: the headers passed on are valid. */

#include <assert.h>
#include <string.h>

#include "proto/trace.h"


int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    char           text[LLMGW_TRACE_PARENT_BYTES];
    size_t         n;
    llmgw_trace_t  trace, again;

    if (llmgw_trace_parse(&trace, (const char *) data, len)) {
        llmgw_trace_format(&trace, 1, text);
        assert(strlen(text) == LLMGW_TRACE_PARENT_BYTES - 1);
        assert(llmgw_trace_parse(&again, text, strlen(text)));
        assert(strcmp(again.id, trace.id) == 0);
        assert(again.flags == trace.flags);
    }

    n = llmgw_trace_state_len((const char *) data, len);
    assert(n <= len && n <= LLMGW_TRACE_STATE_MAX);
    assert(memchr(data, '\n', n) == NULL);

    return 0;
}
