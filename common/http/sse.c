
/*
 * Server-sent events.
 *
 * The received part of the current event is in one of two places:
 *
 *   value       one line of data, still in the slice: the usual event needs
 *               no more
 *   buf         data_len bytes of data, and behind them line_len bytes of a
 *               line whose end has not come
 *
 * At the end of a slice everything moves to buf.  Between events there is no
 * buf: a stream that waits for its next token holds no memory.
 *
 * A line ends with LF, CR or CRLF.  At a CR it ends at once; an LF that
 * follows is skipped, perhaps in the next slice.
 */

#include <stdlib.h>
#include <string.h>

#include "common/http/sse.h"


#define SSE_LEAST_BYTES  256


static const char  sse_bom[] = { '\xef', '\xbb', '\xbf' };


void
sse_init(sse_t *s, sse_event_pt on_event, void *arg)
{
    memset(s, 0, sizeof(*s));
    s->on_event = on_event;
    s->arg = arg;
}


void
sse_done(sse_t *s)
{
    free(s->buf);
    s->buf = NULL;
    s->capacity = 0;
}


/* Makes room for this many bytes in buf. */
static sse_rc_t
sse_reserve(sse_t *s, size_t bytes)
{
    char    *buf;
    size_t   capacity;

    if (bytes > SSE_EVENT_BYTES) {
        return SSE_ELIMIT;
    }

    if (bytes <= s->capacity) {
        return SSE_DONE;
    }

    capacity = s->capacity > 0 ? s->capacity : SSE_LEAST_BYTES;

    while (capacity < bytes) {
        capacity *= 2;
    }

    buf = realloc(s->buf, capacity);

    if (buf == NULL) {
        return SSE_ENOMEM;
    }

    s->buf = buf;
    s->capacity = capacity;

    return SSE_DONE;
}


/* Appends to the data in buf; no line is under way there. */
static sse_rc_t
sse_append(sse_t *s, const char *value, size_t len)
{
    sse_rc_t  rc;

    rc = sse_reserve(s, s->data_len + len);

    if (rc == SSE_DONE && len > 0) {
        memcpy(s->buf + s->data_len, value, len);
        s->data_len += len;
    }

    return rc;
}


/* Moves data that is still in the slice to buf. */
static sse_rc_t
sse_settle(sse_t *s)
{
    sse_rc_t  rc;

    if (s->value == NULL) {
        return SSE_DONE;
    }

    rc = sse_append(s, s->value, s->value_len);
    s->value = NULL;

    return rc;
}


/* Takes a line of data that stands in the slice. */
static sse_rc_t
sse_data_of_slice(sse_t *s, const char *value, size_t len)
{
    sse_rc_t  rc;

    if (!s->has_data) {
        s->has_data = 1;
        s->value = value;
        s->value_len = len;
        return len <= SSE_EVENT_BYTES ? SSE_DONE : SSE_ELIMIT;
    }

    rc = sse_settle(s);

    if (rc == SSE_DONE) {
        rc = sse_append(s, "\n", 1);
    }

    return rc == SSE_DONE ? sse_append(s, value, len) : rc;
}


/*
 * Takes a line of data in buf, which stands after the data and begins with
 * "data:".
 */
static sse_rc_t
sse_data_of_buf(sse_t *s, const char *value, size_t len)
{
    if (s->has_data) {
        s->buf[s->data_len++] = '\n';
    }

    memmove(s->buf + s->data_len, value, len);
    s->data_len += len;
    s->has_data = 1;

    return SSE_DONE;
}


static sse_rc_t
sse_dispatch(sse_t *s)
{
    int          rc;
    size_t       len;
    const char  *data;

    data = s->value != NULL ? s->value : s->buf;
    len = s->value != NULL ? s->value_len : s->data_len;

    rc = s->has_data && len > 0 ? s->on_event(s->arg, data, len, s->is_error)
                                : 0;
    s->value = NULL;
    s->data_len = 0;
    s->has_data = 0;
    s->is_error = 0;

    return rc == 0 ? SSE_DONE : SSE_STOPPED;
}


/* Takes one whole line without its end, in the slice or in buf. */
static sse_rc_t
sse_line(sse_t *s, const char *line, size_t len, int is_in_buf)
{
    size_t       name_len, value_len;
    const char  *colon, *value;

    if (len == 0) {
        return sse_dispatch(s);
    }

    colon = memchr(line, ':', len);
    name_len = colon != NULL ? (size_t) (colon - line) : len;
    value = colon != NULL ? colon + 1 : line + len;
    value_len = len - (size_t) (value - line);

    if (name_len == 5 && memcmp(line, "error", 5) == 0) {
        s->is_error = 1;

    } else if (name_len != 4 || memcmp(line, "data", 4) != 0) {
        return SSE_DONE;
    }

    if (value_len > 0 && *value == ' ') {
        value++;
        value_len--;
    }

    return is_in_buf ? sse_data_of_buf(s, value, value_len)
                     : sse_data_of_slice(s, value, value_len);
}


/* Keeps the beginning or a further part of a line for the next slice. */
static sse_rc_t
sse_keep(sse_t *s, const char *bytes, size_t len)
{
    sse_rc_t  rc;

    rc = sse_settle(s);

    if (rc == SSE_DONE) {
        rc = sse_reserve(s, s->data_len + s->line_len + len);
    }

    if (rc == SSE_DONE && len > 0) {
        memcpy(s->buf + s->data_len + s->line_len, bytes, len);
        s->line_len += len;
    }

    return rc;
}


/* Takes the end of a line, which may have begun in an earlier slice. */
static sse_rc_t
sse_finish_line(sse_t *s, const char *bytes, size_t len)
{
    size_t    line_len;
    sse_rc_t  rc;

    if (s->line_len == 0) {
        return sse_line(s, bytes, len, 0);
    }

    rc = sse_keep(s, bytes, len);

    if (rc != SSE_DONE) {
        return rc;
    }

    line_len = s->line_len;
    s->line_len = 0;

    return sse_line(s, s->buf + s->data_len, line_len, 1);
}


/* Skips a byte order mark at the very beginning, which slices may cut. */
static sse_rc_t
sse_skip_bom(sse_t *s, const char **bytes, const char *end)
{
    unsigned  n;

    while (s->bom < sizeof(sse_bom) && *bytes < end) {

        if (**bytes != sse_bom[s->bom]) {
            n = s->bom;
            s->bom = sizeof(sse_bom);
            return n > 0 ? sse_keep(s, sse_bom, n) : SSE_DONE;
        }

        (*bytes)++;
        s->bom++;
    }

    return SSE_DONE;
}


static const char *
sse_find_end(const char *bytes, const char *end)
{
    const char  *cr, *lf;

    lf = memchr(bytes, '\n', (size_t) (end - bytes));
    cr = memchr(bytes, '\r', (size_t) ((lf != NULL ? lf : end) - bytes));

    return cr != NULL ? cr : lf;
}


static sse_rc_t
sse_lines(sse_t *s, const char *bytes, const char *end)
{
    sse_rc_t     rc;
    const char  *eol;

    while (bytes < end) {

        if (s->skips_lf) {
            s->skips_lf = 0;

            if (*bytes == '\n') {
                bytes++;
                continue;
            }
        }

        eol = sse_find_end(bytes, end);

        if (eol == NULL) {
            return sse_keep(s, bytes, (size_t) (end - bytes));
        }

        rc = sse_finish_line(s, bytes, (size_t) (eol - bytes));

        if (rc != SSE_DONE) {
            return rc;
        }

        s->skips_lf = (*eol == '\r');
        bytes = eol + 1;
    }

    return sse_settle(s);
}


sse_rc_t
sse_feed(sse_t *s, const char *bytes, size_t len)
{
    sse_rc_t     rc;
    const char  *end;

    end = bytes + len;
    rc = sse_skip_bom(s, &bytes, end);

    if (rc == SSE_DONE) {
        rc = sse_lines(s, bytes, end);
    }

    if (s->data_len == 0 && s->line_len == 0) {
        sse_done(s);
    }

    return rc;
}


sse_rc_t
sse_end(sse_t *s)
{
    sse_rc_t  rc;

    rc = sse_finish_line(s, "", 0);

    return rc == SSE_DONE && s->has_data ? sse_dispatch(s) : rc;
}
