
#include <stdlib.h>

#include "sim/fleet/agenda.h"


#define AGENDA_RANK_SHIFT  56


/* Starting a transfer and evicting share a rank; so do their opposites. */
static uint64_t
agenda_rank(agenda_kind_t kind)
{
    static const uint8_t  ranks[] = { 0, 1, 2, 4, 5, 5, 6, 6, 7 };

    return (uint64_t) ranks[kind] << AGENDA_RANK_SHIFT;
}


static inline int
agenda_is_before(const agenda_event_t *a, const agenda_event_t *b)
{
    return a->at_us != b->at_us ? a->at_us < b->at_us : a->order < b->order;
}


void
agenda_done(agenda_t *agenda)
{
    free(agenda->heap);
    *agenda = (agenda_t) { 0 };
}


static int
agenda_grow(agenda_t *agenda)
{
    size_t           max;
    agenda_event_t  *heap;

    if (agenda->n < agenda->max) {
        return 0;
    }

    max = agenda->max == 0 ? 256 : agenda->max * 2;
    heap = realloc(agenda->heap, max * sizeof(agenda_event_t));

    if (heap == NULL) {
        return -1;
    }

    agenda->heap = heap;
    agenda->max = max;

    return 0;
}


int
agenda_add(agenda_t *agenda, int64_t at_us, agenda_kind_t kind,
    uint32_t subject, uint32_t detail)
{
    size_t          i;
    agenda_event_t  event;

    if (agenda_grow(agenda) != 0) {
        return -1;
    }

    event = (agenda_event_t) {
        .at_us = at_us,
        .order = agenda_rank(kind) | agenda->serial++,
        .subject = subject,
        .detail = detail,
        .kind = kind
    };

    for (i = agenda->n++; i > 0; i = (i - 1) / 2) {

        if (!agenda_is_before(&event, &agenda->heap[(i - 1) / 2])) {
            break;
        }

        agenda->heap[i] = agenda->heap[(i - 1) / 2];
    }

    agenda->heap[i] = event;

    return 0;
}


const agenda_event_t *
agenda_next(const agenda_t *agenda)
{
    return agenda->n > 0 ? agenda->heap : NULL;
}


void
agenda_drop(agenda_t *agenda)
{
    size_t           i, child;
    agenda_event_t  *heap, last;

    heap = agenda->heap;
    last = heap[--agenda->n];

    for (i = 0; (child = 2 * i + 1) < agenda->n; i = child) {

        if (child + 1 < agenda->n
            && agenda_is_before(&heap[child + 1], &heap[child]))
        {
            child++;
        }

        if (!agenda_is_before(&heap[child], &last)) {
            break;
        }

        heap[i] = heap[child];
    }

    heap[i] = last;
}
