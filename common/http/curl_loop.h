
/*
 * libcurl's multi interface on a libev loop: which sockets it waits for, and
 * its one timer.
 */

#ifndef CURL_LOOP_H
#define CURL_LOOP_H

#include <curl/curl.h>
#include <ev.h>


/* A transfer has ended; it is off the multi handle already. */
typedef void (*curl_loop_end_pt)(void *data, CURL *easy, CURLcode rc);

typedef struct {
    struct ev_loop    *loop;
    CURLM             *multi;
    ev_timer           timer;
    curl_loop_end_pt   on_end;
    void              *data;            /* for on_end */
} curl_loop_t;


/*
 * 0, or -1: no memory.  Options of the multi handle may be set afterwards.
 * on_end is called from the loop, never from within a call of the user's.
 */
int curl_loop_init(curl_loop_t *curl, struct ev_loop *loop,
    curl_loop_end_pt on_end, void *data);

/* Starts a transfer.  0, or -1: no memory. */
int curl_loop_add(curl_loop_t *curl, CURL *easy);

/*
 * Ends one, without on_end; its connection is closed unless it was done.  Not
 * within a callback of libcurl's.
 */
void curl_loop_remove(curl_loop_t *curl, CURL *easy);

/* No transfer may be left. */
void curl_loop_done(curl_loop_t *curl);

#endif /* CURL_LOOP_H */
