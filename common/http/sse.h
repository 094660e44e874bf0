
/*
 * A parser of server-sent events (WHATWG HTML, 9.2), fed with any slices.
 *
 * It keeps only the data of an event: the lines of `data`, joined by line
 * feeds. `error`, which old llama.cpp servers send instead, is marked as such.
 * Comments and other fields are skipped.  An event that stands whole in one
 * slice is handed over without a copy.
 *
 * Beyond the standard: an event that the end of the body cuts off after a line
 * counts (sse_end()), since some servers leave the last empty line out.
 */

#ifndef SSE_H
#define SSE_H

#include <stddef.h>


/*
 * Of one event, the line under way included.  A chunk has some hundred bytes,
 * but vLLM's first one may list the ids of the prompt: 7 MB for a million.
 */
#define SSE_EVENT_BYTES  (8 * 1024 * 1024)

typedef enum {
    SSE_DONE = 0,
    SSE_STOPPED,            /* by the callback */
    SSE_ENOMEM = -1,
    SSE_ELIMIT = -2         /* an event over SSE_EVENT_BYTES */
} sse_rc_t;

/*
 * The data of one event, never empty, valid until it returns.  Anything but 0
 * stops the parser: the rest of the slice is not looked at.
 */
typedef int (*sse_event_pt)(void *arg, const char *data, size_t len,
    int is_error);

typedef struct {
    sse_event_pt   on_event;
    void          *arg;

    /* sse.c's own */
    const char    *value;       /* the data, still in the slice; or NULL */
    size_t         value_len;
    char          *buf;         /* the data, then a line under way */
    size_t         data_len;
    size_t         line_len;
    size_t         capacity;
    unsigned       bom;         /* bytes of it that came; 3: no more */
    int            has_data;
    int            is_error;
    int            skips_lf;    /* the line ended with a CR */
} sse_t;


void sse_init(sse_t *sse, sse_event_pt on_event, void *arg);

/* Gives its memory back; it may be initialized again. */
void sse_done(sse_t *sse);

/* Anything but SSE_DONE is the last: only sse_done() may follow. */
sse_rc_t sse_feed(sse_t *sse, const char *bytes, size_t len);

/* The body has ended as it should. */
sse_rc_t sse_end(sse_t *sse);

#endif /* SSE_H */
