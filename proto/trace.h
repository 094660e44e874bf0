
/*
 * W3C Trace Context, Level 1: the `traceparent` that a caller sends.
 *
 *     00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01
 *     version   trace id                  span id          flags
 *
 * Of an unknown version, the parts up to the flags are read and the rest is
 * dropped; what is passed on is version 00.
 */

#ifndef LLMGW_TRACE_H
#define LLMGW_TRACE_H

#include <stddef.h>
#include <stdint.h>


#define LLMGW_TRACE_ID_BYTES      33        /* as text, with the NUL */
#define LLMGW_TRACE_SPAN_BYTES    17
#define LLMGW_TRACE_PARENT_BYTES  56

/* The length that Level 1 requires every participant to pass on at least. */
#define LLMGW_TRACE_STATE_MAX     512

typedef struct {
    char     id[LLMGW_TRACE_ID_BYTES];
    uint8_t  flags;
} llmgw_trace_t;

/* The caller's context, and the span of the last call made under it. */
typedef struct {
    llmgw_trace_t  parent;
    const char    *state;           /* NULL: none */
    uint64_t       span;            /* 0: no call yet */
    char           text[LLMGW_TRACE_PARENT_BYTES];
} llmgw_trace_span_t;


/*
 * Parses a traceparent.  0: it is not valid, so there is no trace, and *trace
 * is unchanged.
 */
int llmgw_trace_parse(llmgw_trace_t *trace, const char *value, size_t len);

/* Writes the traceparent of a child with that span id, which is not 0. */
void llmgw_trace_format(const llmgw_trace_t *trace, uint64_t span,
    char text[LLMGW_TRACE_PARENT_BYTES]);

/*
 * How many bytes of a tracestate are forwarded: all, or as many of its members
 * from the left as fit LLMGW_TRACE_STATE_MAX, without trailing blanks; 0 where
 * it has a byte that no header may have.
 */
size_t llmgw_trace_state_len(const char *value, size_t len);

#endif /* LLMGW_TRACE_H */
