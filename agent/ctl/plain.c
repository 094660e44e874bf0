
/* llmgwctl leave, events, inject-suspect: commands whose answer is no table. */

#include <stdio.h>

#include "ctl/link.h"


/*
 * Waits for the end: when this returns, the agent has sent LEFT to all members.
 */
int
ctl_leave(const ctl_t *ctl)
{
    return ctl_link_follow(ctl, json_pack("{s:s}", "cmd", "leave"), NULL,
                           NULL, CTL_LINK_PATIENT, NULL);
}


int
ctl_events(const ctl_t *ctl)
{
    return ctl_link_follow(ctl, json_pack("{s:s}", "cmd", "events"),
                           ctl_print_event, NULL, CTL_LINK_PATIENT, NULL);
}


int
ctl_inject_suspect(const ctl_t *ctl)
{
    return ctl_link_tell(ctl, json_pack("{s:s, s:s?}", "cmd",
                                        "inject_suspect", "id",
                                        ctl->words[0]));
}
