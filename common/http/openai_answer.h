
/*
 * An answer of OpenAI's API, as a client reads it: the events of a stream, or
 * one object.  Bytes in, text out; no sockets.
 *
 * A stream was complete if a finish_reason came and [DONE] after it.
 * The reason of a failure, or the server's own error, is in `error`.
 */

#ifndef OPENAI_ANSWER_H
#define OPENAI_ANSWER_H

#include <jansson.h>
#include <stddef.h>

#include "common/http/sse.h"


/* Most bytes of an answer that is one object. */
#define OPENAI_ANSWER_WHOLE_BYTES  (64 << 20)

#define OPENAI_ANSWER_REASON_BYTES  64
#define OPENAI_ANSWER_ERROR_BYTES   1024

typedef struct {
    /* 0; or -1: the text cannot be written. */
    int   (*on_text)(void *data, const char *text, size_t len);
    int   (*on_object)(void *data, const json_t *object);
} openai_answer_callbacks_t;

typedef struct {
    const openai_answer_callbacks_t  *callbacks;
    void      *data;
    sse_t      sse;             /* for a stream */
    char      *whole;           /* otherwise: the bytes so far */
    size_t     whole_len;
    size_t     whole_size;
    char       finish_reason[OPENAI_ANSWER_REASON_BYTES];
    char       error[OPENAI_ANSWER_ERROR_BYTES];
    unsigned   is_stream:1;
    unsigned   is_done:1;       /* [DONE] has come */
} openai_answer_t;


void openai_answer_init(openai_answer_t *answer,
    const openai_answer_callbacks_t *callbacks, void *data);
void openai_answer_done(openai_answer_t *answer);

/*
 * Takes bytes of the body; is_stream is set before the first call.  0; or -1:
 * read no further, `error` has the reason.
 */
int openai_answer_feed(openai_answer_t *answer, const char *bytes, size_t len);

/*
 * To be called when the body has ended without an error of HTTP.  NULL: the
 * answer is complete; otherwise what is wrong with it.
 */
const char *openai_answer_end(openai_answer_t *answer, long status);

#endif /* OPENAI_ANSWER_H */
