
/*
 * A stream of the floor: two pipes between two HTTP/2 sessions.  See floor.c.
 */

#include <string.h>

#include "bench/peers/floor.h"


/* --- pipes */

static void
pipe_put(pipe_t *p, const uint8_t *data, size_t len)
{
    if (p->start == p->end) {
        p->start = p->end = 0;
    }

    if (p->end + len > p->capacity) {
        p->capacity = (p->end + len) * 2;
        p->data = must(realloc(p->data, p->capacity));
    }

    memcpy(p->data + p->end, data, len);
    p->end += len;
}


static ssize_t
pipe_read(nghttp2_session *h2, int32_t id, uint8_t *buf, size_t len,
    uint32_t *flags, nghttp2_data_source *source, void *data)
{
    size_t    n;
    conn_t   *c = data;
    pipe_t   *p;
    relay_t  *r = source->ptr;

    p = c->is_up ? &r->to_up : &r->to_down;
    n = p->end - p->start;

    if (n == 0 && !p->is_ended) {
        p->is_deferred = 1;
        return NGHTTP2_ERR_DEFERRED;
    }

    n = n < len ? n : len;
    memcpy(buf, p->data + p->start, n);
    p->start += n;

    if (p->is_ended && p->start == p->end) {
        *flags |= NGHTTP2_DATA_FLAG_EOF;

        if (!c->is_up && r->trailers != NULL) {
            *flags |= NGHTTP2_DATA_FLAG_NO_END_STREAM;
            (void) nghttp2_submit_trailer(h2, id, r->trailers->nv,
                                          r->trailers->n);
        }
    }

    return (ssize_t) n;
}


static void
pipe_resume(pipe_t *p, conn_t *c, int32_t id)
{
    if (p->is_deferred) {
        p->is_deferred = 0;
        (void) nghttp2_session_resume_data(c->h2, id);
    }

    touch(c);
}


/* --- relays */

static void
relay_free(relay_t *r)
{
    if (r->down == NULL && r->up == NULL) {
        free(r->to_up.data);
        free(r->to_down.data);
        free(r->trailers);
        free(r);
    }
}


static void
relay_request(relay_t *r, conn_t *down, int has_body)
{
    size_t                  i;
    floor_t                *f = down->floor;
    nghttp2_data_provider   source = { .source.ptr = r,
                                       .read_callback = pipe_read };

    i = f->turn++ % f->nup;
    r->up = f->up[i] != NULL ? f->up[i] : floor_connect(f, i);
    r->up_id = nghttp2_submit_request(r->up->h2, NULL, down->block.nv,
                                      down->block.n,
                                      has_body ? &source : NULL, r);

    if (r->up_id < 0) {
        r->up = NULL;
        (void) nghttp2_submit_rst_stream(down->h2, 0, r->down_id,
                                         NGHTTP2_REFUSED_STREAM);
        touch(down);
        return;
    }

    touch(r->up);
}


static void
relay_response(relay_t *r, conn_t *up, int is_last)
{
    nghttp2_data_provider  source = { .source.ptr = r,
                                      .read_callback = pipe_read };

    if (r->down == NULL) {
        return;
    }

    if (!r->is_answered) {
        r->is_answered = 1;
        (void) nghttp2_submit_response(r->down->h2, r->down_id, up->block.nv,
                                       up->block.n, is_last ? NULL : &source);
        touch(r->down);
        return;
    }

    /*
     * The names and values of a header block point into the block, so a copy
     * must have its own.
     */

    r->trailers = must(malloc(sizeof(block_t)));
    *r->trailers = up->block;

    for (size_t i = 0; i < r->trailers->n; i++) {
        nghttp2_nv  *nv = &r->trailers->nv[i];

        nv->name = r->trailers->bytes + (nv->name - up->block.bytes);
        nv->value = r->trailers->bytes + (nv->value - up->block.bytes);
    }
}


static void
relay_end(relay_t *r, pipe_t *p, conn_t *to, int32_t id)
{
    p->is_ended = 1;

    if (to != NULL) {
        pipe_resume(p, to, id);
    }
}


/* --- nghttp2's callbacks, for both sides */

static int
on_begin_headers(nghttp2_session *h2, const nghttp2_frame *frame, void *data)
{
    conn_t   *c = data;
    relay_t  *r;

    c->block.n = 0;
    c->block.used = 0;

    if (!c->is_up && frame->headers.cat == NGHTTP2_HCAT_REQUEST) {
        r = must(calloc(1, sizeof(relay_t)));
        r->down = c;
        r->down_id = frame->hd.stream_id;
        (void) nghttp2_session_set_stream_user_data(h2, r->down_id, r);
    }

    return 0;
}


static int
on_header(nghttp2_session *h2, const nghttp2_frame *frame,
    const uint8_t *name, size_t name_len, const uint8_t *value,
    size_t value_len, uint8_t flags, void *data)
{
    conn_t   *c = data;
    block_t  *b = &c->block;

    if (b->n == FIELDS || b->used + name_len + value_len > FIELDS_BYTES) {
        return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
    }

    b->nv[b->n].name = memcpy(b->bytes + b->used, name, name_len);
    b->nv[b->n].namelen = name_len;
    b->used += name_len;
    b->nv[b->n].value = memcpy(b->bytes + b->used, value, value_len);
    b->nv[b->n].valuelen = value_len;
    b->nv[b->n].flags = 0;
    b->used += value_len;
    b->n++;

    return 0;
}


static int
on_chunk(nghttp2_session *h2, uint8_t flags, int32_t id, const uint8_t *bytes,
    size_t len, void *data)
{
    conn_t   *c = data;
    relay_t  *r;

    r = nghttp2_session_get_stream_user_data(h2, id);

    if (r == NULL) {
        return 0;
    }

    pipe_put(c->is_up ? &r->to_down : &r->to_up, bytes, len);

    if (c->is_up && r->down != NULL) {
        pipe_resume(&r->to_down, r->down, r->down_id);

    } else if (!c->is_up && r->up != NULL) {
        pipe_resume(&r->to_up, r->up, r->up_id);
    }

    return 0;
}


static int
on_frame(nghttp2_session *h2, const nghttp2_frame *frame, void *data)
{
    int       is_last;
    conn_t   *c = data;
    relay_t  *r;

    touch(c);   /* nghttp2 has answers to SETTINGS and PING */
    is_last = frame->hd.flags & NGHTTP2_FLAG_END_STREAM;
    r = nghttp2_session_get_stream_user_data(h2, frame->hd.stream_id);

    if (r == NULL || (frame->hd.type != NGHTTP2_HEADERS
                      && frame->hd.type != NGHTTP2_DATA))
    {
        return 0;
    }

    if (frame->hd.type == NGHTTP2_HEADERS) {
        if (c->is_up) {
            relay_response(r, c, is_last);

        } else {
            relay_request(r, c, !is_last);
        }
    }

    if (is_last && c->is_up) {
        relay_end(r, &r->to_down, r->down, r->down_id);

    } else if (is_last) {
        relay_end(r, &r->to_up, r->up, r->up_id);
    }

    return 0;
}


int
floor_on_close(nghttp2_session *h2, int32_t id, uint32_t error, void *data)
{
    conn_t   *c = data;
    relay_t  *r;

    r = nghttp2_session_get_stream_user_data(h2, id);

    if (r == NULL) {
        return 0;
    }

    if (c->is_up) {
        r->up = NULL;

        if (r->down != NULL && !r->to_down.is_ended) {
            (void) nghttp2_submit_rst_stream(r->down->h2, 0, r->down_id,
                                             NGHTTP2_INTERNAL_ERROR);
            touch(r->down);
        }

    } else {
        r->down = NULL;

        if (r->up != NULL) {
            (void) nghttp2_submit_rst_stream(r->up->h2, 0, r->up_id,
                                             NGHTTP2_CANCEL);
            touch(r->up);
        }
    }

    relay_free(r);

    return 0;
}


void
floor_callbacks(nghttp2_session_callbacks *callbacks)
{
    nghttp2_session_callbacks_set_on_begin_headers_callback(callbacks,
                                                            on_begin_headers);
    nghttp2_session_callbacks_set_on_header_callback(callbacks, on_header);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks,
                                                              on_chunk);
    nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, on_frame);
    nghttp2_session_callbacks_set_on_stream_close_callback(callbacks,
                                                           floor_on_close);
}
