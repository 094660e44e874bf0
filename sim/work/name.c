
/* The table of names: open addressing over FNV-1a. */

#include "sim/work/name.h"

#include <stdlib.h>
#include <string.h>

#define NAMES_FIRST_SLOTS  64


/* FNV-1a, 64 bits. */
static uint64_t
name_hash(const char *text, size_t len)
{
    size_t    i;
    uint64_t  hash;

    hash = 0xcbf29ce484222325ULL;

    for (i = 0; i < len; i++) {
        hash = (hash ^ (unsigned char) text[i]) * 0x100000001b3ULL;
    }

    return hash;
}


static const work_name_t **
names_slot(const work_names_t *names, const char *text, size_t len)
{
    size_t              at;
    const work_name_t  *name;

    at = name_hash(text, len) & (names->nslots - 1);

    while ((name = names->slots[at]) != NULL
           && (name->len != len || memcmp(name->text, text, len) != 0))
    {
        at = (at + 1) & (names->nslots - 1);
    }

    return &names->slots[at];
}


static void
names_resize(work_names_t *names, size_t nslots)
{
    size_t              i;
    work_names_t        grown;
    const work_name_t  *name;

    grown = *names;
    grown.nslots = nslots;
    grown.slots = work_arena_alloc(&grown.arena,
                                   nslots * sizeof(grown.slots[0]));

    for (i = 0; i < names->nslots; i++) {
        name = names->slots[i];

        if (name != NULL) {
            *names_slot(&grown, name->text, name->len) = name;
        }
    }

    *names = grown;
}


void
work_names_init(work_names_t *names)
{
    memset(names, 0, sizeof(*names));
    names_resize(names, NAMES_FIRST_SLOTS);
    work_name(names, "", 0);
}


void
work_names_done(work_names_t *names)
{
    work_arena_done(&names->arena);
}


const work_name_t *
work_name(work_names_t *names, const char *text, size_t len)
{
    work_name_t         *name;
    const work_name_t  **slot;

    slot = names_slot(names, text, len);

    if (*slot != NULL) {
        return *slot;
    }

    if (2 * (names->n + 1) > names->nslots) {
        names_resize(names, 2 * names->nslots);
        slot = names_slot(names, text, len);
    }

    name = work_arena_alloc(&names->arena, sizeof(*name) + len + 1);
    name->id = (uint32_t) names->n++;
    name->len = (uint32_t) len;
    memcpy(name->text, text, len);
    *slot = name;

    return name;
}
