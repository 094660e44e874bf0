
/*
 * Turns tokens that may be sent (hold.h) into messages to the gateway.
 *
 *   PLAIN   text and nothing else: Infer, and gateways that know only text
 *   TEXT    text, ids, the end and the usage: the gateway writes the JSON
 *   CHUNKS  the JSON of each chunk: a stream with logprobs
 *   WHOLE   one answer, as raw pieces: logprobs, and no stream
 */

#ifndef ANSWER_H
#define ANSWER_H

#include <jansson.h>

#include "replica/engine/llama/core.h"
#include "replica/engine/llama/hold.h"
#include "replica/engine/run.h"


typedef enum {
    ANSWER_PLAIN = 0,
    ANSWER_TEXT,
    ANSWER_CHUNKS,
    ANSWER_WHOLE
} answer_form_t;

typedef struct {
    answer_form_t         form;
    run_t                *run;
    const core_plugin_t  *plugin;
    core_t               *core;
    hold_t               *hold;

    int                   is_openai;
    int                   is_chat;
    char                 *id;           /* CHUNKS and WHOLE */
    char                 *model;
    int64_t               created;
    int                   has_role;     /* the role was sent */
    uint32_t              want;

    uint32_t              prompt_tokens;
    uint64_t              prompt_hash;
    int                   has_prompt;   /* these two were sent */
    uint32_t              completion_tokens;    /* delivered ones included */
    uint32_t              skip;         /* PLAIN: messages that the client
                                           already has from another replica */
    size_t                offset;       /* characters before this message */
    json_t               *logprobs;     /* WHOLE: collected so far */
    char                 *text;
    size_t                text_len;
    size_t                text_size;
} answer_t;


/* Reads the run's request, which is not needed after answer_shape(). */
void answer_init(answer_t *answer, run_t *run);

/* 0, or -1: out of memory. */
int answer_shape(answer_t *answer, int is_logprobs);
void answer_done(answer_t *answer);

/* Sends what hold_take() has let through.  0, or -1: out of memory. */
int answer_tokens(answer_t *answer);

/* After the last hold_take(): sends the rest, and the end.  0, or -1: out of
   memory. */
int answer_end(answer_t *answer, const char *reason);

/* Sends a sign that the engine works although no token comes.  0, or -1: out of
   memory. */
int answer_progress(answer_t *answer);

/*
 * Sends how many shards failed and what the last one did, if the gateway reads
 * more than text; before the end, or before a status that is an error.  0, or
 * -1: out of memory.
 */
int answer_shards(answer_t *answer, uint32_t failures, const char *last);

/* Sends OpenAI's error, if the client speaks OpenAI's API.  0, or -1: out of
   memory. */
int answer_failure(answer_t *answer, unsigned status, const char *message,
    const char *param, const char *code);

#endif /* ANSWER_H */
