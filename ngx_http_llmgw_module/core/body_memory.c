
#include <string.h>

#include "core/body_memory.h"


/*
 * A holder is in two parts, its share and its client's, and in a list of each.
 */
#define NPARTS  2


static llmgw_body_memory_part_t *
part_of(const llmgw_holder_t *holder, int i)
{
    return i == 0 ? &holder->memory->requests
                  : &holder->memory->clients[holder->cell];
}


static void
part_append(llmgw_body_memory_part_t *part, llmgw_holder_t *holder, int i)
{
    holder->links[i].before = part->last;
    holder->links[i].behind = NULL;

    if (part->last) {
        part->last->links[i].behind = holder;
    } else {
        part->first = holder;
    }

    part->last = holder;
}


static void
part_remove(llmgw_body_memory_part_t *part, llmgw_holder_t *holder, int i)
{
    llmgw_holder_t  *before, *behind;

    before = holder->links[i].before;
    behind = holder->links[i].behind;

    if (before) {
        before->links[i].behind = behind;
    } else {
        part->first = behind;
    }

    if (behind) {
        behind->links[i].before = before;
    } else {
        part->last = before;
    }
}


/* 1: there would be room if all other bodies that are being read ended. */
static int
part_can_hold(const llmgw_body_memory_part_t *part,
    const llmgw_holder_t *holder, size_t more)
{
    size_t  fixed;

    fixed = part->whole + (holder->reads ? holder->bytes : 0);

    return fixed <= part->limit && more <= part->limit - fixed;
}


static void
part_make_room(llmgw_body_memory_part_t *part,
    const llmgw_holder_t *holder, int i, size_t more)
{
    llmgw_holder_t  *idle;

    while (more > part->limit - part->held) {
        idle = part->first != holder ? part->first
                                     : holder->links[i].behind;
        idle->end(idle);
    }
}


void
llmgw_body_memory_init(llmgw_body_memory_t *memory, size_t bytes,
    int has_clients)
{
    uint32_t  i;

    memset(memory, 0, sizeof(llmgw_body_memory_t));

    memory->limit[LLMGW_SHARE_REQUESTS] = bytes / 2;
    memory->limit[LLMGW_SHARE_ANSWERS] = bytes / 4;
    memory->limit[LLMGW_SHARE_RESUME] = bytes / 4;

    memory->requests.limit = bytes / 2;

    for (i = 0; i < LLMGW_BODY_MEMORY_CELLS; i++) {
        memory->clients[i].limit = has_clients ? bytes / 4 : bytes / 2;
    }
}


int
llmgw_body_memory_take(llmgw_body_memory_t *memory, llmgw_share_t share,
    size_t bytes)
{
    if (bytes > memory->limit[share] - memory->held[share]) {
        return 0;
    }

    memory->held[share] += bytes;

    return 1;
}


void
llmgw_body_memory_give(llmgw_body_memory_t *memory, llmgw_share_t share,
    size_t bytes)
{
    memory->held[share] -= bytes;
}


void
llmgw_holder_init(llmgw_holder_t *holder, llmgw_body_memory_t *memory,
    uint64_t client, void (*end)(llmgw_holder_t *holder))
{
    memset(holder, 0, sizeof(llmgw_holder_t));

    holder->memory = memory;
    holder->cell = (uint32_t) (client % LLMGW_BODY_MEMORY_CELLS);
    holder->reads = 1;
    holder->end = end;
}


int
llmgw_holder_hold(llmgw_holder_t *holder, size_t bytes)
{
    int                    i, was_listed, is_listed;
    size_t                 more;
    llmgw_body_memory_part_t  *part;

    if (bytes > holder->bytes) {
        more = bytes - holder->bytes;

        if (!part_can_hold(part_of(holder, 0), holder, more)
            || !part_can_hold(part_of(holder, 1), holder, more))
        {
            return 0;
        }

        part_make_room(part_of(holder, 1), holder, 1, more);
        part_make_room(part_of(holder, 0), holder, 0, more);
    }

    was_listed = holder->reads && holder->bytes > 0;
    is_listed = holder->reads && bytes > 0;

    for (i = 0; i < NPARTS; i++) {
        part = part_of(holder, i);
        part->held += bytes - holder->bytes;

        if (!holder->reads) {
            part->whole += bytes - holder->bytes;
        }

        if (was_listed && !is_listed) {
            part_remove(part, holder, i);

        } else if (is_listed && !was_listed) {
            part_append(part, holder, i);
        }
    }

    holder->bytes = bytes;

    return 1;
}


void
llmgw_holder_received(llmgw_holder_t *holder, uint64_t now_ms)
{
    int  i;

    holder->received_ms = now_ms;

    if (!holder->reads || holder->bytes == 0) {
        return;
    }

    for (i = 0; i < NPARTS; i++) {
        part_remove(part_of(holder, i), holder, i);
        part_append(part_of(holder, i), holder, i);
    }
}


void
llmgw_holder_whole(llmgw_holder_t *holder)
{
    int  i;

    if (!holder->reads) {
        return;
    }

    for (i = 0; i < NPARTS; i++) {
        if (holder->bytes > 0) {
            part_remove(part_of(holder, i), holder, i);
        }

        part_of(holder, i)->whole += holder->bytes;
    }

    holder->reads = 0;
}
