
#include "core/serve/serve.h"


/* the longest that a timer of nginx's may wait */
#define SERVE_WAIT_MAX_MS  INT32_MAX


/* --- times */

/* The full time, of which 32 bits were kept: the one closest to now. */

static uint64_t
serve_whole(const llmgw_serve_facts_t *facts, uint32_t ms)
{
    return facts->now_ms + (int32_t) (ms - (uint32_t) facts->now_ms);
}


static int
serve_is_due(const llmgw_serve_facts_t *facts, uint64_t when_ms)
{
    return (int64_t) (when_ms - facts->now_ms) <= 0;
}


static uint64_t
serve_until(const llmgw_serve_facts_t *facts, uint64_t wait_ms,
    uint64_t when_ms)
{
    int64_t  left;

    left = (int64_t) (when_ms - facts->now_ms);

    return left <= 0 ? 0 : (uint64_t) left < wait_ms ? (uint64_t) left
                                                     : wait_ms;
}


/* For how long the attempt may still be silent; 0: it has been for too long. */

static uint64_t
serve_silence(const llmgw_serve_t *serve, const llmgw_serve_facts_t *facts,
    const llmgw_attempt_t *attempt)
{
    uint64_t  limit, silent, since;

    if (!attempt->is_running) {
        return SERVE_WAIT_MAX_MS;
    }

    limit = attempt->has_begun ? facts->token_ms : facts->first_token_ms;
    since = attempt->heard_ms;

    if (serve->is_spared && (int64_t) (serve->spared_ms - since) > 0) {
        since = serve->spared_ms;
    }

    silent = facts->now_ms - since;

    return silent < limit ? limit - silent : 0;
}


uint64_t
llmgw_serve_wait_ms(llmgw_serve_t *serve, const llmgw_serve_facts_t *facts)
{
    uint64_t  silence, wait;
    unsigned  i;

    wait = SERVE_WAIT_MAX_MS;

    if (serve->waits) {
        wait = serve_until(facts, wait, serve->queue_end_ms);

        if (facts->claim->hold_end_ms != 0) {
            wait = serve_until(facts, wait, facts->claim->hold_end_ms);
        }

    } else if (facts->is_blocked) {
        wait = facts->token_ms;

    } else {
        for (i = 0; i < 2; i++) {
            silence = serve_silence(serve, facts, facts->attempts[i]);
            wait = silence < wait ? silence : wait;
        }
    }

    if (serve->pauses) {
        wait = serve_until(facts, wait,
                           serve_whole(facts, serve->pause_end_ms));
    }

    if (facts->deadline_ms != 0) {
        wait = serve_until(facts, wait, facts->deadline_ms);
    }

    if (serve->may_hedge) {
        wait = serve_until(facts, wait, serve_whole(facts, serve->hedge_ms));
    }

    if (facts->ping_ms != 0) {
        wait = serve_until(facts, wait, facts->ping_ms);
    }

    wait = wait != 0 ? wait : 1;
    serve->due_ms = (uint32_t) (facts->now_ms + wait);

    return wait;
}


/* --- claims */

static llmgw_serve_step_t
serve_claims(llmgw_serve_t *serve, const llmgw_serve_facts_t *facts,
    llmgw_serve_step_t step)
{
    facts->claim->is_urgent = serve->has_begun;
    facts->claim->is_last = serve->has_ambiguous
                            || llmgw_resume_is_last_try(&serve->resume);
    facts->claim->no_wait = serve->has_ambiguous;
    step.next = LLMGW_SERVE_CLAIMS;

    return step;
}


llmgw_serve_step_t
llmgw_serve_begin(llmgw_serve_t *serve, const llmgw_serve_facts_t *facts)
{
    serve->is_entry = 1;

    return serve_claims(serve, facts, (llmgw_serve_step_t) { 0 });
}


static llmgw_serve_step_t
serve_ends(llmgw_outcome_t outcome)
{
    return (llmgw_serve_step_t) {
        .next = LLMGW_SERVE_ENDS, .outcome = outcome
    };
}


static llmgw_serve_step_t
serve_refused(const llmgw_serve_t *serve, llmgw_admission_rc_t rc)
{
    switch (rc) {

    case LLMGW_ADMISSION_FULL:
    case LLMGW_ADMISSION_SKIPPABLE:
        return serve_ends(LLMGW_OUTCOME_QUEUE_FULL);

    case LLMGW_ADMISSION_SHED:
        return serve_ends(LLMGW_OUTCOME_QUEUE_SHED);

    case LLMGW_ADMISSION_OPEN:
        return serve_ends(LLMGW_OUTCOME_CIRCUITS_OPEN);

    case LLMGW_ADMISSION_EXCLUDED:
        /* after its first token: none of the resume group is left */
        return serve_ends(serve->has_begun ? LLMGW_OUTCOME_TRIES_EXHAUSTED
                                           : LLMGW_OUTCOME_NO_REPLICAS);

    default:
        return serve_ends(LLMGW_OUTCOME_NO_REPLICAS);
    }
}


/* An ambiguous refusal needs a second replica, and there is none. */

static llmgw_serve_step_t
serve_no_second(const llmgw_serve_facts_t *facts, llmgw_admission_rc_t rc)
{
    llmgw_serve_step_t  step = { .judges = 1 };

    if (facts->claim->no_wait
        && (rc == LLMGW_ADMISSION_FULL || rc == LLMGW_ADMISSION_SKIPPABLE))
    {
        facts->claim->no_wait = 0;
        facts->claim->to_queue = 1;
        step.verdict = LLMGW_VERDICT_NEUTRAL;
        step.next = LLMGW_SERVE_CLAIMS;

    } else if (rc == LLMGW_ADMISSION_FULL) {
        return serve_ends(LLMGW_OUTCOME_QUEUE_FULL);

    } else {
        step.verdict = LLMGW_VERDICT_SUCCESS;
        step.next = LLMGW_SERVE_PASSES_KEPT;
    }

    return step;
}


llmgw_serve_step_t
llmgw_serve_claimed(llmgw_serve_t *serve, const llmgw_serve_facts_t *facts,
    llmgw_admission_rc_t rc)
{
    llmgw_serve_step_t  step = { 0 };

    serve->waits = (rc == LLMGW_ADMISSION_WAITS);

    if (serve->waits) {
        if (!serve->has_queue_end) {
            serve->has_queue_end = 1;
            serve->queue_end_ms = facts->now_ms + facts->patience_ms;
        }

        return step;
    }

    if (rc == LLMGW_ADMISSION_LEASED) {
        if (serve->is_entry && !serve->has_begun
            && serve->hedge == LLMGW_HEDGE_LATER)
        {
            serve->may_hedge = 1;
            serve->hedge_ms = (uint32_t) (facts->now_ms
                                          + facts->hedge_delay_ms);
        }

        step.next = LLMGW_SERVE_STARTS;
        return step;
    }

    if (serve->has_ambiguous) {
        return serve_no_second(facts, rc);
    }

    if (llmgw_claim_pauses(facts->claim, rc)) {
        serve->pauses = 1;
        return step;
    }

    return serve_refused(serve, rc);
}


/* --- hedges */

static int
serve_can_hedge(const llmgw_serve_facts_t *facts)
{
    const llmgw_attempt_t  *first = facts->attempts[0];

    return first->is_running && !first->has_ended && !first->has_begun
           && !facts->attempts[1]->is_running;
}


llmgw_serve_step_t
llmgw_serve_started(llmgw_serve_t *serve, const llmgw_serve_facts_t *facts)
{
    llmgw_serve_step_t  step = { 0 };

    if (serve->is_entry && !serve->has_begun
        && serve->hedge == LLMGW_HEDGE_AT_ONCE && serve_can_hedge(facts))
    {
        step.next = LLMGW_SERVE_HEDGES;
    }

    serve->is_entry = 0;

    return step;
}


void
llmgw_serve_hedged(llmgw_serve_t *serve)
{
    serve->has_second = 1;
}


/* --- attempts */

llmgw_serve_step_t
llmgw_serve_first(llmgw_serve_t *serve)
{
    llmgw_serve_step_t  step = { .stops_other = 1 };

    step.judges = serve->has_ambiguous;
    step.verdict = LLMGW_VERDICT_FAILURE;

    serve->has_begun = 1;
    serve->may_hedge = 0;
    serve->has_second = 0;
    serve->has_ambiguous = 0;

    return step;
}


int
llmgw_serve_is_broken(const llmgw_serve_t *serve, llmgw_ending_t ending)
{
    return serve->has_begun && ending != LLMGW_ENDING_FINAL
           && ending != LLMGW_ENDING_PASSED;
}


void
llmgw_serve_restarted(llmgw_serve_t *serve, llmgw_claim_t *claim)
{
    serve->has_begun = 0;
    claim->resumes = 0;
}


/*
 * The next claims pass over its replica; failed: the replica failed the stream.
 */

static void
serve_excludes(llmgw_serve_t *serve, const llmgw_serve_facts_t *facts,
    const llmgw_serve_end_t *end, int failed, llmgw_serve_step_t *step)
{
    uint64_t  pause_end_ms;

    step->excludes = (end->ending != LLMGW_ENDING_FULL);
    step->pushes_back = (end->ending == LLMGW_ENDING_FULL);

    /* with an ambiguous refusal waiting drops no exclusion: another replica
       must answer */
    step->keeps = failed || serve->has_ambiguous;

    if (failed) {
        pause_end_ms = facts->attempts[0]->start_ms
                       + llmgw_resume_pause_ms(&serve->resume, end->random);

        facts->claim->may_restart = 1;
        facts->claim->has_paused = serve_is_due(facts, pause_end_ms);
        serve->pause_end_ms = (uint32_t) pause_end_ms;
    }
}


/*
 * Adds the attempt's time to the queue's.  Of two attempts, the first one began
 * before its hedge.
 */

static void
serve_lengthens_queue(llmgw_serve_t *serve, const llmgw_serve_facts_t *facts,
    const llmgw_serve_end_t *end)
{
    if (end->ending == LLMGW_ENDING_FULL
        || end->ending == LLMGW_ENDING_ABSENT)
    {
        return;
    }

    if (facts->attempts[end->which]->has_begun) {
        serve->has_queue_end = 0;
        return;
    }

    serve->queue_end_ms += facts->now_ms - facts->attempts[0]->start_ms;
}


/* The stream's only running attempt has ended. */

static llmgw_serve_step_t
serve_ended_last(llmgw_serve_t *serve, const llmgw_serve_facts_t *facts,
    const llmgw_serve_end_t *end, llmgw_serve_step_t step)
{
    llmgw_resume_step_t  resume;

    resume = llmgw_resume_next(&serve->resume, end->ending,
                               facts->attempts[end->which]->tokens,
                               end->stream_tokens);
    step.after = resume.next;
    step.next = LLMGW_SERVE_ENDS;

    switch (resume.next) {

    case LLMGW_NEXT_FINISH:
        step.outcome = LLMGW_OUTCOME_SERVED;
        return step;

    case LLMGW_NEXT_PASS:
        step.next = LLMGW_SERVE_PASSES;
        return step;

    case LLMGW_NEXT_BREAK:
        step.outcome = LLMGW_OUTCOME_NOT_RESUMABLE;
        return step;

    case LLMGW_NEXT_GIVE_UP:
        step.outcome = LLMGW_OUTCOME_TRIES_EXHAUSTED;
        return step;

    case LLMGW_NEXT_AGAIN:
        break;
    }

    serve->is_entry = 0;
    step.fails_over = serve->has_begun && end->ending != LLMGW_ENDING_ABSENT;
    step.forgets = resume.clear_excluded;
    serve_lengthens_queue(serve, facts, end);

    if (end->ending == LLMGW_ENDING_FULL) {
        facts->claim->saw_full = 1;
    }

    if (resume.exclude) {
        serve_excludes(serve, facts, end, resume.counted, &step);
    }

    return serve_claims(serve, facts, step);
}


llmgw_serve_step_t
llmgw_serve_ended(llmgw_serve_t *serve, const llmgw_serve_facts_t *facts,
    const llmgw_serve_end_t *end)
{
    llmgw_serve_end_t   ended = *end;
    llmgw_serve_step_t  step = { .stops = 1, .after = LLMGW_NEXT_AGAIN };

    if (ended.ending == LLMGW_ENDING_AMBIGUOUS) {

        if (!serve->has_ambiguous && ended.may_keep) {
            serve->has_ambiguous = 1;
            step.is_ambiguous = 1;

        } else if (ended.is_denial && serve->denials < LLMGW_SERVE_DENIALS) {
            serve->denials++;

        } else {
            /* two replicas have refused the request: it is at fault */
            ended.ending = LLMGW_ENDING_PASSED;
            step.acquits = 1;
            step.judges = 1;
            step.verdict = LLMGW_VERDICT_SUCCESS;
        }
    }

    if (!facts->attempts[!ended.which]->is_running
        || ended.ending == LLMGW_ENDING_PASSED)
    {
        step.stops_other = 1;
        return serve_ended_last(serve, facts, &ended, step);
    }

    /* the other attempt runs on alone */

    serve_excludes(serve, facts, &ended,
                   ended.ending == LLMGW_ENDING_FAILED, &step);

    return step;
}


llmgw_verdict_t
llmgw_attempt_verdict(llmgw_ending_t ending, llmgw_cause_t cause)
{
    switch (ending) {

    case LLMGW_ENDING_FINAL:
    case LLMGW_ENDING_PASSED:
    case LLMGW_ENDING_UNABLE:
        return LLMGW_VERDICT_SUCCESS;

    case LLMGW_ENDING_FAILED:
        break;

    default:
        return LLMGW_VERDICT_NEUTRAL;
    }

    switch (cause) {

    case LLMGW_CAUSE_MEMBER_DOWN:
    case LLMGW_CAUSE_MEMBER_DEAD:
    case LLMGW_CAUSE_MEMBER_STALLED:
    case LLMGW_CAUSE_MEMBER_SUPERSEDED:
    case LLMGW_CAUSE_INTERNAL:
        return LLMGW_VERDICT_NEUTRAL;

    default:
        return LLMGW_VERDICT_FAILURE;
    }
}


/* --- the timer */

/* The attempts whose silence counts now, as bits. */

static unsigned
serve_silent(llmgw_serve_t *serve, const llmgw_serve_facts_t *facts)
{
    unsigned                i, silent;
    const llmgw_attempt_t  *attempt;

    silent = 0;

    for (i = 0; i < 2; i++) {
        attempt = facts->attempts[i];

        if (!attempt->has_ended && serve_silence(serve, facts, attempt) == 0) {
            silent |= 1u << i;
        }
    }

    if (silent == 0 || serve->was_silent) {
        serve->was_silent = 0;
        return silent;
    }

    serve->was_silent = 1;

    if ((int32_t) ((uint32_t) facts->now_ms - serve->due_ms)
        >= LLMGW_SERVE_LATE_MS)
    {
        serve->is_spared = 1;
        serve->spared_ms = facts->now_ms;
    }

    return 0;
}


llmgw_serve_step_t
llmgw_serve_expired(llmgw_serve_t *serve, const llmgw_serve_facts_t *facts)
{
    llmgw_serve_step_t  step = { 0 };

    if (facts->deadline_ms != 0 && serve_is_due(facts, facts->deadline_ms)) {
        return serve_ends(LLMGW_OUTCOME_DEADLINE);
    }

    if (serve->waits && serve_is_due(facts, serve->queue_end_ms)) {
        step.next = LLMGW_SERVE_EXPIRES;
        return step;
    }

    if (serve->waits && facts->claim->hold_end_ms != 0
        && serve_is_due(facts, facts->claim->hold_end_ms))
    {
        return llmgw_serve_begin(serve, facts);
    }

    if (serve->pauses
        && serve_is_due(facts, serve_whole(facts, serve->pause_end_ms)))
    {
        serve->pauses = 0;
        serve->is_entry = 0;
        facts->claim->has_paused = 1;
        return serve_claims(serve, facts, step);
    }

    if (serve->may_hedge
        && serve_is_due(facts, serve_whole(facts, serve->hedge_ms)))
    {
        serve->may_hedge = 0;
        step.next = serve_can_hedge(facts) ? LLMGW_SERVE_HEDGES
                                           : LLMGW_SERVE_RUNS;
    }

    step.pings = facts->ping_ms != 0 && serve_is_due(facts, facts->ping_ms);
    step.silent = facts->is_blocked ? 0 : serve_silent(serve, facts);

    return step;
}
