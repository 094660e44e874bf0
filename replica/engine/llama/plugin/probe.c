
#include <string.h>

#include "replica/engine/llama/plugin/probe.h"


typedef struct {
    core_t        *core;
    probe_call_t   call;
    void          *data;
} probe_t;


static void
probe_clear(const probe_t *p)
{
    llama_memory_clear(llama_get_memory(p->core->context), true);
}


/* Computes rows of sequence 0, `step` of them in each call. */
static int
probe_rows(const probe_t *p, uint32_t to, uint32_t step, probe_found_t *found)
{
    probe_part_t  part = { .rows = step };

    probe_clear(p);

    for (/* void */; part.position < to; part.position += step) {
        if (p->call(p->data, &part, 1, found) != 0) {
            return -1;
        }
    }

    return 0;
}


/* Computes the last rows beside another sequence's first ones, or in calls by
   turns. */
static int
probe_beside(const probe_t *p, probe_found_t *found)
{
    int           is_stepwise;
    probe_part_t  parts[2] = { { 0, PROBE_HEAD, 1 }, { 1, 0, 1 } };

    is_stepwise = p->core->facts.is_stepwise;

    if (probe_rows(p, PROBE_HEAD, is_stepwise ? 1 : PROBE_HEAD, found) != 0) {
        return -1;
    }

    for (/* void */; parts[1].position < PROBE_TAIL; parts[1].position++) {
        if (is_stepwise
            ? p->call(p->data, &parts[0], 1, found) != 0
              || p->call(p->data, &parts[1], 1, found) != 0
            : p->call(p->data, parts, 2, found) != 0)
        {
            return -1;
        }

        parts[0].position++;
    }

    return 0;
}


/* 0: results are equal to those of rows one by one; 1: they are not; -1: a call
   failed. */
static int
probe_compare(const probe_t *p, const probe_found_t *single)
{
    probe_found_t  chunk, beside;

    memset(&chunk, 0, sizeof(chunk));

    if (probe_rows(p, PROBE_ROWS, p->core->facts.is_stepwise ? 1 : PROBE_ROWS,
                   &chunk)
        != 0)
    {
        return -1;
    }

    beside = chunk;

    if (p->core->options.sequences > 1 && probe_beside(p, &beside) != 0) {
        return -1;
    }

    return memcmp(&chunk, single, sizeof(chunk)) != 0
           || memcmp(&beside, single, sizeof(beside)) != 0;
}


int
probe_run(core_t *core, probe_call_t call, void *data, probe_found_t *found)
{
    int      rc;
    probe_t  p = { core, call, data };

    memset(found, 0, sizeof(*found));
    rc = probe_rows(&p, PROBE_ROWS, 1, found) == 0
         ? probe_compare(&p, found) : -1;

    if (rc > 0 && !core->facts.is_stepwise) {
        core->facts.is_stepwise = 1;
        rc = probe_compare(&p, found);
    }

    probe_clear(&p);

    return rc;
}
