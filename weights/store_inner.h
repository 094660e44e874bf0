
/* The service's own parts: connections and the slot. */

#ifndef WEIGHTS_STORE_INNER_H
#define WEIGHTS_STORE_INNER_H

#include <limits.h>

#include "common/service/service.h"
#include "weights/digest.h"
#include "weights/memfile.h"
#include "weights/roles.h"
#include "weights/store.h"


#define STORE_ENGINE_BYTES  64
#define STORE_NAME_BYTES    (NAME_MAX + 1)

typedef struct store_conn_s  store_conn_t;

struct store_conn_s {
    service_conn_t   base;              /* first: see service.h */
    roles_client_t   client;
    store_t         *store;
    char             engine[STORE_ENGINE_BYTES];    /* the name that it gave */
};

struct store_s {
    struct ev_loop   *loop;
    const log_t      *log;
    service_t         service;
    ev_prepare        prepare;          /* sets wake */
    ev_timer          wake;             /* roles_tick() */
    ev_timer          beat;             /* progress, idle connections */
    int64_t           device;
    roles_t           roles;
    memfile_t         file;             /* fd -1: the slot is empty */
    char              name[STORE_NAME_BYTES];
    char              id[DIGEST_ID_BYTES];  /* committed, or claimed by
                                               adopters */
    digest_t          digest;
    uint64_t          digest_ms;        /* when hashing began */
    uint64_t          logged_ms;        /* when its progress was last logged */
    unsigned          is_hashing:1;     /* hashing threads run */
    threads_t         reclaim;
};


/* --- store.c */

/* The connection of a client. */
store_conn_t *store_conn_of(const roles_client_t *client);

/* reason: a word of the table in request.c. */
void store_refuse(store_conn_t *conn, const char *reason);

/* --- bytes.c */

/* To be called when all bytes are present and sealed: computes their id. */
void bytes_hash(store_t *store);

/* Whether hashing is running and its result is wanted. */
int bytes_are_hashed(const store_t *store);

/* Sends progress to waiting clients, and logs it now and then. */
void bytes_tell_progress(store_t *store);

/* The machine's callback: the bytes are not needed.  Hashing ends first. */
void bytes_reclaim(void *data);

/* --- request.c */

/* Handles one line of a client. */
void request_take(store_conn_t *conn, char *text, size_t len);

/* Whether the reason is temporary, so that asking again soon may help. */
int request_passes(const char *reason);

/* The text for a reason. */
const char *request_why(const char *reason);

/* --- show.c */

json_t *store_show(const store_t *store);

#endif /* WEIGHTS_STORE_INNER_H */
