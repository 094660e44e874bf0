
#include "core/resume.h"


static llmgw_resume_step_t llmgw_resume_failed(llmgw_resume_t *resume,
    uint64_t attempt_tokens, uint64_t stream_tokens);


const char *
llmgw_cause_name(llmgw_cause_t cause)
{
    static const char  *names[] = {
        "none", "connect", "reset", "status", "unfinished", "malformed",
        "first_token_timeout", "token_timeout", "member_down", "member_dead",
        "member_stalled", "member_superseded", "draining", "full", "goaway",
        "internal"
    };

    if ((unsigned) cause >= sizeof(names) / sizeof(names[0])) {
        return "unknown";
    }

    return names[cause];
}


llmgw_resume_step_t
llmgw_resume_next(llmgw_resume_t *resume, llmgw_ending_t outcome,
    uint64_t attempt_tokens, uint64_t stream_tokens)
{
    llmgw_resume_step_t  step = { LLMGW_NEXT_AGAIN, 0, 0, 0 };

    if (attempt_tokens > 0) {
        resume->tries = 0;
        resume->refusals = 0;
        resume->drains = 0;
    }

    switch (outcome) {

    case LLMGW_ENDING_FINAL:
        step.next = LLMGW_NEXT_FINISH;
        return step;

    case LLMGW_ENDING_PASSED:
        step.next = LLMGW_NEXT_PASS;
        return step;

    case LLMGW_ENDING_UNABLE:
        step.next = LLMGW_NEXT_BREAK;
        return step;

    case LLMGW_ENDING_DRAINING:
        step.exclude = 1;

        if (++resume->drains > LLMGW_RESUME_FREE_DRAINS) {
            step = llmgw_resume_failed(resume, attempt_tokens,
                                       stream_tokens);
        }
        break;

    case LLMGW_ENDING_FULL:
    case LLMGW_ENDING_ABSENT:
    case LLMGW_ENDING_AMBIGUOUS:
        step.exclude = 1;
        break;

    case LLMGW_ENDING_REFUSED:
        if (++resume->refusals > LLMGW_RESUME_FREE_REFUSALS) {
            step = llmgw_resume_failed(resume, attempt_tokens,
                                       stream_tokens);
        }
        break;

    case LLMGW_ENDING_CANCELLED:
        step.next = LLMGW_NEXT_GIVE_UP;
        return step;

    case LLMGW_ENDING_FAILED:
        step = llmgw_resume_failed(resume, attempt_tokens, stream_tokens);
        break;
    }

    step.clear_excluded = (attempt_tokens > 0);
    return step;
}


static llmgw_resume_step_t
llmgw_resume_failed(llmgw_resume_t *resume, uint64_t attempt_tokens,
    uint64_t stream_tokens)
{
    llmgw_resume_step_t  step = { LLMGW_NEXT_AGAIN, 1, 0, 1 };

    if (attempt_tokens == 0 && ++resume->tries >= resume->tries_max) {
        step.next = LLMGW_NEXT_GIVE_UP;
        return step;
    }

    if (stream_tokens > 0 && ++resume->failovers > resume->failovers_max) {
        step.next = LLMGW_NEXT_GIVE_UP;
    }

    return step;
}


int
llmgw_resume_is_last_try(const llmgw_resume_t *resume)
{
    return resume->tries + 1 >= resume->tries_max;
}


uint32_t
llmgw_resume_pause_ms(const llmgw_resume_t *resume, uint64_t random)
{
    uint32_t  i, pause_ms;

    pause_ms = LLMGW_RESUME_PAUSE_MS;

    for (i = 1; i < resume->tries && pause_ms < LLMGW_RESUME_PAUSE_MAX_MS; i++)
    {
        pause_ms *= 2;
    }

    if (pause_ms > LLMGW_RESUME_PAUSE_MAX_MS) {
        pause_ms = LLMGW_RESUME_PAUSE_MAX_MS;
    }

    return pause_ms - random % (pause_ms / 2 + 1);
}


llmgw_resume_by_t
llmgw_resume_by(const llmgw_resume_facts_t *facts, const char **why)
{
    if (facts->is_plain) {
        return LLMGW_RESUME_BY_POSITION;
    }

    if (!facts->is_on) {
        *why = "llmgw_resume is off";

    } else if (facts->never) {
        *why = "its replica sent what cannot be continued";

    } else if (!facts->is_one) {
        *why = "it has several choices";

    } else if (facts->ids == facts->tokens && !facts->no_ids) {
        return LLMGW_RESUME_BY_IDS;

    } else if (facts->has_text) {
        return LLMGW_RESUME_BY_TEXT;

    } else {
        *why = facts->no_memory ? "llmgw_body_memory was used up"
                                : "its tokens' ids are not known";
    }

    return LLMGW_RESUME_BY_NOTHING;
}


const char *
llmgw_resume_by_name(llmgw_resume_by_t by)
{
    static const char  *names[] = { "off", "position", "ids", "text" };

    return names[by];
}
