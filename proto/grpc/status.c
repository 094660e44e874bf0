
/*
 * Statuses and their messages, as defined in PROTOCOL-HTTP2.md and
 * http-grpc-status-mapping.md (both in grpc/doc).
 */

#include <string.h>

#include "proto/grpc/session_inner.h"


static const char  *status_names[] = {
    "OK", "CANCELLED", "UNKNOWN", "INVALID_ARGUMENT", "DEADLINE_EXCEEDED",
    "NOT_FOUND", "ALREADY_EXISTS", "PERMISSION_DENIED", "RESOURCE_EXHAUSTED",
    "FAILED_PRECONDITION", "ABORTED", "OUT_OF_RANGE", "UNIMPLEMENTED",
    "INTERNAL", "UNAVAILABLE", "DATA_LOSS", "UNAUTHENTICATED"
};

static const char  hex_digits[] = "0123456789ABCDEF";


const char *
llmgw_grpc_status_name(int status)
{
    if (status < LLMGW_GRPC_OK || status > LLMGW_GRPC_UNAUTHENTICATED) {
        return status_names[LLMGW_GRPC_UNKNOWN];
    }

    return status_names[status];
}


int
llmgw_grpc_status_decode(const char *value, size_t len)
{
    size_t  i;
    int     n;

    if (len < 1 || len > 2) {
        return LLMGW_GRPC_UNKNOWN;
    }

    n = 0;

    for (i = 0; i < len; i++) {
        if (value[i] < '0' || value[i] > '9') {
            return LLMGW_GRPC_UNKNOWN;
        }

        n = n * 10 + (value[i] - '0');
    }

    return n <= LLMGW_GRPC_UNAUTHENTICATED ? n : LLMGW_GRPC_UNKNOWN;
}


llmgw_grpc_status_t
llmgw_grpc_status_of_http(int http_status)
{
    switch (http_status) {

    case 400:
        return LLMGW_GRPC_INTERNAL;

    case 401:
        return LLMGW_GRPC_UNAUTHENTICATED;

    case 403:
        return LLMGW_GRPC_PERMISSION_DENIED;

    case 404:
        return LLMGW_GRPC_UNIMPLEMENTED;

    case 429:
    case 502:
    case 503:
    case 504:
        return LLMGW_GRPC_UNAVAILABLE;

    default:
        return LLMGW_GRPC_UNKNOWN;
    }
}


size_t
llmgw_grpc_message_encode(char *buf, size_t capacity, const char *src,
    size_t len)
{
    char           unit[3];
    size_t         i, n, need, written;
    unsigned char  c;

    need = 0;
    written = 0;
    unit[0] = '%';

    for (i = 0; i < len; i++) {
        c = (unsigned char) src[i];
        n = (c < 0x20 || c > 0x7e || c == '%') ? 3 : 1;

        /* A part that does not fit is left out, with all that follows. */
        if (written == need && written + n < capacity) {
            unit[1] = hex_digits[c >> 4];
            unit[2] = hex_digits[c & 0xf];
            memcpy(buf + written, n == 3 ? unit : src + i, n);
            written += n;
        }

        need += n;
    }

    if (capacity > 0) {
        buf[written] = '\0';
    }

    return need;
}


static int
hex_value(char c)
{
    if (c >= '0' && c <= '9') {
        return c - '0';
    }

    c |= 0x20;

    return (c >= 'a' && c <= 'f') ? c - 'a' + 10 : -1;
}


size_t
llmgw_grpc_message_decode(char *message, size_t len)
{
    int     high, low;
    size_t  i, n;

    n = 0;

    for (i = 0; i < len; i++) {

        /* An invalid escape stays as it is: the text is for people. */
        if (message[i] == '%' && len - i > 2) {
            high = hex_value(message[i + 1]);
            low = hex_value(message[i + 2]);

            if (high >= 0 && low >= 0) {
                message[n++] = (char) (high << 4 | low);
                i += 2;
                continue;
            }
        }

        message[n++] = message[i];
    }

    return n;
}
