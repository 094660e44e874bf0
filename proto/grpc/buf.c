
/*
 * A byte queue in one piece of memory: bytes are appended at the end and
 * taken from the start.  An empty queue starts over at the beginning of its
 * memory, so a stream that sends as fast as it queues never moves a byte and
 * never allocates.  Growing copies only the bytes still in the queue.  Where
 * half the memory is already free, these bytes are moved down instead, which
 * costs each byte at most one move.
 */

#include <stdlib.h>
#include <string.h>

#include "proto/grpc/session_inner.h"


#define MIN_CAPACITY  128


/* A packed field: this head, then name and value, each with its NUL. */
typedef struct {
    uint32_t  name_len;
    uint32_t  value_len;
} packed_t;


static int
buf_grow(llmgw_grpc_buf_t *buf, size_t len, size_t n)
{
    size_t    capacity;
    uint8_t  *data;

    if (n > SIZE_MAX / 4 - len) {
        return -1;
    }

    capacity = buf->capacity ? buf->capacity : MIN_CAPACITY;

    while (capacity < len + n) {
        capacity *= 2;
    }

    data = malloc(capacity);
    if (data == NULL) {
        return -1;
    }

    if (len > 0) {
        memcpy(data, buf->data + buf->start, len);
    }

    free(buf->data);

    buf->data = data;
    buf->start = 0;
    buf->end = len;
    buf->capacity = capacity;

    return 0;
}


uint8_t *
llmgw_grpc_buf_reserve(llmgw_grpc_buf_t *buf, size_t n)
{
    size_t    len;
    uint8_t  *p;

    len = llmgw_grpc_buf_len(buf);

    if (buf->data == NULL || n > buf->capacity - buf->end) {

        if (buf->start >= buf->capacity / 2 && n <= buf->capacity - len
            && buf->data != NULL)
        {
            memmove(buf->data, buf->data + buf->start, len);
            buf->start = 0;
            buf->end = len;

        } else if (buf_grow(buf, len, n) != 0) {
            return NULL;
        }
    }

    p = buf->data + buf->end;
    buf->end += n;

    return p;
}


int
llmgw_grpc_buf_append(llmgw_grpc_buf_t *buf, const void *src, size_t n)
{
    uint8_t  *p;

    p = llmgw_grpc_buf_reserve(buf, n);
    if (p == NULL) {
        return -1;
    }

    if (n > 0) {
        memcpy(p, src, n);
    }

    return 0;
}


void
llmgw_grpc_buf_drop(llmgw_grpc_buf_t *buf, size_t n)
{
    buf->start += n;

    if (buf->start == buf->end) {
        llmgw_grpc_buf_clear(buf);
    }
}


void
llmgw_grpc_buf_clear(llmgw_grpc_buf_t *buf)
{
    if (buf->capacity > LLMGW_GRPC_KEEP_BYTES) {
        llmgw_grpc_buf_done(buf);
        return;
    }

    buf->start = 0;
    buf->end = 0;
}


void
llmgw_grpc_buf_done(llmgw_grpc_buf_t *buf)
{
    free(buf->data);
    memset(buf, 0, sizeof(llmgw_grpc_buf_t));
}


int
llmgw_grpc_pack(llmgw_grpc_buf_t *buf, const char *name, size_t name_len,
    const char *value, size_t value_len)
{
    uint8_t   *p;
    packed_t   head;

    p = llmgw_grpc_buf_reserve(buf, sizeof(head) + name_len + value_len + 2);
    if (p == NULL) {
        return -1;
    }

    head.name_len = (uint32_t) name_len;
    head.value_len = (uint32_t) value_len;

    memcpy(p, &head, sizeof(head));
    p += sizeof(head);
    memcpy(p, name, name_len);
    p[name_len] = '\0';
    p += name_len + 1;
    memcpy(p, value, value_len);
    p[value_len] = '\0';

    return 0;
}


int
llmgw_grpc_unpack(const llmgw_grpc_buf_t *buf, size_t *offset, nghttp2_nv *nv)
{
    uint8_t   *p;
    packed_t   head;

    if (*offset == llmgw_grpc_buf_len(buf)) {
        return 0;
    }

    p = buf->data + buf->start + *offset;
    memcpy(&head, p, sizeof(head));
    p += sizeof(head);

    llmgw_grpc_nv(nv, (char *) p, head.name_len,
                  (char *) p + head.name_len + 1, head.value_len);

    *offset += sizeof(head) + head.name_len + head.value_len + 2;

    return 1;
}
