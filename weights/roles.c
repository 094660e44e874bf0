
#include "weights/roles.h"


static void
roles_link(roles_t *roles, roles_client_t *client, roles_role_t role)
{
    client->role = role;
    client->next = NULL;
    client->prev = roles->last;

    if (roles->last != NULL) {
        roles->last->next = client;

    } else {
        roles->first = client;
    }

    roles->last = client;
}


static void
roles_unlink(roles_t *roles, roles_client_t *client)
{
    client->role = ROLES_NONE;

    if (client->prev != NULL) {
        client->prev->next = client->next;

    } else {
        roles->first = client->next;
    }

    if (client->next != NULL) {
        client->next->prev = client->prev;

    } else {
        roles->last = client->prev;
    }
}


static void
roles_tell(roles_t *roles, roles_client_t *client, roles_event_t event)
{
    roles->callbacks.on_event(roles->data, client, event);
}


static void
roles_forget(roles_t *roles, roles_client_t *client, roles_event_t event)
{
    roles_unlink(roles, client);
    roles_tell(roles, client, event);
}


/* The role that a waiter can get now; NONE: it continues to wait. */
static roles_role_t
roles_due(const roles_t *roles, const roles_client_t *client, uint64_t now_ms)
{
    if (roles->state == ROLES_COMMITTED) {
        return ROLES_READER;
    }

    if (roles->state == ROLES_EMPTY && client->mode != ROLES_RO
        && now_ms >= roles->no_rw_until_ms)
    {
        return ROLES_WRITER;
    }

    return ROLES_NONE;
}


static void
roles_test(roles_t *roles, roles_client_t *client, uint64_t now_ms)
{
    roles_role_t  role;

    role = roles_due(roles, client, now_ms);

    if (role != ROLES_NONE) {
        client->role = role;

        if (role == ROLES_WRITER) {
            roles->state = ROLES_WRITING;
            roles->has_bytes = 0;
        }

        roles_tell(roles, client, ROLES_GRANTED);

    } else if (client->deadline_ms <= now_ms) {
        roles_forget(roles, client, ROLES_TIMED_OUT);
    }
}


void
roles_tick(roles_t *roles, uint64_t now_ms)
{
    roles_client_t  *client, *next;

    for (client = roles->first; client != NULL; client = next) {
        next = client->next;

        if (client->role == ROLES_WAITER) {
            roles_test(roles, client, now_ms);
        }
    }
}


void
roles_init(roles_t *roles, uint64_t no_rw_until_ms,
    const roles_callbacks_t *callbacks, void *data)
{
    roles->state = ROLES_EMPTY;
    roles->has_bytes = 0;
    roles->no_rw_until_ms = no_rw_until_ms;
    roles->first = NULL;
    roles->last = NULL;
    roles->callbacks = *callbacks;
    roles->data = data;
}


const char *
roles_ask(roles_t *roles, roles_client_t *client, roles_mode_t mode,
    uint64_t timeout_ms, uint64_t now_ms)
{
    if (client->role != ROLES_NONE) {
        return "again";
    }

    client->mode = mode;
    client->deadline_ms = now_ms + timeout_ms;
    roles_link(roles, client, ROLES_WAITER);
    roles_tick(roles, now_ms);

    return NULL;
}


static const char *
roles_writes(const roles_t *roles, const roles_client_t *client)
{
    if (client->role != ROLES_WRITER) {
        return "not_writer";
    }

    return roles->state == ROLES_HASHING ? "committing" : NULL;
}


const char *
roles_put(roles_t *roles, const roles_client_t *client)
{
    const char  *reason;

    reason = roles_writes(roles, client);

    if (reason == NULL && roles->has_bytes) {
        reason = "second_put";
    }

    if (reason == NULL) {
        roles->has_bytes = 1;
    }

    return reason;
}


const char *
roles_may_commit(const roles_t *roles, const roles_client_t *client)
{
    const char  *reason;

    reason = roles_writes(roles, client);

    return reason == NULL && !roles->has_bytes ? "no_put" : reason;
}


void
roles_commit(roles_t *roles)
{
    roles->state = ROLES_HASHING;
}


static void
roles_reclaim(roles_t *roles)
{
    roles->state = ROLES_RECLAIMING;
    roles->callbacks.on_reclaim(roles->data);
}


/* Reclaims the writer's bytes, if there are any. */
static void
roles_clear(roles_t *roles, uint64_t now_ms)
{
    if (roles->has_bytes) {
        roles_reclaim(roles);

    } else {
        roles->state = ROLES_EMPTY;
        roles_tick(roles, now_ms);
    }
}


const char *
roles_abort(roles_t *roles, roles_client_t *client, uint64_t now_ms)
{
    const char  *reason;

    reason = roles_writes(roles, client);

    if (reason == NULL) {
        roles_unlink(roles, client);
        roles_clear(roles, now_ms);
    }

    return reason;
}


const char *
roles_may_adopt(const roles_t *roles, const roles_client_t *client)
{
    if (client->role != ROLES_NONE) {
        return "again";
    }

    switch (roles->state) {
    case ROLES_WRITING:
    case ROLES_HASHING:
        return "writer";
    case ROLES_RECLAIMING:
        return "reclaiming";
    default:
        return NULL;
    }
}


void
roles_adopt(roles_t *roles, roles_client_t *client)
{
    if (roles->state == ROLES_COMMITTED) {
        roles_link(roles, client, ROLES_READER);
        roles_tell(roles, client, ROLES_DONE);
        return;
    }

    roles->state = ROLES_ADOPTING;
    roles_link(roles, client, ROLES_ADOPTER);
}


/* Notifies the writer or the adopters of the result. */
static void
roles_settle(roles_t *roles, int is_right)
{
    roles_client_t  *client, *next;

    for (client = roles->first; client != NULL; client = next) {
        next = client->next;

        if (client->role != ROLES_WRITER && client->role != ROLES_ADOPTER) {
            continue;
        }

        if (is_right) {
            client->role = ROLES_READER;
            roles_tell(roles, client, ROLES_DONE);

        } else {
            roles_forget(roles, client, ROLES_FAILED);
        }
    }
}


void
roles_hashed(roles_t *roles, int is_right, uint64_t now_ms)
{
    roles_settle(roles, is_right);

    if (is_right) {
        roles->state = ROLES_COMMITTED;
        roles_tick(roles, now_ms);

    } else {
        roles_reclaim(roles);
    }
}


void
roles_reclaimed(roles_t *roles, uint64_t now_ms)
{
    roles->state = ROLES_EMPTY;
    roles_tick(roles, now_ms);
}


static int
roles_has_adopter(const roles_t *roles)
{
    const roles_client_t  *client;

    for (client = roles->first; client != NULL; client = client->next) {
        if (client->role == ROLES_ADOPTER) {
            return 1;
        }
    }

    return 0;
}


void
roles_gone(roles_t *roles, roles_client_t *client, uint64_t now_ms)
{
    if (client->role == ROLES_NONE) {
        return;
    }

    if (client->role == ROLES_WRITER && roles->state == ROLES_WRITING) {
        roles_unlink(roles, client);
        roles_clear(roles, now_ms);
        return;
    }

    roles_unlink(roles, client);

    if (roles->state == ROLES_ADOPTING && !roles_has_adopter(roles)) {
        roles_reclaim(roles);
    }
}


static uint64_t
roles_waiter_next_ms(const roles_t *roles, const roles_client_t *client)
{
    uint64_t  next_ms;

    next_ms = client->deadline_ms;

    if (roles->state == ROLES_EMPTY && client->mode != ROLES_RO
        && roles->no_rw_until_ms < next_ms)
    {
        next_ms = roles->no_rw_until_ms;
    }

    return next_ms;
}


uint64_t
roles_next_ms(const roles_t *roles)
{
    uint64_t               next_ms, waiter_ms;
    const roles_client_t  *client;

    next_ms = UINT64_MAX;

    for (client = roles->first; client != NULL; client = client->next) {
        if (client->role == ROLES_WAITER) {
            waiter_ms = roles_waiter_next_ms(roles, client);
            next_ms = waiter_ms < next_ms ? waiter_ms : next_ms;
        }
    }

    return next_ms;
}
