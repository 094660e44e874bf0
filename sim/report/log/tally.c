
/*
 * Counts how often each name occurs: rows in order of first use, found by a
 * hash.
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/report/log/tally.h"


#define TALLY_OTHERS  "(others)"


/* FNV-1a (Fowler, Noll, Vo). */
static size_t
tally_hash(const char *name)
{
    uint64_t  h;

    for (h = 0xcbf29ce484222325ULL; *name != '\0'; name++) {
        h = (h ^ (unsigned char) *name) * 0x100000001b3ULL;
    }

    return (size_t) (h ^ (h >> 32));
}


static uint32_t *
tally_slot(const report_tally_t *t, const char *name)
{
    size_t  i;

    i = tally_hash(name) & (t->nslots - 1);

    while (t->slots[i] != 0
           && strcmp(t->rows[t->slots[i] - 1].name, name) != 0)
    {
        i = (i + 1) & (t->nslots - 1);
    }

    return &t->slots[i];
}


static int
tally_grow(report_tally_t *t)
{
    size_t               i, n;
    uint32_t            *slots;
    report_tally_row_t  *rows;

    n = t->nslots == 0 ? 64 : 2 * t->nslots;
    rows = realloc(t->rows, n / 2 * sizeof(*rows));
    t->rows = rows != NULL ? rows : t->rows;
    slots = calloc(n, sizeof(*slots));

    if (rows == NULL || slots == NULL) {
        free(slots);
        return -1;
    }

    free(t->slots);
    t->slots = slots;
    t->nslots = n;

    for (i = 0; i < t->n; i++) {
        *tally_slot(t, t->rows[i].name) = (uint32_t) i + 1;
    }

    return 0;
}


int
report_tally(report_tally_t *tally, const char *name)
{
    char       cut[REPORT_TALLY_BYTES];
    uint32_t  *slot;

    if (2 * tally->n >= tally->nslots && tally_grow(tally) != 0) {
        return -1;
    }

    snprintf(cut, sizeof(cut), "%s", name);
    slot = tally_slot(tally, cut);

    if (*slot == 0 && tally->n >= REPORT_TALLY_MAX) {
        strcpy(cut, TALLY_OTHERS);
        slot = tally_slot(tally, cut);
    }

    if (*slot == 0) {
        memcpy(tally->rows[tally->n].name, cut, sizeof(cut));
        tally->rows[tally->n].n = 0;
        *slot = (uint32_t) ++tally->n;
    }

    tally->rows[*slot - 1].n++;

    return 0;
}


static int
tally_cmp(const void *a, const void *b)
{
    const report_tally_row_t  *x, *y;

    x = a;
    y = b;

    if (x->n != y->n) {
        return x->n > y->n ? -1 : 1;
    }

    return strcmp(x->name, y->name);
}


void
report_tally_sort(report_tally_t *tally)
{
    if (tally->n > 1) {
        qsort(tally->rows, tally->n, sizeof(*tally->rows), tally_cmp);
    }
}


void
report_tally_done(report_tally_t *tally)
{
    free(tally->rows);
    free(tally->slots);
    memset(tally, 0, sizeof(*tally));
}
