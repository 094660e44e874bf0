
/*
 * Sessions beside each other, and one after the other in one place; steps that
 * cannot be computed; turns.
 */

#include <math.h>

#include "t/unit/replica/engine/llama/plugin/shard/shard_scene.h"


#define SESSIONS  8
#define FIRST     2             /* the slice of most tests */
#define LAST      5

static model_t      model;
static reference_t  reference;
static float        out[SHARD_CORE_ROWS_MAX * WIDTH];


static const float *
in(uint32_t text, uint32_t position)
{
    return text_row(&reference.texts[text], FIRST, position);
}


/* --- beside each other */

typedef struct {
    shard_step_t  step;
    uint32_t      place;
    uint32_t      text;
    uint32_t      chunk;
    float         out[SHARD_CORE_ROWS_MAX * WIDTH];
} reader_t;


static void
reader_go_on(node_t *node, reader_t *r, uint32_t position)
{
    uint32_t  n;

    n = POSITIONS - position < r->chunk ? POSITIONS - position : r->chunk;
    step_fill(&r->step, r->place, position, n, 0, in(r->text, position),
              r->out);
    r->step.data = r;
    plugin->submit(node->core, &r->step);
}


/* Sessions send row by row, or in chunks of their own; all are in the core at
   once. */
static void
sessions_beside_each_other_are_exact(void **state)
{
    node_t         node;
    uint32_t       i, at, left;
    reader_t      *r, readers[SESSIONS];
    shard_step_t  *step;

    const uint32_t  sizes[SESSIONS] = { 1, 1, 32, 1, 5, 1, 31, 1 };

    node_open(&node, &model, FIRST, LAST, SESSIONS);

    for (i = 0; i < SESSIONS; i++) {
        readers[i].place = node_begin(&node, LAST);
        assert_int_equal(readers[i].place, i);
        readers[i].text = i % TEXTS;
        readers[i].chunk = sizes[i];
        reader_go_on(&node, &readers[i], 0);
    }

    for (left = SESSIONS; left > 0; /* void */) {
        step = node_take(&node);
        r = step->data;
        at = step->position;
        assert_int_equal(step->status, SHARD_STEP_DONE);
        assert_int_equal(step->out_rows, step->rows);
        assert_true(text_has_rows(&reference.texts[r->text], LAST + 1, at,
                                  r->out, step->rows));

        if (at + step->rows == POSITIONS) {
            left--;

        } else {
            reader_go_on(&node, r, at + step->rows);
        }
    }

    node_close(&node);
}


/* Steps of one row that cannot share a call: their places have no neighbours,
   or their sessions have other last layers. */
static void
gaps_and_other_last_layers_are_exact(void **state)
{
    node_t         node;
    uint32_t       i, at, place, stops[SESSIONS];
    reader_t       readers[SESSIONS];
    shard_step_t  *step;

    node_open(&node, &model, FIRST, LAST, SESSIONS);

    for (i = 0; i < SESSIONS; i++) {
        stops[i] = FIRST + i / 2 % 3;
        place = node_begin(&node, stops[i]);
        readers[place].place = place;
        readers[place].text = i % TEXTS;
        readers[place].chunk = 1;
    }

    plugin->end(node.core, 1);
    plugin->end(node.core, 6);

    for (at = 0; at < 8; at++) {
        for (i = 0; i < SESSIONS; i++) {
            if (i != 1 && i != 6) {
                reader_go_on(&node, &readers[i], at);
            }
        }

        for (i = 2; i < SESSIONS; i++) {
            step = node_take(&node);
            place = step->place;
            assert_int_equal(step->status, SHARD_STEP_DONE);
            assert_true(text_has_rows(&reference.texts[place % TEXTS],
                                      stops[place] + 1, at,
                                      readers[place].out, 1));
        }
    }

    node_close(&node);
}


/* --- one after the other */

/* Cells of the layers above the first session's last one were never written,
   and those of its own are another text's. */
static void
place_that_was_used_is_as_new(void **state)
{
    size_t    i;
    node_t    node;
    uint32_t  place;

    const uint32_t  stops[] = { FIRST, LAST, FIRST + 1, LAST };

    node_open(&node, &model, FIRST, LAST, 1);

    for (i = 0; i < length(stops); i++) {
        place = node_begin(&node, stops[i]);
        assert_int_equal(place, 0);
        assert_int_equal(plugin->begin(node.core, LAST), -1);
        assert_int_equal(node_step(&node, place, 0, 32, 0, in(i % TEXTS, 0),
                                   out), SHARD_STEP_DONE);
        assert_int_equal(node_step(&node, place, 32, 1 + i, 0,
                                   in(i % TEXTS, 32), out), SHARD_STEP_DONE);
        assert_true(text_has_rows(&reference.texts[i % TEXTS], stops[i] + 1,
                                  32, out, 1 + i));
        plugin->end(node.core, place);
    }

    node_close(&node);
}


/* The thread is held in notify(), and has just begun the first step. */
static void
session_that_ends_while_a_step_runs_leaves_nothing(void **state)
{
    node_t          node;
    uint32_t        i, place;
    shard_step_t    steps[3];
    shard_event_t   event;

    node_open(&node, &model, FIRST, LAST, 2);
    place = node_begin(&node, LAST);
    node_hold(&node);

    for (i = 0; i < 3; i++) {
        step_fill(&steps[i], place, 16 * i, 16, 0, in(0, 16 * i), out);
        plugin->submit(node.core, &steps[i]);
    }

    node_wait(&node);
    assert_int_equal(plugin->take(node.core, &event), 0);
    assert_int_equal(event.kind, SHARD_EVENT_STARTED);
    assert_ptr_equal(event.step, &steps[0]);
    assert_int_equal(plugin->take(node.core, &event), -1);

    /* The two steps that wait are given back at once, and so is the place. */

    plugin->end(node.core, place);

    for (i = 1; i < 3; i++) {
        assert_int_equal(plugin->take(node.core, &event), 0);
        assert_int_equal(event.kind, SHARD_EVENT_DONE);
        assert_ptr_equal(event.step, &steps[i]);
        assert_int_equal(steps[i].status, SHARD_STEP_CANCELLED);
    }

    assert_int_equal(plugin->take(node.core, &event), -1);
    assert_int_equal(node_begin(&node, LAST), place);

    step_fill(&steps[1], place, 0, 16, 0, in(1, 0), out);
    plugin->submit(node.core, &steps[1]);
    node_let(&node);

    assert_ptr_equal(node_take(&node), &steps[0]);
    assert_int_equal(steps[0].status, SHARD_STEP_CANCELLED);
    assert_ptr_equal(node_take(&node), &steps[1]);
    assert_int_equal(steps[1].status, SHARD_STEP_DONE);
    assert_true(text_has_rows(&reference.texts[1], LAST + 1, 0, out, 16));
    node_close(&node);
}


/* --- steps that cannot be computed */

static void
bad_step_ends_its_session_alone(void **state)
{
    size_t    i;
    node_t    node;
    uint32_t  place, other;

    const struct {
        uint32_t        position;
        uint32_t        rows;
        uint32_t        logits_rows;
        shard_status_t  status;
    } cases[] = {
        { 0, 4, 0, SHARD_STEP_BAD_POSITION },       /* the rows came before */
        { 3, 1, 0, SHARD_STEP_BAD_POSITION },
        { 5, 1, 0, SHARD_STEP_BAD_POSITION },       /* leaves a position out */
        { UINT32_MAX, 1, 0, SHARD_STEP_BAD_POSITION },
        { 4, 0, 0, SHARD_STEP_BAD_SHAPE },
        { 4, SHARD_CORE_ROWS_MAX + 1, 0, SHARD_STEP_BAD_SHAPE },
        { 4, UINT32_MAX, 0, SHARD_STEP_BAD_SHAPE },
        { 4, 1, 2, SHARD_STEP_BAD_SHAPE },
        { 4, 1, 1, SHARD_STEP_BAD_SHAPE }           /* slice without logits */
    };

    node_open(&node, &model, FIRST, LAST, 2);
    other = node_begin(&node, LAST);

    for (i = 0; i < length(cases); i++) {
        place = node_begin(&node, LAST);
        assert_int_equal(node_step(&node, place, 0, 4, 0, in(0, 0), out),
                         SHARD_STEP_DONE);
        assert_int_equal(node_step(&node, place, cases[i].position,
                                   cases[i].rows, cases[i].logits_rows,
                                   in(0, 0), out), cases[i].status);

        /* A step that would have been right comes too late. */

        assert_int_equal(node_step(&node, place, 4, 1, 0, in(0, 4), out),
                         cases[i].status);
        plugin->end(node.core, place);

        assert_int_equal(node_step(&node, other, i, 1, 0, in(1, i), out),
                         SHARD_STEP_DONE);
        assert_true(text_has_rows(&reference.texts[1], LAST + 1, i, out, 1));
    }

    assert_int_equal(node_step(&node, 1, 0, 1, 0, in(0, 0), out),
                     SHARD_STEP_BAD_SHAPE);         /* place without session */
    assert_int_equal(node_step(&node, 2, 0, 1, 0, in(0, 0), out),
                     SHARD_STEP_BAD_SHAPE);         /* no such place */
    node_close(&node);
}


/* A context that libllama rounds up, and one that it does not. */
static void
context_is_used_to_its_last_position_and_no_further(void **state)
{
    size_t          i;
    node_t          node;
    uint32_t        at;
    core_options_t  o;

    const uint32_t  contexts[] = { 64, 256 };

    for (i = 0; i < length(contexts); i++) {
        o = node_options(&node, model_slice(&model, FIRST, LAST), 2);
        o.context = contexts[i];
        node_open_as(&node, &o);
        node_until(&node, CORE_READY);
        assert_int_equal(node.facts.context, contexts[i]);
        (void) node_begin(&node, LAST);
        (void) node_begin(&node, LAST);

        for (at = 0; at < contexts[i] - 32; at += 32) {
            assert_int_equal(node_step(&node, 0, at, 32, 0, in(0, 0), out),
                             SHARD_STEP_DONE);
            assert_int_equal(node_step(&node, 1, at, 32, 0, in(1, 0), out),
                             SHARD_STEP_DONE);
        }

        assert_int_equal(node_step(&node, 0, at, 32, 0, in(0, 0), out),
                         SHARD_STEP_DONE);
        assert_int_equal(node_step(&node, 0, at + 32, 1, 0, in(0, 0), out),
                         SHARD_STEP_CONTEXT_FULL);
        assert_int_equal(node_step(&node, 1, at, 31, 0, in(1, 0), out),
                         SHARD_STEP_DONE);
        assert_int_equal(node_step(&node, 1, at + 31, 2, 0, in(1, 0), out),
                         SHARD_STEP_CONTEXT_FULL);
        node_close(&node);
    }
}


/* Both sessions' rows are in one call. */
static void
value_that_is_no_number_harms_no_neighbour(void **state)
{
    size_t         i;
    float          row[WIDTH], good[WIDTH];
    node_t         node;
    uint32_t       place;
    shard_step_t   steps[2];

    const float  values[] = { NAN, INFINITY, -INFINITY };

    node_open(&node, &model, FIRST, LAST, 3);
    (void) node_begin(&node, LAST);
    (void) node_begin(&node, LAST);

    for (i = 0; i < length(values); i++) {
        memcpy(row, in(0, 0), ROW_BYTES);
        row[WIDTH - 1] = values[i];
        place = i == 0 ? 0 : node_begin(&node, LAST);
        assert_int_equal(place, 0);

        node_hold(&node);
        step_fill(&steps[0], 2, 0, 1, 0, row, out);     /* no session: stops */
        plugin->submit(node.core, &steps[0]);
        node_wait(&node);
        assert_ptr_equal(node_take(&node), &steps[0]);

        step_fill(&steps[0], place, 0, 1, 0, row, out);
        step_fill(&steps[1], 1, i, 1, 0, in(1, i), good);
        plugin->submit(node.core, &steps[0]);
        plugin->submit(node.core, &steps[1]);
        node_let(&node);

        assert_ptr_equal(node_take(&node), &steps[0]);
        assert_ptr_equal(node_take(&node), &steps[1]);
        assert_int_equal(steps[0].status, SHARD_STEP_BAD_INPUT);
        assert_int_equal(steps[1].status, SHARD_STEP_DONE);
        assert_true(steps[0].took_ns == steps[1].took_ns);
        assert_true(text_has_rows(&reference.texts[1], LAST + 1, i, good, 1));
        plugin->end(node.core, place);
    }

    node_close(&node);
}


/* --- turns */

/* Four steps of many rows wait; a row of another session overtakes them. */
static void
row_does_not_wait_for_all_chunks(void **state)
{
    node_t          node;
    uint32_t        i, chunks;
    shard_step_t    steps[4], *done;
    float           row[WIDTH];

    node_open(&node, &model, FIRST, LAST, 3);
    (void) node_begin(&node, LAST);
    (void) node_begin(&node, LAST);
    node_hold(&node);

    for (i = 0; i < 3; i++) {
        step_fill(&steps[i], 0, 32 * i, 32, 0, in(0, 32 * i), out);
        plugin->submit(node.core, &steps[i]);
    }

    node_wait(&node);                   /* the first one has begun */
    step_fill(&steps[3], 1, 0, 1, 0, in(1, 0), row);
    plugin->submit(node.core, &steps[3]);
    node_let(&node);

    for (chunks = 0; (done = node_take(&node)) != &steps[3]; chunks++) {
        assert_ptr_equal(done, &steps[chunks]);
    }

    assert_int_equal(chunks, 1);
    assert_ptr_equal(node_take(&node), &steps[1]);
    assert_ptr_equal(node_take(&node), &steps[2]);
    node_close(&node);
}


/* The chunks of one session do not keep another one from its turn. */
static void
chunks_of_places_take_turns(void **state)
{
    size_t          i;
    node_t          node;
    shard_step_t    steps[5];

    const uint32_t  places[] = { 0, 0, 0, 1, 2 };
    const uint32_t  order[] = { 0, 3, 4, 1, 2 };

    node_open(&node, &model, FIRST, LAST, 3);

    for (i = 0; i < 3; i++) {
        (void) node_begin(&node, LAST);
    }

    node_hold(&node);

    for (i = 0; i < length(steps); i++) {
        step_fill(&steps[i], places[i], places[i] == 0 ? 2 * (uint32_t) i : 0,
                  2, 0, in(0, 0), out);
        plugin->submit(node.core, &steps[i]);
    }

    node_wait(&node);
    node_let(&node);

    for (i = 0; i < length(order); i++) {
        assert_ptr_equal(node_take(&node), &steps[order[i]]);
    }

    node_close(&node);
}


static int
make_model(void **state)
{
    node_t  node;

    model_make(&model, "seed=1");
    node_open(&node, &model, FIRST, LAST, 1);
    reference_make(&reference, &model);
    node_close(&node);

    return 0;
}


static int
drop_model(void **state)
{
    reference_drop(&reference);
    model_drop(&model);

    return 0;
}


int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sessions_beside_each_other_are_exact),
        cmocka_unit_test(gaps_and_other_last_layers_are_exact),
        cmocka_unit_test(place_that_was_used_is_as_new),
        cmocka_unit_test(session_that_ends_while_a_step_runs_leaves_nothing),
        cmocka_unit_test(bad_step_ends_its_session_alone),
        cmocka_unit_test(context_is_used_to_its_last_position_and_no_further),
        cmocka_unit_test(value_that_is_no_number_harms_no_neighbour),
        cmocka_unit_test(row_does_not_wait_for_all_chunks),
        cmocka_unit_test(chunks_of_places_take_turns),
    };

    return cmocka_run_group_tests(tests, make_model, drop_model);
}
