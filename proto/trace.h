
/*
 * W3C Trace Context, Level 1: the `traceparent` that a caller hands on.
 *
 *     00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01
 *     version   trace id                  span id          flags
 *
 * A version that is not known is read as far as it is: what follows the flags
 * is left out, and what is handed on is version 00.
 */

#ifndef LLMGW_TRACE_H
#define LLMGW_TRACE_H

#include <stddef.h>
#include <stdint.h>


#define LLMGW_TRACE_ID_BYTES      33        /* as text, with the NUL */
#define LLMGW_TRACE_SPAN_BYTES    17
#define LLMGW_TRACE_PARENT_BYTES  56

/* The least that Level 1 asks everybody to hand on. */
#define LLMGW_TRACE_STATE_MAX     512

typedef struct {
    char     id[LLMGW_TRACE_ID_BYTES];
    uint8_t  flags;
} llmgw_trace_t;

/* What a caller sent, and the span of the last call made under it. */
typedef struct {
    llmgw_trace_t  parent;
    const char    *state;           /* NULL: none */
    uint64_t       span;            /* 0: no call yet */
    char           text[LLMGW_TRACE_PARENT_BYTES];
} llmgw_trace_span_t;


/* 0, and *trace as it was: not valid, so that there is no trace. */
int llmgw_trace_parse(llmgw_trace_t *trace, const char *value, size_t len);

/* The traceparent of a child with that span id, which is not 0. */
void llmgw_trace_format(const llmgw_trace_t *trace, uint64_t span,
    char text[LLMGW_TRACE_PARENT_BYTES]);

/*
 * How much of a tracestate is handed on: all of it, or as many of its members
 * from the left as fit LLMGW_TRACE_STATE_MAX, without blanks behind them; 0
 * where it holds what no header may hold.
 */
size_t llmgw_trace_state_len(const char *value, size_t len);

#endif /* LLMGW_TRACE_H */
