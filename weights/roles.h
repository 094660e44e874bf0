
/*
 * Decides which clients may write or read the weights: a machine without I/O.
 *
 * Events and their times are passed in, and a callback reports the result for
 * each client.  There is one slot:
 *
 *            RW granted           commit            hashed
 *    EMPTY ------------> WRITING --------> HASHING --------> COMMITTED
 *    ^   |                  | abort, or       | failed           ^
 *    |   |                  | its end         v                  |
 *    |   |                  '----------> RECLAIMING              |
 *    |   |                                |   ^                  |
 *    |   |                                |   | failed, or       |
 *    |   |                                |   | other bytes, or  |
 *    |   |                                |   | the last         |
 *    |   |  <---- reclaimed --------------'   | adopter's end    |
 *    '---|------------------------------------'                  |
 *        |                   adopt                      hashed   |
 *        '-----------------------------> ADOPTING ---------------'
 *
 * COMMITTED is final: other weights have a service of their own.  A writer that
 * ends while HASHING loses its role only, since all its bytes are present and
 * can no longer be changed.  When the last adopter ends, only the service has
 * the bytes.  They are dropped, since no client may write while they are being
 * checked.
 *
 * Waiters are tested again, in the order in which they came, after each event:
 *
 *              EMPTY                              COMMITTED
 *    RW_OR_RO  writer, unless that is held back   reader
 *    RO        waits                              reader
 *
 * In all other states they wait.  No client becomes the writer until a time
 * that is given at the beginning: a restarted service waits for engines that
 * have the weights and hand them back, so that no engine loads a second copy.
 * While an adoption is open the slot is not EMPTY, so that no client becomes
 * the writer then either.
 *
 * A waiter whose time is over is notified and removed; if it can be granted at
 * the same moment, it is granted.
 */

#ifndef WEIGHTS_ROLES_H
#define WEIGHTS_ROLES_H

#include <stddef.h>
#include <stdint.h>


typedef enum {
    ROLES_RO = 0,
    ROLES_RW_OR_RO
} roles_mode_t;

typedef enum {
    ROLES_EMPTY = 0,
    ROLES_WRITING,
    ROLES_HASHING,
    ROLES_ADOPTING,
    ROLES_RECLAIMING,
    ROLES_COMMITTED
} roles_state_t;

typedef enum {
    ROLES_NONE = 0,
    ROLES_WAITER,
    ROLES_WRITER,
    ROLES_READER,
    ROLES_ADOPTER
} roles_role_t;

/* Events for a client, with its role from now on. */
typedef enum {
    ROLES_GRANTED = 0,      /* WRITER or READER */
    ROLES_TIMED_OUT,        /* NONE */
    ROLES_DONE,             /* READER: the bytes that it wrote or gave are
                               committed */
    ROLES_FAILED            /* NONE: they are not, see roles_hashed() */
} roles_event_t;

typedef struct roles_client_s  roles_client_t;

/* One connection, zeroed by its owner before its first role. */
struct roles_client_s {
    roles_role_t     role;
    roles_mode_t     mode;              /* of a waiter */
    uint64_t         deadline_ms;       /* of a waiter */
    roles_client_t  *prev;              /* in the list, while it has a role */
    roles_client_t  *next;
};

/* They must not call the machine. */
typedef struct {
    void  (*on_event)(void *data, roles_client_t *client, roles_event_t event);
    /* RECLAIMING: free the bytes, then call roles_reclaimed().  If they are
       being hashed, that ends first, and roles_hashed() is not called. */
    void  (*on_reclaim)(void *data);
} roles_callbacks_t;

typedef struct {
    roles_state_t       state;
    int                 has_bytes;      /* WRITING: they were put */
    uint64_t            no_rw_until_ms;
    roles_client_t     *first;          /* those with a role, oldest first */
    roles_client_t     *last;
    roles_callbacks_t   callbacks;
    void               *data;
} roles_t;


/* All times are of one monotonic clock, and never go back. */
void roles_init(roles_t *roles, uint64_t no_rw_until_ms,
    const roles_callbacks_t *callbacks, void *data);

/*
 * The following functions return NULL, or the reason of a refusal as one word,
 * after which nothing has changed.
 */

/* Asks for a role; the answer is an event, which may come before this
   returns. */
const char *roles_ask(roles_t *roles, roles_client_t *client,
    roles_mode_t mode, uint64_t timeout_ms, uint64_t now_ms);

/* The writer has put its bytes; once. */
const char *roles_put(roles_t *roles, const roles_client_t *client);

/* Whether the writer may commit: then the caller seals the bytes, and calls
   roles_commit(). */
const char *roles_may_commit(const roles_t *roles,
    const roles_client_t *client);
void roles_commit(roles_t *roles);

/* The writer gives up; its bytes are reclaimed. */
const char *roles_abort(roles_t *roles, roles_client_t *client,
    uint64_t now_ms);

/*
 * Whether the client may hand back the weights that it has.  The caller checks
 * the bytes, and calls roles_adopt(): if the slot is EMPTY they have to be
 * hashed; if it is ADOPTING they have to be the bytes that are being hashed;
 * and if it is COMMITTED they have to be the committed ones, and the client is
 * a reader at once.
 */
const char *roles_may_adopt(const roles_t *roles,
    const roles_client_t *client);
void roles_adopt(roles_t *roles, roles_client_t *client);

/* To be called at the end of HASHING or ADOPTING.  is_right: the bytes are the
   expected ones, and stay; 0: they are reclaimed. */
void roles_hashed(roles_t *roles, int is_right, uint64_t now_ms);

void roles_reclaimed(roles_t *roles, uint64_t now_ms);

/* To be called when the connection has ended: any role of it ends. */
void roles_gone(roles_t *roles, roles_client_t *client, uint64_t now_ms);

/* To be called when time has passed. */
void roles_tick(roles_t *roles, uint64_t now_ms);

/* When roles_tick() has something to do; UINT64_MAX: never. */
uint64_t roles_next_ms(const roles_t *roles);

#endif /* WEIGHTS_ROLES_H */
