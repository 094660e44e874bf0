
/* Takeovers.  takeover.h has the rules. */

#include <string.h>

#include "core/takeover.h"


/* A takeover counts once it is complete: n is written last. */
llmgw_takeover_t *
llmgw_takeovers_find(llmgw_takeovers_t *takeovers, const char *name)
{
    size_t             len;
    uint32_t           i;
    llmgw_takeover_t  *takeover;

    for (i = 0; i < takeovers->n; i++) {
        if (strcmp(takeovers->groups[i].name, name) == 0) {
            return &takeovers->groups[i];
        }
    }

    len = strlen(name);

    if (i == LLMGW_TAKEOVERS_MAX || len >= LLMGW_TAKEOVER_NAME_BYTES) {
        return NULL;
    }

    takeover = &takeovers->groups[i];
    *takeover = (llmgw_takeover_t) { .generation = 0 };
    memcpy(takeover->name, name, len);

    __atomic_store_n(&takeovers->n, i + 1, __ATOMIC_RELEASE);

    return takeover;
}


int
llmgw_takeover_see(llmgw_takeover_t *takeover,
    const llmgw_takeover_view_t *view, uint64_t now_ms)
{
    int  was_led;

    if (view->generation < takeover->generation) {
        return 0;
    }

    takeover->generation = view->generation;

    if (!view->is_led) {
        if (takeover->process != 0 && takeover->gone_ms == 0) {
            takeover->gone_ms = now_ms;
        }

        return 0;
    }

    was_led = (takeover->process != 0);

    if (takeover->process == view->process || !was_led) {
        takeover->process = view->process;
        takeover->gone_ms = 0;
        return 0;
    }

    takeover->process = view->process;
    takeover->began_ms = takeover->gone_ms ? takeover->gone_ms : now_ms;
    takeover->active_ms = now_ms - takeover->began_ms;
    takeover->gone_ms = 0;
    takeover->has_first_token = 0;
    takeover->awaits_token = 1;
    takeover->count++;

    return 1;
}


void
llmgw_takeover_token(llmgw_takeover_t *takeover, uint64_t process,
    uint64_t now_ms)
{
    if (!takeover->awaits_token || takeover->process != process) {
        return;
    }

    takeover->awaits_token = 0;
    takeover->first_token_ms = now_ms - takeover->began_ms;
    takeover->has_first_token = 1;
}
