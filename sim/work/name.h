
/*
 * Names that occur many times: each is kept once, so two names are equal
 * exactly if their pointers are.  Ids count from 0 in the order of first use;
 * the empty name is always id 0.
 */

#ifndef WORK_NAME_H
#define WORK_NAME_H

#include <stddef.h>
#include <stdint.h>

#include "sim/work/arena.h"


typedef struct {
    uint32_t  id;
    uint32_t  len;
    char      text[];           /* ends with a NUL */
} work_name_t;

typedef struct {
    work_arena_t         arena;
    const work_name_t  **slots;         /* a power of two, half full at most */
    size_t               nslots;
    size_t               n;             /* names, and the next id */
} work_names_t;

void work_names_init(work_names_t *names);
void work_names_done(work_names_t *names);

/* The name of these bytes; never NULL. */
const work_name_t *work_name(work_names_t *names, const char *text,
    size_t len);

#endif /* WORK_NAME_H */
