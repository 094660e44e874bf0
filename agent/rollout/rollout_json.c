
#include <stdio.h>

#include "rollout/rollout_json.h"


size_t
rollout_ndone(const rollout_t *rollout)
{
    return rollout_count(rollout, ROLLOUT_DONE)
           + rollout_count(rollout, ROLLOUT_SKIPPED);
}


static const rollout_step_t *
rollout_failed_step(const rollout_t *rollout)
{
    size_t                 i;
    const rollout_step_t  *step;

    for (i = 0; i < rollout->nsteps; i++) {
        step = &rollout->steps[i];

        if (step->reason[0] != '\0') {
            return step;
        }
    }

    return NULL;
}


void
rollout_reason(const rollout_t *rollout, char *text)
{
    const rollout_step_t  *step;

    switch (rollout->verdict) {
    case ROLLOUT_RUNNING:
    case ROLLOUT_COMPLETE:
        text[0] = '\0';
        break;

    case ROLLOUT_BROKEN:
        step = rollout_failed_step(rollout);
        snprintf(text, ROLLOUT_REASON_BYTES, "replica \"%s\" failed at "
                 "\"%s\": %.384s", step->id,
                 rollout_state_name(step->failed_in), step->reason);
        break;

    case ROLLOUT_ABORTED:
        snprintf(text, ROLLOUT_REASON_BYTES, "it was aborted");
        break;

    case ROLLOUT_YIELDED:
        snprintf(text, ROLLOUT_REASON_BYTES,
                 "another update began before it");
        break;
    }
}


json_t *
rollout_show_step(const rollout_t *rollout, size_t i, uint64_t now_us)
{
    json_t                *shown;
    const rollout_step_t  *step;

    step = &rollout->steps[i];
    shown = json_pack("{s:s, s:s, s:s}", "id", step->id, "from", step->from,
                      "step", rollout_state_name(step->state));

    if (step->group[0] != '\0') {
        json_object_set_new(shown, "group", json_string(step->group));
    }

    if (step->state != ROLLOUT_WAITING && step->state < ROLLOUT_DONE) {
        json_object_set_new(shown, "ms",
                            json_integer((now_us - step->since_us) / 1000));
    }

    if (step->state == ROLLOUT_DRAINING) {
        json_object_set_new(shown, "active_requests",
                            json_integer(step->streams));
    }

    if (step->is_late) {
        json_object_set_new(shown, "streams_left",
                            json_integer(step->streams));
    }

    if (step->reason[0] != '\0') {
        json_object_set_new(shown, "failed_at",
                            json_string(rollout_state_name(step->failed_in)));
        json_object_set_new(shown, "error", json_string(step->reason));
    }

    return shown;
}


static json_t *
rollout_show_steps(const rollout_t *rollout, int only_active,
    uint64_t now_us)
{
    size_t           i;
    json_t          *list;
    rollout_state_t  state;

    list = json_array();

    for (i = 0; i < rollout->nsteps; i++) {
        state = rollout->steps[i].state;

        if (!only_active
            || (state != ROLLOUT_WAITING && state < ROLLOUT_DONE))
        {
            json_array_append_new(list, rollout_show_step(rollout, i,
                                                          now_us));
        }
    }

    return list;
}


json_t *
rollout_show_active(const rollout_t *rollout, uint64_t now_us)
{
    return rollout_show_steps(rollout, 1, now_us);
}


json_t *
rollout_show(const rollout_t *rollout, const rollout_label_t *label)
{
    char     reason[ROLLOUT_REASON_BYTES];
    json_t  *shown;

    shown = json_pack("{s:s, s:s, s:s, s:I, s:I, s:I, s:I, s:i, s:i, s:o}",
                      "id", label->id, "to", rollout->to,
                      "state", rollout_verdict_name(rollout->verdict),
                      "began", (json_int_t) label->began_ms,
                      "done", (json_int_t) rollout_ndone(rollout),
                      "skipped", (json_int_t) rollout_count(rollout,
                                                            ROLLOUT_SKIPPED),
                      "total", (json_int_t) rollout->nsteps,
                      "min_available", rollout->min_available,
                      "max_unavailable", rollout->max_unavailable,
                      "steps", rollout_show_steps(rollout, 0, label->now_us));

    if (label->ended_ms != 0) {
        json_object_set_new(shown, "ended",
                            json_integer((json_int_t) label->ended_ms));

    } else if (rollout->is_ending) {
        json_object_set_new(shown, "ending", json_true());
    }

    rollout_reason(rollout, reason);

    if (reason[0] != '\0') {
        json_object_set_new(shown, "error", json_string(reason));
    }

    return shown;
}


static const char *
rollout_means(const rollout_t *rollout, const rollout_step_t *step)
{
    if (step->state != ROLLOUT_WAITING) {
        return "nothing";       /* SKIPPED, ABSENT */
    }

    return rollout->has_stop ? "stop and start"
                             : rollout->has_start ? "start" : "order";
}


json_t *
rollout_show_plan(const rollout_t *rollout)
{
    size_t                 i;
    json_t                *list;
    const rollout_step_t  *step;

    list = json_array();

    for (i = 0; i < rollout->nsteps; i++) {
        step = &rollout->steps[i];

        json_array_append_new(list,
            json_pack("{s:s, s:s, s:s, s:b, s:s*}", "id", step->id,
                      "from", step->from, "by", rollout_means(rollout, step),
                      "ready", !step->is_first,
                      "group", step->group[0] ? step->group : NULL));
    }

    return json_pack("{s:s, s:i, s:i, s:o}", "to", rollout->to,
                     "min_available", rollout->min_available,
                     "max_unavailable", rollout->max_unavailable,
                     "steps", list);
}


/* Adds what the failed step has beside the text. */
static void
rollout_show_failed(const rollout_t *rollout, json_t *end)
{
    const rollout_step_t  *step;

    step = rollout_failed_step(rollout);

    if (step != NULL) {
        json_object_set_new(end, "id", json_string(step->id));
        json_object_set_new(end, "step",
                            json_string(rollout_state_name(step->failed_in)));
    }
}


json_t *
rollout_show_end(const rollout_t *rollout, json_t *update)
{
    char         reason[ROLLOUT_REASON_BYTES];
    json_t      *end;
    const char  *code;

    if (rollout->verdict == ROLLOUT_COMPLETE) {
        return json_pack("{s:b, s:o}", "ok", 1, "update", update);
    }

    code = rollout->verdict == ROLLOUT_BROKEN ? "step_failed"
           : rollout->verdict == ROLLOUT_ABORTED ? "aborted"
                                                 : "update_running";
    rollout_reason(rollout, reason);
    end = json_pack("{s:b, s:s, s:o, s:o}", "ok", 0, "code", code,
                    "error", json_sprintf("%s; %zu of %zu done", reason,
                                          rollout_ndone(rollout),
                                          rollout->nsteps),
                    "update", update);
    rollout_show_failed(rollout, end);

    return end;
}
