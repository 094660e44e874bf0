
/*
 * Everything that comes from a file or a datagram and is later printed,
 * compared, branched by, or made part of a path is checked here first.  So no
 * log line, metric label or JSON string needs to quote it.
 */

#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>

#include "proto/members/member.h"


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


/* --- what may stand in a record */

/* Not isalnum(), which depends on the locale. */
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


/* A port: 1 .. 65535, without a sign or a leading zero. */
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
    char             inner[LLMGW_MEMBERS_ADDRESS_BYTES];

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
    char         host[LLMGW_MEMBERS_ADDRESS_BYTES];

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


int
llmgw_member_group_is_valid(const llmgw_member_t *member)
{
    return member->group[0] == '\0'
           ? member->group_state == LLMGW_GROUP_NONE
             && member->group_epoch == 0 && member->group_lock == 0
           : member->group_state != LLMGW_GROUP_NONE
             && llmgw_group_is_valid(member->group, strlen(member->group));
}


static int
is_terminated(const char *text, size_t bytes)
{
    return memchr(text, '\0', bytes) != NULL;
}


static int
strings_are_terminated(const llmgw_member_t *m)
{
    return is_terminated(m->id, sizeof(m->id))
           && is_terminated(m->model_version, sizeof(m->model_version))
           && is_terminated(m->address, sizeof(m->address))
           && is_terminated(m->grpc, sizeof(m->grpc))
           && is_terminated(m->drain_owner, sizeof(m->drain_owner))
           && is_terminated(m->resume_group, sizeof(m->resume_group))
           && is_terminated(m->group, sizeof(m->group));
}


static int
is_printable(const char *text)
{
    for (; *text; text++) {
        if (*text < ' ' || *text > '~') {
            return 0;
        }
    }

    return 1;
}


static int
grpc_is_valid(const llmgw_member_t *m)
{
    if (m->grpc[0] == '\0') {
        return llmgw_member_role(m) == LLMGW_ROLE_GATEWAY;
    }

    return llmgw_members_address_is_valid(m->grpc);
}


static int
name_may_be_empty(const char *name)
{
    return name[0] == '\0' || llmgw_name_is_valid(name, strlen(name));
}


static const char *
shard_reason(const llmgw_member_t *m)
{
    if (m->is_shard > 1 || (m->is_shard && m->role != LLMGW_ROLE_GATEWAY)) {
        return "a shard in another role";
    }

    if (m->is_shard && !llmgw_shard_is_valid(&m->shard)) {
        return "invalid layers of a shard";
    }

    return NULL;
}


static const char *
strings_reason(const llmgw_member_t *m)
{
    if (!strings_are_terminated(m)) {
        return "a string without an end";
    }

    if (!llmgw_name_is_valid(m->id, strlen(m->id))) {
        return "an invalid id";
    }

    if (!name_may_be_empty(m->model_version)) {
        return "an invalid model version";
    }

    if (!m->is_shard && !name_may_be_empty(m->resume_group)) {
        return "an invalid resume group";
    }

    if (!llmgw_member_group_is_valid(m)) {
        return "an invalid group";
    }

    if (!llmgw_members_address_is_valid(m->address)) {
        return "an invalid address";
    }

    if (!grpc_is_valid(m)) {
        return "an invalid gRPC address";
    }

    if (!is_printable(m->drain_owner)) {
        return "an invalid owner of its drain";
    }

    return shard_reason(m);
}


const char *
llmgw_member_reason(const llmgw_member_t *m)
{
    if (m->role > LLMGW_ROLE_GATEWAY) {
        return "an unknown role";
    }

    if (m->liveness > LLMGW_LIVENESS_LEFT) {
        return "an unknown liveness";
    }

    if (m->service > LLMGW_SERVICE_DOWN) {
        return "an unknown service state";
    }

    if (m->group_state > LLMGW_GROUP_ACTIVE) {
        return "an unknown state in its group";
    }

    if (m->draining > 1) {
        return "a drain flag that is neither 0 nor 1";
    }

    if (m->weight == 0 || m->weight > LLMGW_MEMBERS_WEIGHT_MAX) {
        return "a weight out of range";
    }

    return strings_reason(m);
}


int
llmgw_members_list_is_valid(const char *names, size_t bytes)
{
    size_t  at;

    if (bytes == 0 || bytes > LLMGW_MEMBERS_LIST_BYTES
        || names[bytes - 1] != '\0')
    {
        return 0;
    }

    for (at = 0; at < bytes; at += strlen(names + at) + 1) {
        if (names[at] == '\0' || !is_printable(names + at)) {
            return 0;
        }
    }

    return 1;
}


/* --- what follows from it */

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
llmgw_member_groups_are_alike(const llmgw_member_t *a, const llmgw_member_t *b)
{
    return a->group_state == b->group_state
           && a->group_epoch == b->group_epoch
           && a->group_lock == b->group_lock
           && strcmp(a->group, b->group) == 0;
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


static int
is_serving(const llmgw_member_t *member)
{
    return is_present(member)
           && (member->service == LLMGW_SERVICE_READY
               || member->service == LLMGW_SERVICE_STALLED);
}


int
llmgw_group_is_active(const llmgw_member_t *member, const char *group)
{
    return is_of(member, group) && is_serving(member)
           && member->group_state == LLMGW_GROUP_ACTIVE;
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


int
llmgw_shard_is_advertised(const llmgw_member_t *member)
{
    return member->is_shard && member->shard.layers != 0
           && is_serving(member);
}


int
llmgw_shard_is_usable(const llmgw_member_t *member)
{
    return llmgw_shard_is_advertised(member)
           && member->liveness == LLMGW_LIVENESS_ALIVE
           && member->service == LLMGW_SERVICE_READY && !member->draining;
}


static int
compare_id(const void *id, const void *member)
{
    return strcmp(id, ((const llmgw_member_t *) member)->id);
}


const llmgw_member_t *
llmgw_roster_find(const llmgw_roster_t *roster, const char *id)
{
    return roster->n == 0
           ? NULL : bsearch(id, roster->members, roster->n,
                            sizeof(llmgw_member_t), compare_id);
}
