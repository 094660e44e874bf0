
#include <string.h>

#include "replica/engine/hits.h"


#define HITS_LOOK_MS  (HITS_WINDOW_MS / HITS_LOOKS)


/* The oldest look is kept until the next one is old enough. */
static void
hits_forget(hits_t *h, uint64_t now_ms)
{
    size_t  n;

    for (n = 0; n + 1 < h->n
                && now_ms - h->looks[n + 1].at_ms >= HITS_WINDOW_MS; n++)
    { /* void */ }

    h->n -= n;
    memmove(h->looks, h->looks + n, h->n * sizeof(hits_look_t));
}


static void
hits_keep(hits_t *h, uint64_t now_ms, uint64_t found, uint64_t looked_up)
{
    hits_forget(h, now_ms);

    if (h->n > 0 && now_ms - h->looks[h->n - 1].at_ms < HITS_LOOK_MS) {
        return;
    }

    h->looks[h->n++] = (hits_look_t) { now_ms, found, looked_up };
}


int32_t
hits_permille(hits_t *h, uint64_t now_ms, uint64_t found, uint64_t looked_up)
{
    const hits_look_t  *since;

    if (h->n > 0 && (found < h->looks[h->n - 1].found
                     || looked_up < h->looked_up))
    {
        memset(h, 0, sizeof(hits_t));
    }

    if (h->n == 0) {
        h->permille = -1;
        h->looked_up = looked_up;
        hits_keep(h, now_ms, found, looked_up);
        return -1;
    }

    if (looked_up != h->looked_up) {
        h->looked_up = looked_up;
        hits_forget(h, now_ms);
        since = &h->looks[0];
        h->permille = (int32_t) ((found - since->found) * 1000
                                 / (looked_up - since->looked_up));
        h->permille = h->permille > 1000 ? 1000 : h->permille;
    }

    hits_keep(h, now_ms, found, looked_up);

    return h->permille;
}
