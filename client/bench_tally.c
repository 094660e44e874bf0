
/*
 * A list with linear search: errors are rare, and frequent kinds are among the
 * first rows.
 */

#include <string.h>

#include "client/bench_tally.h"


static void
bench_tally_text(char *to, const char *from)
{
    size_t  i;

    for (i = 0; i < BENCH_TALLY_TEXT_BYTES - 1 && from[i] != '\0'; i++) {
        to[i] = (unsigned char) from[i] < 0x20 || from[i] == 0x7f ? '?'
                                                                   : from[i];
    }

    to[i] = '\0';
}


static bench_tally_kind_t *
bench_tally_find(bench_tally_t *tally, const bench_tally_kind_t *wanted)
{
    size_t               i;
    bench_tally_kind_t  *kind;

    for (i = 0; i < tally->n; i++) {
        kind = &tally->kinds[i];

        if (kind->class == wanted->class
            && strcmp(kind->code, wanted->code) == 0
            && strcmp(kind->reason, wanted->reason) == 0)
        {
            return kind;
        }
    }

    return NULL;
}


void
bench_tally_add(bench_tally_t *tally, bench_tally_class_t class,
    const char *code, const char *reason)
{
    bench_tally_kind_t  *kind, wanted;

    wanted.class = class;
    wanted.count = 0;
    bench_tally_text(wanted.code, code);
    bench_tally_text(wanted.reason, reason);

    kind = bench_tally_find(tally, &wanted);

    if (kind == NULL && tally->n < BENCH_TALLY_KINDS) {
        kind = &tally->kinds[tally->n++];
        *kind = wanted;

        if (tally->n == BENCH_TALLY_KINDS) {
            bench_tally_text(kind->code, "other");
            bench_tally_text(kind->reason, "");
        }
    }

    if (kind == NULL) {
        kind = &tally->kinds[BENCH_TALLY_KINDS - 1];
    }

    kind->count++;
}


const char *
bench_tally_class_name(bench_tally_class_t class)
{
    static const char *const  names[] = { "status", "tokens", "transport" };

    return names[class];
}
