
/* Long work on the slot's bytes: hashing and freeing them. */

#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "common/os/mono.h"
#include "weights/store_inner.h"


#define GIB  (1024.0 * 1024 * 1024)


/* Run by the thread: closing the last descriptor frees the pages, 160 ms for
   each GiB. */
static void
bytes_reclaim_run(void *data)
{
    store_t  *store = data;

    close(store->file.fd);
}


static void
bytes_reclaim_done(void *data)
{
    store_t  *store = data;

    log_write(store->log, LOG_INFO, "\"%s\" is dropped, %" PRIu64 " bytes",
              store->name, store->file.bytes);
    store->file.fd = -1;
    roles_reclaimed(&store->roles, mono_ms());
}


static void
bytes_free(store_t *store)
{
    threads_start(&store->reclaim, store->loop, 1, bytes_reclaim_run,
                  bytes_reclaim_done, store);
}


/* If threads still read the bytes, they need the descriptor: that ends
   first. */
void
bytes_reclaim(void *data)
{
    store_t  *store = data;

    if (!store->is_hashing) {
        bytes_free(store);
        return;
    }

    log_write(store->log, LOG_INFO, "stopped hashing \"%s\": no engine that "
              "handed it back is left", store->name);
    digest_stop(&store->digest);
}


/* Sends the progress to each client that waits for it. */
static void
bytes_tell(const store_t *store, uint64_t done)
{
    roles_client_t  *client;

    for (client = store->roles.first; client != NULL; client = client->next) {
        if (client->role == ROLES_WRITER || client->role == ROLES_ADOPTER) {
            service_send(&store_conn_of(client)->base,
                       json_pack("{s:s, s:I, s:I}", "type", "hashing", "done",
                                 (json_int_t) done, "bytes",
                                 (json_int_t) store->file.bytes), -1);
        }
    }
}


static void
bytes_hashed(void *data, const char *id)
{
    int        is_right;
    double     took_s;
    uint64_t   now_ms;
    store_t   *store = data;

    store->is_hashing = 0;

    if (store->roles.state == ROLES_RECLAIMING) {
        bytes_free(store);
        return;
    }

    now_ms = mono_ms();
    took_s = (double) (now_ms - store->digest_ms) / 1000;
    is_right = id != NULL && (store->roles.state == ROLES_HASHING
                              || strcmp(id, store->id) == 0);

    if (is_right) {
        strcpy(store->id, id);
        log_write(store->log, LOG_INFO, "\"%s\" is committed, %" PRIu64
                  " bytes, id %s, hashed in %.1f s", store->name,
                  store->file.bytes, id, took_s);
    } else {
        log_write(store->log, LOG_ERROR, "\"%s\" is not what it is said to "
                  "be: id %s", store->name, id ? id : "unknown, not readable");
    }

    roles_hashed(&store->roles, is_right, now_ms);
}


void
bytes_hash(store_t *store)
{
    store->digest_ms = mono_ms();
    store->logged_ms = store->digest_ms;
    ev_timer_again(store->loop, &store->beat);
    bytes_tell(store, 0);
    store->is_hashing = 1;

    if (digest_start(&store->digest, store->loop, store->file.fd,
                     store->file.bytes, bytes_hashed, store)
        != 0)
    {
        bytes_hashed(store, NULL);
    }
}


int
bytes_are_hashed(const store_t *store)
{
    return store->roles.state == ROLES_HASHING
           || store->roles.state == ROLES_ADOPTING;
}


void
bytes_tell_progress(store_t *store)
{
    uint64_t  done, now_ms;

    done = digest_done_bytes(&store->digest);
    now_ms = mono_ms();
    bytes_tell(store, done);

    if (now_ms - store->logged_ms >= STORE_LOG_S * 1000) {
        store->logged_ms = now_ms;
        log_write(store->log, LOG_INFO, "hashing \"%s\": %.1f of %.1f GiB "
                  "done", store->name, (double) done / GIB,
                  (double) store->file.bytes / GIB);
    }
}
