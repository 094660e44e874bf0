
/*
 * The deadlines of a flow: a pairing heap (Fredman, Sedgewick, Sleator, Tarjan,
 * 1986) in the entries themselves.  Adding takes constant time, removing any
 * entry log n on average.  Among equal deadlines the first to arrive is the
 * earlier.
 */

#include "core/flow/flow_inner.h"


static uint32_t
deadline_meld(llmgw_flow_t *flow, uint32_t a, uint32_t b)
{
    uint32_t       other;
    flow_entry_t  *x, *y;

    if (a == 0 || b == 0) {
        return a != 0 ? a : b;
    }

    x = flow_entry(flow, a);
    y = flow_entry(flow, b);

    if (y->deadline_us < x->deadline_us
        || (y->deadline_us == x->deadline_us && y->number < x->number))
    {
        other = a;
        a = b;
        b = other;

        x = flow_entry(flow, a);
        y = flow_entry(flow, b);
    }

    y->sibling = x->child;
    y->back = a;

    if (x->child != 0) {
        flow_entry(flow, x->child)->back = b;
    }

    x->child = b;

    return a;
}


/*
 * Merges siblings into one heap: in pairs from the left, then all from the
 * right.
 */
static uint32_t
deadline_meld_all(llmgw_flow_t *flow, uint32_t first)
{
    uint32_t  a, b, next, pairs, root;

    pairs = 0;
    root = 0;

    for (a = first; a != 0; a = next) {
        b = flow_entry(flow, a)->sibling;
        next = b == 0 ? 0 : flow_entry(flow, b)->sibling;

        a = deadline_meld(flow, a, b);
        flow_entry(flow, a)->sibling = pairs;
        pairs = a;
    }

    for (a = pairs; a != 0; a = next) {
        next = flow_entry(flow, a)->sibling;
        root = deadline_meld(flow, root, a);
    }

    if (root != 0) {
        flow_entry(flow, root)->sibling = 0;
        flow_entry(flow, root)->back = 0;
    }

    return root;
}


uint32_t
flow_deadline_add(llmgw_flow_t *flow, uint32_t root, uint32_t i)
{
    flow_entry_t  *entry;

    entry = flow_entry(flow, i);
    entry->child = 0;
    entry->sibling = 0;
    entry->back = 0;

    return deadline_meld(flow, root, i);
}


uint32_t
flow_deadline_remove(llmgw_flow_t *flow, uint32_t root, uint32_t i)
{
    uint32_t       rest;
    flow_entry_t  *entry, *back;

    entry = flow_entry(flow, i);

    if (i != root) {
        back = flow_entry(flow, entry->back);

        if (back->child == i) {
            back->child = entry->sibling;

        } else {
            back->sibling = entry->sibling;
        }

        if (entry->sibling != 0) {
            flow_entry(flow, entry->sibling)->back = entry->back;
        }
    }

    rest = deadline_meld_all(flow, entry->child);

    return i == root ? rest : deadline_meld(flow, root, rest);
}
