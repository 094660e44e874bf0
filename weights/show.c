
/* The answer to STATE. */

#include "common/os/mono.h"
#include "weights/store_inner.h"


static const char *const  show_states[] = {
    [ROLES_EMPTY] = "empty", [ROLES_WRITING] = "writing",
    [ROLES_HASHING] = "committing", [ROLES_ADOPTING] = "adopting",
    [ROLES_RECLAIMING] = "reclaiming", [ROLES_COMMITTED] = "committed"
};

static const char *const  show_roles[] = {
    [ROLES_NONE] = "none", [ROLES_WAITER] = "waits",
    [ROLES_WRITER] = "writer", [ROLES_READER] = "reader",
    [ROLES_ADOPTER] = "adopts"
};

static const char *const  show_modes[] = {
    [ROLES_RO] = "ro", [ROLES_RW_OR_RO] = "rw_or_ro"
};


static json_int_t
show_left_ms(uint64_t until_ms, uint64_t now_ms)
{
    return until_ms > now_ms ? (json_int_t) (until_ms - now_ms) : 0;
}


static json_t *
show_client(const roles_client_t *client, uint64_t now_ms)
{
    json_t              *json;
    const store_conn_t  *conn;

    conn = store_conn_of(client);
    json = json_pack("{s:s, s:i, s:s}", "engine", conn->engine, "pid",
                     (int) conn->base.pid, "role", show_roles[client->role]);

    if (client->role == ROLES_WAITER) {
        json_object_set_new(json, "mode",
                            json_string(show_modes[client->mode]));
        json_object_set_new(json, "left_ms",
                            json_integer(show_left_ms(client->deadline_ms,
                                                      now_ms)));
    }

    return json;
}


static json_t *
show_clients(const store_t *store, uint64_t now_ms)
{
    json_t                *list;
    const roles_client_t  *client;

    list = json_array();

    for (client = store->roles.first; client != NULL; client = client->next) {
        json_array_append_new(list, show_client(client, now_ms));
    }

    return list;
}


json_t *
store_show(const store_t *store)
{
    int            has_file, is_committed;
    uint64_t       now_ms;
    roles_state_t  state;

    now_ms = mono_ms();
    state = store->roles.state;
    has_file = store->file.fd != -1;
    is_committed = state == ROLES_COMMITTED;

    return json_pack("{s:b, s:I, s:s, s:s?, s:s?, s:I, s:I, s:I, s:o}",
        "ok", 1,
        "device", (json_int_t) store->device,
        "state", show_states[state],
        "id", is_committed ? store->id : NULL,
        "name", has_file ? store->name : NULL,
        "bytes", has_file ? (json_int_t) store->file.bytes : (json_int_t) 0,
        "hashed_bytes", bytes_are_hashed(store)
                        ? (json_int_t) digest_done_bytes(&store->digest)
                        : is_committed ? (json_int_t) store->file.bytes
                                       : (json_int_t) 0,
        "window_left_ms", show_left_ms(store->roles.no_rw_until_ms, now_ms),
        "clients", show_clients(store, now_ms));
}
