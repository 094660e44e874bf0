
/*
 * Chooses the places whose rows are computed next.
 *
 * Results are exact under two rules: a step of many rows has a call of its own,
 * and a call for steps of one row has one of each place, by ascending place
 * without a gap (libllama would split and reorder others).  Both take turns, so
 * that a long prompt, or a replay, does not stop places that decode; among
 * steps of many rows the places take turns.
 *
 *   turn_rows()    [0 1 2] [5 6]    one row each, as many calls as there are
 *                                   gaps and different last layers
 *   turn_chunk()   [3: 32 rows]     the next place that has such a step
 *
 * If only one row a call is exact, each place has a call of its own, and a step
 * of many rows has one row computed in each turn.
 */


#include "common/os/mono.h"
#include "replica/engine/llama/plugin/shard/shard_inner.h"


/* Under the lock: forgets the cells of sessions that have ended. */
static void
turn_reap(shard_t *s)
{
    uint32_t  i;

    for (i = 0; i < s->core.options.sequences; i++) {
        if (s->places[i].is_stale) {
            s->places[i].is_stale = 0;
            (void) llama_memory_seq_rm(llama_get_memory(s->core.context),
                                       (llama_seq_id) i, -1, -1);
        }
    }
}


static int
turn_has_logits(const shard_t *s, const place_t *place)
{
    return s->core.facts.vocabulary > 0
           && place->last_layer == s->last_layer;
}


static shard_status_t
turn_check(const shard_t *s, const place_t *place,
    const shard_step_t *step)
{
    if (place->status != SHARD_STEP_DONE) {
        return place->status;
    }

    if (step->rows < 1 || step->rows > SHARD_CORE_ROWS_MAX
        || step->logits_rows > step->rows
        || (step->logits_rows > 0 && !turn_has_logits(s, place)))
    {
        return SHARD_STEP_BAD_SHAPE;
    }

    if (step->position != place->next) {
        return SHARD_STEP_BAD_POSITION;
    }

    if (step->rows > s->core.facts.context - step->position) {
        return SHARD_STEP_CONTEXT_FULL;
    }

    return SHARD_STEP_DONE;
}


/* Under the lock: the place's next step, if it can be computed at all. */
static shard_step_t *
turn_first(shard_t *s, place_t *place)
{
    shard_step_t    *step;
    shard_status_t   status;

    while ((step = place->first) != NULL) {
        if (step->own.rows_done > 0) {
            return step;
        }

        status = turn_check(s, place, step);

        if (status == SHARD_STEP_DONE) {
            return step;
        }

        queue_pop(s, step, status);
    }

    return NULL;
}


/* Under the lock. */
static void
turn_pick(shard_t *s, shard_step_t *step, uint32_t rows, part_t *part)
{
    const place_t  *place;

    place = &s->places[step->place];
    step->own.is_running = 1;
    part->step = step;
    part->from = step->own.rows_done;
    part->rows = rows;
    part->last_layer = place->last_layer;
    part->is_logits = turn_has_logits(s, place);
    part->status = SHARD_STEP_DONE;
}


static void
turn_start(shard_t *s, part_t *parts, uint32_t n)
{
    uint32_t       i;
    shard_step_t  *step;

    pthread_mutex_lock(&s->core.lock);

    for (i = 0; i < n; i++) {
        step = parts[i].step;

        if (!step->own.is_started) {
            step->own.is_started = 1;
            s->core.load.waiting--;
            queue_event(s, step);
        }
    }

    pthread_mutex_unlock(&s->core.lock);

    queue_notify(s);
}


/* Under the lock. */
static void
turn_finish_part(shard_t *s, const part_t *part, uint64_t ns)
{
    place_t       *place;
    shard_step_t  *step;

    step = part->step;
    place = &s->places[step->place];
    step->own.is_running = 0;
    step->own.rows_done += part->rows;
    step->took_ns += ns;

    if (step->own.session != place->session) {
        queue_done(s, step, SHARD_STEP_CANCELLED);
        return;
    }

    place->next += part->rows;

    if (part->status != SHARD_STEP_DONE || step->own.rows_done == step->rows) {
        step->is_logits = part->is_logits;
        step->out_rows = part->is_logits ? step->logits_rows : step->rows;
        queue_pop(s, step, part->status);
    }
}


static void
turn_finish(shard_t *s, const part_t *parts, uint32_t n, uint64_t ns)
{
    uint32_t  i;

    pthread_mutex_lock(&s->core.lock);

    for (i = 0; i < n; i++) {
        turn_finish_part(s, &parts[i], ns);
    }

    pthread_mutex_unlock(&s->core.lock);

    queue_notify(s);
}


static void
turn_call(shard_t *s, part_t *parts, uint32_t n)
{
    uint64_t  start_ns;

    turn_start(s, parts, n);
    start_ns = mono_ns();

    call_run(s, parts, n);
    turn_finish(s, parts, n, mono_ns() - start_ns);
}


/* The number of parts that one call can compute, from the first on. */
static uint32_t
turn_together(const shard_t *s, const part_t *parts, uint32_t n)
{
    uint32_t  i;

    for (i = 1; i < n && !s->core.facts.is_stepwise; i++) {
        if (parts[i].step->place != parts[i - 1].step->place + 1
            || parts[i].last_layer != parts[0].last_layer)
        {
            break;
        }
    }

    return i;
}


/* Computes one row of each place whose next step has one. */
static void
turn_rows(shard_t *s)
{
    uint32_t       i, n, together;
    shard_step_t  *step;

    n = 0;

    pthread_mutex_lock(&s->core.lock);
    turn_reap(s);

    for (i = 0; i < s->core.options.sequences; i++) {
        step = turn_first(s, &s->places[i]);

        if (step != NULL && step->rows == 1) {
            turn_pick(s, step, 1, &s->parts[n++]);
        }
    }

    pthread_mutex_unlock(&s->core.lock);

    for (i = 0; i < n; i += together) {
        together = turn_together(s, &s->parts[i], n - i);
        turn_call(s, &s->parts[i], together);
    }
}


/* Under the lock: the step of many rows of the next place in turn. */
static shard_step_t *
turn_next_chunk(shard_t *s)
{
    uint32_t       i, place;
    shard_step_t  *step;

    for (i = 0; i < s->core.options.sequences; i++) {
        place = (s->turn + i) % s->core.options.sequences;
        step = turn_first(s, &s->places[place]);

        if (step != NULL && step->rows > 1) {
            s->turn = place + 1;
            return step;
        }
    }

    return NULL;
}


/* Computes a step of many rows, or one of its rows. */
static void
turn_chunk(shard_t *s)
{
    part_t         part;
    shard_step_t  *step;

    pthread_mutex_lock(&s->core.lock);
    turn_reap(s);
    step = turn_next_chunk(s);

    if (step != NULL) {
        turn_pick(s, step, s->core.facts.is_stepwise ? 1 : step->rows, &part);
    }

    pthread_mutex_unlock(&s->core.lock);

    if (step != NULL) {
        turn_call(s, &part, 1);
    }
}


void
turn_run(shard_t *s)
{
    turn_rows(s);
    turn_chunk(s);
}
