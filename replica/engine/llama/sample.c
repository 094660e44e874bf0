
/*
 * Sampling.  A vocabulary has up to 250,000 tokens, and top_p or top_k keep
 * some hundred of them: a heap gives those in order without sorting the rest.
 * Equal logits go by id, so that the order is total.
 */

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "replica/engine/llama/sample.h"


static int
sample_is_before(const sample_room_t *room, uint32_t a, uint32_t b)
{
    float  x, y;

    x = room->logits[a];
    y = room->logits[b];

    return x > y || (x == y && a < b);
}


static void
sample_sink(sample_room_t *room, uint32_t i, uint32_t n)
{
    uint32_t  child, moved;

    moved = room->order[i];

    while ((child = 2 * i + 1) < n) {
        if (child + 1 < n && sample_is_before(room, room->order[child + 1],
                                              room->order[child]))
        {
            child++;
        }

        if (!sample_is_before(room, room->order[child], moved)) {
            break;
        }

        room->order[i] = room->order[child];
        i = child;
    }

    room->order[i] = moved;
}


/* Lists all tokens with more than this, by their ids, and returns their
   number. */
static uint32_t
sample_list(sample_room_t *room, float least)
{
    uint32_t  i, n;

    for (n = 0, i = 0; i < room->n; i++) {
        if (room->logits[i] > least) {
            room->order[n++] = i;
        }
    }

    return n;
}


static void
sample_heap(sample_room_t *room, uint32_t n)
{
    uint32_t  i;

    for (i = n / 2; i > 0; i--) {
        sample_sink(room, i - 1, n);
    }
}


/* Moves the top of the heap after its end, which is then n - 1. */
static uint32_t
sample_pop(sample_room_t *room, uint32_t n)
{
    uint32_t  top;

    top = room->order[0];
    room->order[0] = room->order[n - 1];
    room->order[n - 1] = top;
    sample_sink(room, 0, n - 1);

    return top;
}


static uint32_t
sample_largest(const sample_room_t *room)
{
    uint32_t  i, best;

    best = 0;

    for (i = 1; i < room->n; i++) {
        if (room->logits[i] > room->logits[best]) {
            best = i;
        }
    }

    return best;
}


/* Copies the logits; a NaN becomes one that is never chosen. */
static void
sample_copy(sample_room_t *room, const float *logits)
{
    uint32_t  i;

    for (i = 0; i < room->n; i++) {
        room->logits[i] = isnan(logits[i]) ? -INFINITY : logits[i];
    }
}


static void
sample_penalize(const sample_params_t *p, sample_room_t *room,
    const sample_input_t *input)
{
    float     *logit;
    size_t     i;
    uint32_t   id;

    if (p->repeat_penalty == 1 && p->frequency_penalty == 0
        && p->presence_penalty == 0)
    {
        return;
    }

    for (i = 0; i < input->nbefore; i++) {
        room->counts[input->before[i]]++;
    }

    for (i = 0; i < input->nbefore; i++) {
        id = input->before[i];
        logit = &room->logits[id];

        if (room->counts[id] == 0) {
            continue;
        }

        *logit = *logit > 0 ? *logit / p->repeat_penalty
                            : *logit * p->repeat_penalty;
        *logit -= (float) room->counts[id] * p->frequency_penalty
                  + p->presence_penalty;
        room->counts[id] = 0;
    }
}


static void
sample_adjust(const sample_params_t *p, sample_room_t *room,
    const sample_input_t *input)
{
    size_t  i;

    sample_copy(room, input->logits);

    for (i = 0; i < p->nbias; i++) {
        if (p->bias[i].id < room->n) {
            room->logits[p->bias[i].id] += p->bias[i].bias;
        }
    }

    sample_penalize(p, room, input);

    for (i = 0; i < input->nbanned; i++) {
        room->logits[input->banned[i]] = -INFINITY;
    }
}


/* A number from 0 to below 1. */
static double
sample_chance(uint64_t seed, uint64_t position)
{
    uint64_t  in[2] = { seed, position };

    return (double) (XXH3_64bits(in, sizeof(in)) >> 11) * 0x1p-53;
}


/* Makes weights of logits: 1 for the largest, 0 for tokens that cannot be
   chosen. */
static double
sample_weigh(sample_room_t *room, uint32_t best, float temperature)
{
    float     top;
    double    sum;
    uint32_t  i;

    top = room->logits[best];
    sum = 0;

    for (i = 0; i < room->n; i++) {
        room->logits[i] = expf((room->logits[i] - top) / temperature);
        sum += room->logits[i];
    }

    return sum;
}


/*
 * Cuts the tail off.  The tokens that are kept are at the end of room->order,
 * the best one last; returns their number, and sets the sum of their weights.
 * n: tokens in the heap.
 */
static uint32_t
sample_keep(const sample_params_t *p, sample_room_t *room, uint32_t n,
    double *sum)
{
    float     weight;
    double    kept;
    uint32_t  i, limit, popped;

    limit = n;
    popped = 0;

    if (p->top_k > 0 && p->top_k < n) {
        limit = p->top_k;

        for (*sum = 0; popped < limit; popped++) {
            *sum += room->logits[sample_pop(room, n - popped)];
        }
    }

    kept = 0;

    for (i = 0; i < limit && (i == 0 || kept < p->top_p * *sum); i++) {
        if (i >= popped) {
            (void) sample_pop(room, n - i);
        }

        weight = room->logits[room->order[n - 1 - i]];

        if (i > 0 && weight < p->min_p) {
            break;
        }

        kept += weight;
    }

    *sum = kept;

    return i;
}


/* Draws one of n tokens by their weights; sum: of all weights. */
static uint32_t
sample_draw(const sample_room_t *room, const uint32_t *tokens, uint32_t n,
    double left)
{
    uint32_t  i;

    for (i = 0; i + 1 < n; i++) {
        left -= room->logits[tokens[i]];

        if (left < 0) {
            break;
        }
    }

    return tokens[i];
}


uint32_t
sample_token(const sample_params_t *p, sample_room_t *room,
    const sample_input_t *input)
{
    double    sum;
    uint32_t  n, best, kept;

    sample_adjust(p, room, input);
    best = sample_largest(room);

    if (!(p->temperature > 0) || !isfinite(room->logits[best])) {
        return best;
    }

    sum = sample_weigh(room, best, p->temperature);
    n = sample_list(room, 0);
    kept = n;

    if (p->top_k > 0 || p->top_p < 1 || p->min_p > 0) {
        sample_heap(room, n);
        kept = sample_keep(p, room, n, &sum);
    }

    return sample_draw(room, room->order + n - kept, kept,
                       sum * sample_chance(p->seed, input->position));
}


void
sample_logprobs(const sample_params_t *p, sample_room_t *room,
    const float *logits, uint32_t id, sample_logprobs_t *out)
{
    float     top;
    double    sum;
    uint32_t  i, n;

    sample_copy(room, logits);
    top = room->logits[sample_largest(room)];

    for (sum = 0, i = 0; i < room->n; i++) {
        sum += exp(room->logits[i] - top);
    }

    out->logprob = (float) (room->logits[id] - top - log(sum));
    out->ntop = 0;

    if (p->top == 0) {
        return;
    }

    n = sample_list(room, -INFINITY);
    sample_heap(room, n);

    while (out->ntop < p->top && out->ntop < n) {
        i = sample_pop(room, n - out->ntop);
        out->top[out->ntop].id = i;
        out->top[out->ntop].logprob = (float) (room->logits[i] - top
                                               - log(sum));
        out->ntop++;
    }
}


int
sample_room_init(sample_room_t *room, uint32_t n)
{
    room->n = n;
    room->logits = malloc(n * sizeof(float));
    room->order = malloc(n * sizeof(uint32_t));
    room->counts = calloc(n, sizeof(uint32_t));

    if (room->logits == NULL || room->order == NULL || room->counts == NULL) {
        sample_room_done(room);
        return -1;
    }

    return 0;
}


void
sample_room_done(sample_room_t *room)
{
    free(room->logits);
    free(room->order);
    free(room->counts);
    memset(room, 0, sizeof(*room));
}
