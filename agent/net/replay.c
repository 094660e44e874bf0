
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "net/replay.h"


#define REPLAY_EPOCHS     2
#define REPLAY_NBUCKETS   4096
#define REPLAY_WORD_BITS  64

typedef struct {
    uint64_t  epoch;
    uint64_t  top;              /* highest counter seen; 0: not used */
    uint64_t  had[REPLAY_WINDOW / REPLAY_WORD_BITS];    /* a ring of bits:
                                                           counters seen */
} replay_window_t;

typedef struct replay_sender_s  replay_sender_t;

struct replay_sender_s {
    char              id[LLMGW_MEMBERS_NAME_BYTES];
    uint64_t          heard_us;
    replay_sender_t  *chain;        /* the next in its bucket */
    replay_sender_t  *older;        /* in the order of heard_us */
    replay_sender_t  *newer;
    replay_window_t   windows[REPLAY_EPOCHS];
};

struct replay_s {
    size_t            n;
    replay_sender_t  *oldest;
    replay_sender_t  *newest;
    replay_sender_t  *buckets[REPLAY_NBUCKETS];
};


/* --- one window */

static uint64_t *
replay_word(replay_window_t *window, uint64_t counter, uint64_t *bit)
{
    counter %= REPLAY_WINDOW;
    *bit = 1ULL << counter % REPLAY_WORD_BITS;

    return &window->had[counter / REPLAY_WORD_BITS];
}


/* No counter between the old top and the new one has been seen yet. */
static void
replay_window_raise(replay_window_t *window, uint64_t top)
{
    uint64_t   i, bit;
    uint64_t  *word;

    if (top - window->top >= REPLAY_WINDOW) {
        memset(window->had, 0, sizeof(window->had));

    } else {
        for (i = window->top; i != top; i++) {
            word = replay_word(window, i + 1, &bit);
            *word &= ~bit;
        }
    }

    window->top = top;
}


static int
replay_window_take(replay_window_t *window, uint64_t counter)
{
    uint64_t   bit;
    uint64_t  *word;

    if (counter > window->top) {
        replay_window_raise(window, counter);

    } else if (window->top - counter >= REPLAY_WINDOW) {
        return 0;
    }

    word = replay_word(window, counter, &bit);

    if (*word & bit) {
        return 0;
    }

    *word |= bit;

    return 1;
}


static void
replay_window_begin(replay_window_t *window, uint64_t epoch)
{
    memset(window, 0, sizeof(replay_window_t));
    window->epoch = epoch;
}


/*
 * The window of an epoch, or the one that this epoch may take over; NULL: none.
 */
static replay_window_t *
replay_sender_window(replay_sender_t *sender, uint64_t epoch, uint64_t now_us)
{
    size_t            i;
    replay_window_t  *window, *lower;

    lower = &sender->windows[0];

    for (i = 0; i < REPLAY_EPOCHS; i++) {
        window = &sender->windows[i];

        if (window->top != 0 && window->epoch == epoch) {
            return window;
        }

        if (window->top == 0
            || (lower->top != 0 && window->epoch < lower->epoch))
        {
            lower = window;
        }
    }

    if (lower->top != 0 && epoch < lower->epoch
        && now_us - sender->heard_us < REPLAY_SILENCE_US)
    {
        return NULL;
    }

    replay_window_begin(lower, epoch);

    return lower;
}


/* --- senders, by id and by age */

static replay_sender_t **
replay_bucket(replay_t *replay, const char *id)
{
    uint32_t  hash;

    for (hash = 2166136261u; *id != '\0'; id++) {       /* FNV-1a */
        hash = (hash ^ (uint8_t) *id) * 16777619u;
    }

    return &replay->buckets[hash % REPLAY_NBUCKETS];
}


static void
replay_unlink(replay_t *replay, replay_sender_t *sender)
{
    if (sender->older != NULL) {
        sender->older->newer = sender->newer;

    } else {
        replay->oldest = sender->newer;
    }

    if (sender->newer != NULL) {
        sender->newer->older = sender->older;

    } else {
        replay->newest = sender->older;
    }
}


static void
replay_link(replay_t *replay, replay_sender_t *sender)
{
    sender->older = replay->newest;
    sender->newer = NULL;

    if (replay->newest != NULL) {
        replay->newest->newer = sender;

    } else {
        replay->oldest = sender;
    }

    replay->newest = sender;
}


static replay_sender_t *
replay_find(replay_t *replay, const char *id)
{
    replay_sender_t  *sender;

    for (sender = *replay_bucket(replay, id);
         sender != NULL && strcmp(sender->id, id) != 0;
         sender = sender->chain) { /* void */ }

    return sender;
}


static void
replay_forget(replay_t *replay, replay_sender_t *sender)
{
    replay_sender_t  **place;

    place = replay_bucket(replay, sender->id);

    while (*place != sender) {
        place = &(*place)->chain;
    }

    *place = sender->chain;
    replay_unlink(replay, sender);
    free(sender);
    replay->n--;
}


static replay_sender_t *
replay_add(replay_t *replay, const char *id)
{
    replay_sender_t  *sender, **bucket;

    assert(strlen(id) < LLMGW_MEMBERS_NAME_BYTES);

    if (replay->n == REPLAY_MAX_SENDERS) {
        replay_forget(replay, replay->oldest);
    }

    sender = calloc(1, sizeof(replay_sender_t));
    if (sender == NULL) {
        return NULL;
    }

    strcpy(sender->id, id);
    bucket = replay_bucket(replay, id);
    sender->chain = *bucket;
    *bucket = sender;
    replay_link(replay, sender);
    replay->n++;

    return sender;
}


replay_t *
replay_create(void)
{
    return calloc(1, sizeof(replay_t));
}


void
replay_destroy(replay_t *replay)
{
    while (replay->oldest != NULL) {
        replay_forget(replay, replay->oldest);
    }

    free(replay);
}


int
replay_take(replay_t *replay, const char *sender_id, uint64_t epoch,
    uint64_t counter, uint64_t now_us)
{
    replay_sender_t  *sender;
    replay_window_t  *window;

    sender = replay_find(replay, sender_id);

    if (sender == NULL) {
        sender = replay_add(replay, sender_id);
    }

    if (sender == NULL || counter == 0) {
        return 0;
    }

    window = replay_sender_window(sender, epoch, now_us);

    if (window == NULL || !replay_window_take(window, counter)) {
        return 0;
    }

    sender->heard_us = now_us;
    replay_unlink(replay, sender);
    replay_link(replay, sender);

    return 1;
}


size_t
replay_count(const replay_t *replay)
{
    return replay->n;
}
