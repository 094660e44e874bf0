
/* A client's requests, each a line of JSON. */

#include <string.h>
#include <unistd.h>

#include "common/duration.h"
#include "common/os/mono.h"
#include "proto/members/members.h"
#include "weights/store_inner.h"


typedef struct {
    const char   *cmd;
    const char *(*run)(store_conn_t *conn, const json_t *json);
} request_t;


/* The reasons of refusals, and their meaning. */
static const struct {
    const char  *reason;
    const char  *why;
} request_reasons[] = {
    { "bad_request", "this is not a request, or lacks a member" },
    { "again", "this connection has a role already" },
    { "not_writer", "only the writer may do this" },
    { "not_reader", "only a reader gets the weights" },
    { "no_put", "nothing was put" },
    { "second_put", "something was put already" },
    { "committing", "it is being committed" },
    { "no_fd", "no file descriptor came with this line" },
    { "not_memfd", "the file is no memfd" },
    { "not_readable", "the descriptor cannot be read from" },
    { "not_sealable", "the memfd cannot be sealed: made without "
      "MFD_ALLOW_SEALING, or not open for writing" },
    { "bad_size", "the memfd has another size, none, or too much" },
    { "sparse", "the memfd has holes: each byte has to be written, a zero "
      "too" },
    { "mapped", "the memfd is mapped to be written: unmap it, and commit "
      "again" },
    { "hash_failed", "the memfd could not be read" },
    { "unsealed", "the memfd is not sealed: any process could change it" },
    { "writer", "another engine is writing; try again later" },
    { "adopting", "another file is being checked; try again later" },
    { "reclaiming", "memory is being freed; try again later" },
    { "other_bytes", "the memfd has other bytes than its id says" },
    { "other_weights", "another file, or another id, is committed" }
};

#define REQUEST_NREASONS  (sizeof(request_reasons) / sizeof(request_reasons[0]))


int
request_passes(const char *reason)
{
    return strcmp(reason, "writer") == 0 || strcmp(reason, "adopting") == 0
           || strcmp(reason, "reclaiming") == 0;
}


const char *
request_why(const char *reason)
{
    size_t  i;

    for (i = 1; i < REQUEST_NREASONS; i++) {
        if (strcmp(request_reasons[i].reason, reason) == 0) {
            return request_reasons[i].why;
        }
    }

    return request_reasons[0].why;
}


/* Whether a file's name is short, and without control characters. */
static int
request_is_name(const char *name)
{
    const char  *c;

    for (c = name; *c != '\0'; c++) {
        if ((unsigned char) *c < ' ' || *c == '\177' || *c == '/') {
            return 0;
        }
    }

    return c > name && c - name < STORE_NAME_BYTES;
}


static int
request_is_id(const char *id)
{
    return strspn(id, "0123456789abcdef") == DIGEST_ID_BYTES - 1
           && id[DIGEST_ID_BYTES - 1] == '\0';
}


static int
request_mode(const char *text, roles_mode_t *mode)
{
    size_t  i;

    static const char *const  modes[] = {
        [ROLES_RO] = "ro", [ROLES_RW_OR_RO] = "rw_or_ro"
    };

    for (i = 0; i < sizeof(modes) / sizeof(modes[0]); i++) {
        if (strcmp(modes[i], text) == 0) {
            *mode = (roles_mode_t) i;
            return 0;
        }
    }

    return -1;
}


/* Reads the name that the client gives itself, if any; it is ignored if the
   client has a role already. */
static int
request_engine(store_conn_t *conn, const json_t *json)
{
    size_t       len;
    const char  *engine;

    if (json_object_get(json, "engine") == NULL
        || conn->client.role != ROLES_NONE)
    {
        return 0;
    }

    engine = service_text(json, "engine");
    len = strlen(engine);

    if (len >= STORE_ENGINE_BYTES || !llmgw_name_is_valid(engine, len)) {
        return -1;
    }

    memcpy(conn->engine, engine, len + 1);

    return 0;
}


static const char *
request_hello(store_conn_t *conn, const json_t *json)
{
    uint64_t      timeout_ms = UINT64_MAX;
    roles_mode_t  mode;

    if (request_mode(service_text(json, "mode"), &mode) != 0
        || service_number(json, "timeout_ms", DURATION_MAX_MS, &timeout_ms)
           != 0
        || request_engine(conn, json) != 0)
    {
        return "bad_request";
    }

    return roles_ask(&conn->store->roles, &conn->client, mode, timeout_ms,
                     mono_ms());
}


/* Checks that fd is a memfd of that size which can be sealed later. */
static const char *
request_look(memfile_t *file, int fd, uint64_t bytes)
{
    const char  *reason;

    reason = memfile_look(file, fd);

    if (reason == NULL && file->bytes != bytes) {
        reason = "bad_size";
    }

    return reason == NULL ? memfile_can_seal(file) : reason;
}


static const char *
request_put(store_conn_t *conn, const json_t *json)
{
    int          fd;
    store_t     *store;
    uint64_t     bytes = UINT64_MAX;
    memfile_t    file;
    const char  *name, *reason;

    store = conn->store;
    name = service_text(json, "name");

    if (!request_is_name(name)
        || service_number(json, "bytes", INT64_MAX, &bytes) != 0)
    {
        return "bad_request";
    }

    fd = line_conn_take_fd(conn->base.line);
    reason = request_look(&file, fd, bytes);

    if (reason == NULL) {
        reason = roles_put(&store->roles, &conn->client);
    }

    if (reason == NULL) {
        store->file = file;
        strcpy(store->name, name);

    } else if (fd != -1) {
        close(fd);
    }

    return reason;
}


static const char *
request_commit(store_conn_t *conn, const json_t *json)
{
    store_t     *store;
    const char  *reason;

    store = conn->store;
    reason = roles_may_commit(&store->roles, &conn->client);

    if (reason == NULL) {
        reason = memfile_seal(&store->file);
    }

    if (reason == NULL) {
        roles_commit(&store->roles);
        bytes_hash(store);
    }

    return reason;
}


static const char *
request_abort(store_conn_t *conn, const json_t *json)
{
    const char  *reason;

    reason = roles_abort(&conn->store->roles, &conn->client, mono_ms());

    if (reason == NULL) {
        service_send(&conn->base, json_pack("{s:s}", "type", "aborted"), -1);
    }

    return reason;
}


static const char *
request_get(store_conn_t *conn, const json_t *json)
{
    const store_t  *store;

    if (conn->client.role != ROLES_READER) {
        return "not_reader";
    }

    store = conn->store;
    service_send(&conn->base, json_pack("{s:s, s:s, s:s, s:I}", "type", "slot",
                                        "id", store->id, "name", store->name,
                                        "bytes",
                                        (json_int_t) store->file.bytes),
                 store->file.fd);

    return NULL;
}


/* Checks that the file is sealed and whole, and that it is the slot's if the
   slot has one. */
static const char *
request_may_adopt(const store_conn_t *conn, memfile_t *file, int fd,
    const char *id)
{
    const char     *reason;
    const store_t  *store;

    store = conn->store;
    reason = roles_may_adopt(&store->roles, &conn->client);

    if (reason == NULL) {
        reason = memfile_look(file, fd);
    }

    if (reason != NULL) {
        return reason;
    }

    if (!memfile_is_sealed(file)) {
        return "unsealed";
    }

    if (store->roles.state != ROLES_EMPTY
        && (!memfile_is_same(file, &store->file)
            || strcmp(id, store->id) != 0))
    {
        return store->roles.state == ROLES_ADOPTING ? "adopting"
                                                    : "other_weights";
    }

    return memfile_is_whole(file) ? NULL : "sparse";
}


/* Begins an adoption; the descriptor is the store's from now on. */
static void
request_begin_adoption(store_t *store, const memfile_t *file,
    const json_t *json)
{
    store->file = *file;
    strcpy(store->name, service_text(json, "name"));
    strcpy(store->id, service_text(json, "id"));
}


static const char *
request_adopt(store_conn_t *conn, const json_t *json)
{
    int          fd, is_first;
    store_t     *store;
    memfile_t    file;
    const char  *reason;

    store = conn->store;

    if (!request_is_name(service_text(json, "name"))
        || !request_is_id(service_text(json, "id"))
        || request_engine(conn, json) != 0)
    {
        return "bad_request";
    }

    fd = line_conn_take_fd(conn->base.line);
    reason = request_may_adopt(conn, &file, fd, service_text(json, "id"));
    is_first = reason == NULL && store->roles.state == ROLES_EMPTY;

    if (is_first) {
        request_begin_adoption(store, &file, json);

    } else if (fd != -1) {
        close(fd);
    }

    if (reason == NULL) {
        if (store->roles.state != ROLES_COMMITTED) {
            service_send(&conn->base, json_pack("{s:s}", "type", "adopting"),
                         -1);
        }

        roles_adopt(&store->roles, &conn->client);
    }

    if (is_first) {
        bytes_hash(store);
    }

    return reason;
}


static const char *
request_state(store_conn_t *conn, const json_t *json)
{
    service_send(&conn->base, store_show(conn->store), -1);

    return NULL;
}


static const request_t  requests[] = {
    { "hello", request_hello },
    { "put", request_put },
    { "commit", request_commit },
    { "abort", request_abort },
    { "get", request_get },
    { "adopt", request_adopt },
    { "state", request_state }
};

#define REQUEST_NCMDS  (sizeof(requests) / sizeof(requests[0]))


void
request_take(store_conn_t *conn, char *text, size_t len)
{
    size_t       i;
    json_t      *json;
    const char  *reason;

    json = json_loadb(text, len, JSON_REJECT_DUPLICATES, NULL);
    reason = "bad_request";

    for (i = 0; i < REQUEST_NCMDS; i++) {
        if (strcmp(requests[i].cmd, service_text(json, "cmd")) == 0) {
            reason = requests[i].run(conn, json);
        }
    }

    json_decref(json);

    if (reason != NULL) {
        store_refuse(conn, reason);
    }
}
