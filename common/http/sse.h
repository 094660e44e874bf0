
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
 * Limit of an event, the unfinished line included.  A chunk has some hundred
 * bytes, but vLLM's first one may list the ids of the prompt: 7 MB for a
 * million.
 */
#define SSE_EVENT_BYTES  (8 * 1024 * 1024)

typedef enum {
    SSE_DONE = 0,
    SSE_STOPPED,            /* the callback stopped the parser */
    SSE_ENOMEM = -1,
    SSE_ELIMIT = -2         /* an event over SSE_EVENT_BYTES */
} sse_rc_t;

/*
 * Gets the data of one event, which is never empty and is valid until the
 * function returns.  If it returns anything but 0, the parser stops: the rest
 * of the slice is not looked at.
 */
typedef int (*sse_event_pt)(void *arg, const char *data, size_t len,
    int is_error);

typedef struct {
    sse_event_pt   on_event;
    void          *arg;

    /* private to sse.c */
    const char    *value;       /* the data, still in the slice; or NULL */
    size_t         value_len;
    char          *buf;         /* the data, then the unfinished line */
    size_t         data_len;
    size_t         line_len;
    size_t         capacity;
    unsigned       bom;         /* its bytes seen so far; 3: no longer
                                   expected */
    int            has_data;
    int            is_error;
    int            skips_lf;    /* an LF that comes now ends no line */
} sse_t;


void sse_init(sse_t *sse, sse_event_pt on_event, void *arg);

/* Frees the memory; the parser may be initialized again. */
void sse_done(sse_t *sse);

/* After any result but SSE_DONE, only sse_done() may be called. */
sse_rc_t sse_feed(sse_t *sse, const char *bytes, size_t len);

/* The body has ended in order. */
sse_rc_t sse_end(sse_t *sse);

#endif /* SSE_H */
