
/*
 * Chooses the next token by a model's logits.  Pure, so that the same logits,
 * the same text before and the same seed give the same token at any replica.
 *
 * In this order: bias; penalties; then with temperature 0 the largest logit,
 * else softmax at the temperature, top_k, top_p, min_p, and a draw by a number
 * that is a function of (seed, position) alone: a stream that continues at
 * another replica draws the same there.
 */

#ifndef SAMPLE_H
#define SAMPLE_H

#include <stddef.h>
#include <stdint.h>


#define SAMPLE_TOP_MAX   20         /* of OpenAI's API */
#define SAMPLE_BIAS_MAX  1024

typedef struct {
    uint32_t  id;
    float     bias;
} sample_bias_t;

typedef struct {
    float           temperature;        /* 0: greedy */
    float           top_p;              /* 1: off */
    float           min_p;              /* 0: off */
    uint32_t        top_k;              /* 0: off */
    float           repeat_penalty;     /* 1: off; these three look at all of
                                           the text, the prompt included */
    float           frequency_penalty;
    float           presence_penalty;
    uint64_t        seed;
    sample_bias_t  *bias;
    size_t          nbias;
    int             is_logprobs;
    uint32_t        top;                /* 0 .. SAMPLE_TOP_MAX */
} sample_params_t;

/* By the model's own logits, before bias, penalties and temperature. */
typedef struct {
    float     logprob;                  /* of the chosen token */
    uint32_t  ntop;
    struct {
        uint32_t  id;
        float     logprob;
    } top[SAMPLE_TOP_MAX];              /* the most likely first */
} sample_logprobs_t;

/* Room for one sampling at a time. */
typedef struct {
    float     *logits;
    uint32_t  *order;
    uint32_t  *counts;                  /* zero between two samplings */
    uint32_t   n;                       /* tokens in the vocabulary */
} sample_room_t;

typedef struct {
    const float     *logits;            /* room->n of them */
    const uint32_t  *before;            /* ids of the text: all below room->n */
    size_t           nbefore;
    uint64_t         position;          /* tokens generated before this one */
    const uint32_t  *banned;            /* ids that may not be chosen now */
    size_t           nbanned;
} sample_input_t;


/* 0, or -1: out of memory. */
int sample_room_init(sample_room_t *room, uint32_t n);
void sample_room_done(sample_room_t *room);

uint32_t sample_token(const sample_params_t *params, sample_room_t *room,
    const sample_input_t *input);

/* Computes the logprobs of `id` and of the params->top most likely tokens. */
void sample_logprobs(const sample_params_t *params, sample_room_t *room,
    const float *logits, uint32_t id, sample_logprobs_t *out);

#endif /* SAMPLE_H */
