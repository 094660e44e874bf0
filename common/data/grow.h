
/*
 * A growing array: an owner's pointer, how many items there are, and for how
 * many there is room.
 *
 *     if (grow(&list, &max, n + 1, sizeof(*list)) != 0) {
 *         return -1;
 *     }
 *
 *     list[n++] = item;
 */

#ifndef COMMON_DATA_GROW_H
#define COMMON_DATA_GROW_H

#include <stddef.h>
#include <stdlib.h>
#include <string.h>


#define GROW_FIRST  16

/*
 * Makes room for `items` items; an array that grows is at least doubled.  list
 * is the address of the owner's pointer, which is NULL at first; added items
 * are not initialized.  0; or -1: no memory, and nothing has changed.
 */
static inline int
grow(void *list, size_t *max, size_t items, size_t item_bytes)
{
    void    *now, *grown;
    size_t   room;

    if (items <= *max) {
        return 0;
    }

    room = *max > 0 ? 2 * *max : GROW_FIRST;
    room = room > items ? room : items;
    memcpy(&now, list, sizeof(now));
    grown = reallocarray(now, room, item_bytes);

    if (grown == NULL) {
        return -1;
    }

    memcpy(list, &grown, sizeof(grown));
    *max = room;

    return 0;
}

#endif /* COMMON_DATA_GROW_H */
