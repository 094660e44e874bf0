
#include <string.h>

#include "proto/members/groups.h"


static int
is_of(const llmgw_member_t *member, const char *group)
{
    return group[0] != '\0' && strcmp(member->group, group) == 0;
}


static int
is_present(const llmgw_member_t *member)
{
    return member->liveness == LLMGW_LIVENESS_ALIVE
           || member->liveness == LLMGW_LIVENESS_SUSPECT;
}


int
llmgw_group_is_active(const llmgw_member_t *member, const char *group)
{
    return is_of(member, group) && is_present(member)
           && member->group_state == LLMGW_GROUP_ACTIVE
           && (member->service == LLMGW_SERVICE_READY
               || member->service == LLMGW_SERVICE_STALLED);
}


int
llmgw_group_is_standby(const llmgw_member_t *member, const char *group)
{
    return is_of(member, group)
           && member->liveness == LLMGW_LIVENESS_ALIVE
           && member->group_state == LLMGW_GROUP_STANDBY
           && member->service == LLMGW_SERVICE_STARTING;
}


int
llmgw_group_has_process(const llmgw_member_t *member, const char *group)
{
    return is_of(member, group) && is_present(member)
           && member->group_state != LLMGW_GROUP_NONE
           && member->service != LLMGW_SERVICE_STOPPED
           && member->service != LLMGW_SERVICE_DOWN;
}


const llmgw_member_t *
llmgw_group_active(const llmgw_member_t *members, size_t n, const char *group)
{
    size_t                 i;
    const llmgw_member_t  *active;

    active = NULL;

    for (i = 0; i < n; i++) {
        if (llmgw_group_is_active(&members[i], group)
            && (active == NULL
                || members[i].group_epoch > active->group_epoch))
        {
            active = &members[i];
        }
    }

    return active;
}
