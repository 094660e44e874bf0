
/*
 * Names: of states, as people and JSON see them, and what a name given by
 * somebody else may look like.
 *
 * Everything that comes from a file or a datagram and is printed, compared or
 * made part of a path later passes here first, so that no log line, metric
 * label or JSON string downstream needs quoting for these.
 */

#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>

#include "proto/members/members.h"
#include "proto/members/layout.h"


#define HOST_BYTES  (LLMGW_MEMBERS_ADDRESS_BYTES)


const char *
llmgw_role_name(unsigned role)
{
    static const char *const  names[] = { "replica", "gateway", "shard" };

    return role <= LLMGW_ROLE_SHARD ? names[role] : "unknown";
}


const char *
llmgw_liveness_name(unsigned liveness)
{
    static const char *const  names[] = { "ALIVE", "SUSPECT", "DEAD", "LEFT" };

    return liveness <= LLMGW_LIVENESS_LEFT ? names[liveness] : "UNKNOWN";
}


const char *
llmgw_service_name(unsigned service)
{
    static const char *const  names[] = {
        "STARTING", "READY", "STALLED", "STOPPED", "DOWN"
    };

    return service <= LLMGW_SERVICE_DOWN ? names[service] : "UNKNOWN";
}


const char *
llmgw_group_state_name(unsigned state)
{
    static const char *const  names[] = {
        "none", "init", "standby", "waking", "active"
    };

    return state <= LLMGW_GROUP_ACTIVE ? names[state] : "unknown";
}


llmgw_role_t
llmgw_member_role(const llmgw_member_t *member)
{
    return member->is_shard ? LLMGW_ROLE_SHARD : (llmgw_role_t) member->role;
}


int
llmgw_member_shard(const llmgw_member_t *member, llmgw_shard_t *shard)
{
    if (!member->is_shard || member->shard.layers == 0) {
        return -1;
    }

    *shard = member->shard;

    return 0;
}


int
llmgw_member_shards_are_alike(const llmgw_member_t *a, const llmgw_member_t *b)
{
    return a->is_shard == b->is_shard
           && memcmp(a->resume_group, b->resume_group,
                     sizeof(a->resume_group)) == 0;
}


int
llmgw_member_is_routable(const llmgw_member_t *member)
{
    return member->role == LLMGW_ROLE_REPLICA
           && member->liveness == LLMGW_LIVENESS_ALIVE
           && member->service == LLMGW_SERVICE_READY && !member->draining
           && (member->group[0] == '\0'
               || member->group_state == LLMGW_GROUP_ACTIVE);
}


int
llmgw_member_group_is_valid(const llmgw_member_t *member)
{
    return member->group[0] == '\0'
           ? member->group_state == LLMGW_GROUP_NONE
             && member->group_epoch == 0 && member->group_lock == 0
           : member->group_state != LLMGW_GROUP_NONE
             && llmgw_group_is_valid(member->group, strlen(member->group));
}


int
llmgw_member_groups_are_alike(const llmgw_member_t *a, const llmgw_member_t *b)
{
    return a->group_state == b->group_state
           && a->group_epoch == b->group_epoch
           && a->group_lock == b->group_lock
           && strcmp(a->group, b->group) == 0;
}


/* Not isalnum(): that asks the locale. */
static int
is_alnum(char c)
{
    return (c >= '0' && c <= '9')
           || (c >= 'A' && c <= 'Z')
           || (c >= 'a' && c <= 'z');
}


static int
is_of_names(const char *text, size_t len)
{
    size_t  i;

    for (i = 0; i < len; i++) {
        if (!is_alnum(text[i])
            && text[i] != '.' && text[i] != '_' && text[i] != '-')
        {
            return 0;
        }
    }

    return 1;
}


int
llmgw_name_is_valid(const char *name, size_t len)
{
    return len > 0 && len < LLMGW_MEMBERS_NAME_BYTES && is_alnum(name[0])
           && is_of_names(name, len);
}


int
llmgw_group_is_valid(const char *name, size_t len)
{
    return len > 0 && len < LLMGW_GROUP_BYTES && name[0] != '.'
           && is_of_names(name, len);
}


int
llmgw_shard_is_valid(const llmgw_shard_t *shard)
{
    static const llmgw_shard_t  none;

    if (shard->layers == 0) {
        return memcmp(shard, &none, sizeof(none)) == 0;
    }

    return shard->first <= shard->last && shard->last < shard->layers
           && shard->layers <= LLMGW_SHARD_MAX_LAYERS && shard->is_loaded <= 1
           && memchr(shard->zone, '\0', sizeof(shard->zone)) != NULL
           && (shard->zone[0] == '\0'
               || llmgw_name_is_valid(shard->zone, strlen(shard->zone)));
}


/* 1 .. 65535, no sign, no leading zero. */
static int
port_is_valid(const char *port)
{
    size_t  digits;

    digits = strspn(port, "0123456789");

    return digits >= 1 && digits <= 5 && port[digits] == '\0'
           && port[0] != '0' && atoi(port) <= 65535;
}


static int
host_is_valid(const char *host)
{
    size_t           len;
    struct in6_addr  in6;
    char             inner[HOST_BYTES];

    len = strlen(host);

    if (host[0] != '[') {
        return llmgw_name_is_valid(host, len);
    }

    if (len < 2 || host[len - 1] != ']') {
        return 0;
    }

    memcpy(inner, host + 1, len - 2);
    inner[len - 2] = '\0';

    return inet_pton(AF_INET6, inner, &in6) == 1;
}


int
llmgw_members_address_is_valid(const char *address)
{
    size_t       len;
    const char  *colon;
    char         host[HOST_BYTES];

    colon = strrchr(address, ':');
    if (colon == NULL || colon == address) {
        return 0;
    }

    len = (size_t) (colon - address);
    if (len >= sizeof(host)) {
        return 0;
    }

    memcpy(host, address, len);
    host[len] = '\0';

    return host_is_valid(host) && port_is_valid(colon + 1);
}
