
#include <stdlib.h>
#include <string.h>

#include "replica/engine/http.h"


static void
http_whole_forget(http_whole_t *w)
{
    free(w->body);
    w->body = NULL;
    w->body_len = 0;
}


static void
http_whole_on_head(http_request_t *request, unsigned status,
    const char *content_type, int is_sent)
{
    http_whole_t  *w;

    w = http_data(request);
    w->status = status;
}


/* An answer that does not fit is dropped, since a part of it could not be
   parsed. */
static void
http_whole_on_bytes(http_request_t *request, const char *bytes, size_t len)
{
    char          *body;
    http_whole_t  *w;

    w = http_data(request);
    body = w->is_cut || len > w->bytes_max - w->body_len
           ? NULL : realloc(w->body, w->body_len + len);

    if (body == NULL) {
        w->is_cut = 1;
        http_whole_forget(w);
        return;
    }

    w->body = body;
    memcpy(w->body + w->body_len, bytes, len);
    w->body_len += len;
}


static void
http_whole_on_end(http_request_t *request, http_end_t end, const char *why)
{
    http_whole_t  *w;

    w = http_data(request);
    w->request = NULL;
    w->on_end(w, end, why);
}


int
http_whole_ask(http_whole_t *whole, const char *path, uint64_t timeout_ms)
{
    http_call_t  call;

    static const http_callbacks_t  callbacks = {
        http_whole_on_head, http_whole_on_bytes, http_whole_on_end
    };

    http_whole_forget(whole);
    whole->is_cut = 0;
    whole->status = 0;

    memset(&call, 0, sizeof(call));
    call.callbacks = &callbacks;
    call.data = whole;
    call.path = path;
    call.timeout_ms = timeout_ms;
    call.is_fresh = whole->is_fresh;
    whole->is_fresh = 0;
    whole->request = http_start(whole->client, &call);

    return whole->request != NULL ? 0 : -1;
}


void
http_whole_done(http_whole_t *whole)
{
    if (whole->request != NULL) {
        http_cancel(whole->request);
        whole->request = NULL;
    }

    http_whole_forget(whole);
}
