
/*
 * A stream's machine, in made-up time: each script is a list of events, and of
 * what the owner is to do after each (core/serve/serve.h).
 */

#ifndef SERVE_SCENE_H
#define SERVE_SCENE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "core/serve/serve.h"


#define FIRST_MS     60000              /* limits of silence, in ms */
#define TOKEN_MS     10000
#define PATIENCE_MS  30000
#define START_MS     1000000

typedef enum {
    BEGINS = 0,
    CLAIMED,                            /* arg: llmgw_admission_rc_t */
    STARTED,
    HEDGED,
    TOKEN,                              /* arg: attempt, whose first token
                                           moves the timer */
    ENDED,                              /* arg: attempt, and how it ended */
    TIMER,
    BLOCKED,                            /* arg: 1, or 0 */
    BY                                  /* arg: the client's deadline, in ms */
} event_t;

#define LEASED     LLMGW_ADMISSION_LEASED
#define WAITS      LLMGW_ADMISSION_WAITS
#define FINAL      LLMGW_ENDING_FINAL
#define PASSED     LLMGW_ENDING_PASSED
#define AMBIGUOUS    LLMGW_ENDING_AMBIGUOUS
#define DRAINING   LLMGW_ENDING_DRAINING
#define FULL       LLMGW_ENDING_FULL
#define ABSENT     LLMGW_ENDING_ABSENT
#define REFUSED    LLMGW_ENDING_REFUSED
#define UNABLE     LLMGW_ENDING_UNABLE
#define FAILED     LLMGW_ENDING_FAILED

typedef struct {
    int          after_ms;              /* since the line before */
    event_t      event;
    int          arg;
    int          ending;
    const char  *does;                  /* the steps; "runs N": timer, in ms */
} line_t;

typedef struct {
    llmgw_serve_t        serve;
    llmgw_serve_facts_t  facts;
    llmgw_claim_t        claim;
    llmgw_attempt_t      attempts[2];
    uint64_t             tokens;
    int                  may_keep;
    int                  is_denial;
    char                 text[256];
} scene_t;


static inline void
scene_init(scene_t *s)
{
    memset(s, 0, sizeof(*s));
    s->serve.resume.tries_max = 3;
    s->serve.resume.failovers_max = LLMGW_RESUME_FAILOVERS;
    s->may_keep = 1;
    s->facts = (llmgw_serve_facts_t) {
        .attempts = { &s->attempts[0], &s->attempts[1] }, .claim = &s->claim,
        .now_ms = START_MS, .patience_ms = PATIENCE_MS,
        .first_token_ms = FIRST_MS, .token_ms = TOKEN_MS
    };
}


/* --- what the owner of a stream does */

static inline void
start(scene_t *s, int i)
{
    assert_false(s->attempts[i].is_running);

    s->attempts[i] = (llmgw_attempt_t) {
        .is_running = 1, .heard_ms = s->facts.now_ms,
        .start_ms = s->facts.now_ms
    };
}


static inline llmgw_serve_step_t
token(scene_t *s, int i)
{
    int                 is_first;
    llmgw_serve_step_t  step = { 0 };

    is_first = !s->attempts[i].has_begun;
    s->attempts[i].has_begun = 1;
    s->attempts[i].tokens++;
    s->attempts[i].heard_ms = s->facts.now_ms;
    s->tokens++;

    if (is_first) {
        step = llmgw_serve_first(&s->serve);
        s->attempts[!i].is_running = 0;
    }

    return step;
}


static inline llmgw_serve_step_t
ended(scene_t *s, int i, llmgw_ending_t ending)
{
    llmgw_serve_step_t  step;
    llmgw_serve_end_t   end = {
        .which = (unsigned) i, .ending = ending, .stream_tokens = s->tokens,
        .may_keep = s->may_keep, .is_denial = s->is_denial
    };

    s->attempts[i].has_ended = 1;
    step = llmgw_serve_ended(&s->serve, &s->facts, &end);
    assert_true(step.stops);
    s->attempts[i].is_running = 0;

    if (step.stops_other) {
        s->attempts[!i].is_running = 0;
    }

    return step;
}


static inline llmgw_serve_step_t
event(scene_t *s, const line_t *line)
{
    llmgw_serve_step_t  step = { 0 };

    switch (line->event) {

    case BEGINS:
        return llmgw_serve_begin(&s->serve, &s->facts);

    case CLAIMED:
        return llmgw_serve_claimed(&s->serve, &s->facts,
                                   (llmgw_admission_rc_t) line->arg);

    case STARTED:
        start(s, 0);
        return llmgw_serve_started(&s->serve, &s->facts);

    case HEDGED:
        start(s, 1);
        llmgw_serve_hedged(&s->serve);
        return step;

    case TOKEN:
        return token(s, line->arg);

    case ENDED:
        return ended(s, line->arg, (llmgw_ending_t) line->ending);

    case TIMER:
        return llmgw_serve_expired(&s->serve, &s->facts);

    case BLOCKED:
        s->facts.is_blocked = line->arg;
        return step;

    case BY:
        s->facts.deadline_ms = s->facts.now_ms + (uint64_t) line->arg;
        return step;
    }

    return step;
}


static inline void
word(scene_t *s, int is_set, const char *text)
{
    size_t  len = strlen(s->text);

    if (is_set) {
        snprintf(s->text + len, sizeof(s->text) - len, "%s%s",
                 len > 0 ? " " : "", text);
    }
}


static inline const char *
said(scene_t *s, llmgw_serve_step_t step)
{
    char  runs[32];

    static const char *const  verdicts[] = {
        [LLMGW_VERDICT_SUCCESS] = "acquits-kept",
        [LLMGW_VERDICT_FAILURE] = "blames",
        [LLMGW_VERDICT_NEUTRAL] = "drops-kept"
    };
    static const char *const  nexts[] = {
        [LLMGW_SERVE_CLAIMS] = "claims", [LLMGW_SERVE_STARTS] = "starts",
        [LLMGW_SERVE_HEDGES] = "hedges", [LLMGW_SERVE_ENDS] = "ends",
        [LLMGW_SERVE_EXPIRES] = "expires", [LLMGW_SERVE_PASSES] = "passes",
        [LLMGW_SERVE_PASSES_KEPT] = "passes-kept"
    };

    s->text[0] = '\0';
    word(s, step.is_ambiguous, "ambiguous");
    word(s, step.acquits, "acquits");
    word(s, step.judges, verdicts[step.verdict]);
    word(s, step.forgets, "forgets");
    word(s, step.excludes, "excludes");
    word(s, step.pushes_back, "pushes-back");
    word(s, step.keeps, "keeps");
    word(s, step.fails_over, "fails-over");
    word(s, step.pings, "pings");
    word(s, step.silent & 1, "silent-0");
    word(s, step.silent & 2, "silent-1");

    if (step.next == LLMGW_SERVE_RUNS) {
        (void) snprintf(runs, sizeof(runs), "runs %d", (int)
                        llmgw_serve_wait_ms(&s->serve, &s->facts));
        word(s, 1, runs);
        return s->text;
    }

    word(s, 1, nexts[step.next]);

    if (step.next == LLMGW_SERVE_ENDS) {
        word(s, 1, step.outcome == LLMGW_OUTCOME_SERVED
                   ? "served"
                   : step.outcome == LLMGW_OUTCOME_DEADLINE
                   ? "deadline" : llmgw_outcome_reason(step.outcome));
    }

    return s->text;
}


static inline void
play_lines(scene_t *s, const line_t *lines, size_t n)
{
    size_t       i;
    const char  *does;

    for (i = 0; i < n; i++) {
        s->facts.now_ms += (uint64_t) lines[i].after_ms;
        does = said(s, event(s, &lines[i]));

        if (strcmp(does, lines[i].does) != 0) {
            fail_msg("line %zu: \"%s\", not \"%s\"", i, does, lines[i].does);
        }
    }
}


#define play(s, ...)                                                          \
    play_lines(s, (const line_t[]) { __VA_ARGS__ },                           \
               sizeof((const line_t[]) { __VA_ARGS__ }) / sizeof(line_t))

#define GOES(s)                                                               \
    play(s, { 0, BEGINS, 0, 0, "claims" },                                    \
            { 0, CLAIMED, LEASED, 0, "starts" },                              \
            { 0, STARTED, 0, 0, "runs 60000" })

#endif /* SERVE_SCENE_H */
