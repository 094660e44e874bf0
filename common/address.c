
/*
 * HOST:PORT, parsed once and in one place.
 *
 * A text is split into host and port by its syntax alone; IPv6 stands in
 * brackets, so the last ':' outside of them always begins the port.  Numeric
 * hosts go through inet_pton(), which takes no shorthand ("127.1") and no
 * scope; names go to the resolver, and of a name with both kinds of address
 * the first IPv4 one is taken: "localhost" has to mean the same for listening
 * and for connecting.
 */

#include <arpa/inet.h>
#include <ctype.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/address.h"


#define ADDRESS_HOST_BYTES    256       /* a DNS name has 253 at most */
#define ADDRESS_ERROR_BYTES   128


typedef struct {
    char      host[ADDRESS_HOST_BYTES];
    unsigned  port;
    int       is_bracketed;
} address_parts_t;


static int
address_split_port(const char *text, unsigned *port)
{
    unsigned     n;
    const char  *p;

    n = 0;

    for (p = text; isdigit((unsigned char) *p); p++) {
        n = n * 10 + (unsigned) (*p - '0');

        if (n > 65535) {
            return -1;
        }
    }

    if (p == text || *p != '\0' || n == 0) {
        return -1;
    }

    *port = n;

    return 0;
}


static int
address_host_is_valid(const address_parts_t *parts)
{
    const char       *p;
    struct in6_addr   in6;

    if (parts->is_bracketed) {
        return inet_pton(AF_INET6, parts->host, &in6) == 1;
    }

    for (p = parts->host; *p != '\0'; p++) {
        if (!isalnum((unsigned char) *p) && strchr(".-_", *p) == NULL) {
            return 0;
        }
    }

    return p != parts->host && parts->host[0] != '-';
}


static int
address_split(const char *text, address_parts_t *parts)
{
    size_t       len;
    const char  *host, *end;

    parts->is_bracketed = (text[0] == '[');
    host = text + parts->is_bracketed;
    end = strchr(host, parts->is_bracketed ? ']' : ':');

    if (end == NULL || end[parts->is_bracketed] != ':') {
        return -1;
    }

    len = (size_t) (end - host);

    if (len >= sizeof(parts->host)) {
        return -1;
    }

    memcpy(parts->host, host, len);
    parts->host[len] = '\0';

    if (!address_host_is_valid(parts)) {
        return -1;
    }

    return address_split_port(end + parts->is_bracketed + 1, &parts->port);
}


static int
address_parse_parts(const address_parts_t *parts, address_t *address)
{
    address_t             a;
    struct sockaddr_in   *sin;
    struct sockaddr_in6  *sin6;

    memset(&a, 0, sizeof(a));

    if (parts->is_bracketed) {
        sin6 = (struct sockaddr_in6 *) &a.ss;
        sin6->sin6_family = AF_INET6;
        a.len = sizeof(*sin6);

        if (inet_pton(AF_INET6, parts->host, &sin6->sin6_addr) != 1) {
            return -1;
        }

    } else {
        sin = (struct sockaddr_in *) &a.ss;
        sin->sin_family = AF_INET;
        a.len = sizeof(*sin);

        if (inet_pton(AF_INET, parts->host, &sin->sin_addr) != 1) {
            return -1;
        }
    }

    address_set_port(&a, parts->port);
    *address = a;

    return 0;
}


/*
 * Parses "192.0.2.1:80", the form of nearly all texts: no octet or port has
 * more digits than it needs.  Each update of each gossip datagram has two such
 * texts; split into their parts first, they would take a tenth of the time that
 * a datagram takes.
 */
static int
address_parse_in(const char *text, address_t *address)
{
    size_t               i;
    uint32_t             n[5];
    const char          *p, *begin;
    struct sockaddr_in  *sin;
    static const char    ends[5] = "...:";

    p = text;

    for (i = 0; i < 5; i++, p++) {
        n[i] = 0;

        for (begin = p; *p >= '0' && *p <= '9' && p < begin + 5; p++) {
            n[i] = n[i] * 10 + (uint32_t) (*p - '0');
        }

        if (*p != ends[i] || p == begin || (*begin == '0' && p > begin + 1)
            || n[i] > (i < 4 ? 255 : 65535))
        {
            return -1;
        }
    }

    if (n[4] == 0) {
        return -1;
    }

    memset(address, 0, sizeof(*address));
    sin = (struct sockaddr_in *) &address->ss;
    sin->sin_family = AF_INET;
    sin->sin_port = htons((uint16_t) n[4]);
    sin->sin_addr.s_addr = htonl(n[0] << 24 | n[1] << 16 | n[2] << 8 | n[3]);
    address->len = sizeof(*sin);

    return 0;
}


int
address_parse(const char *text, address_t *address)
{
    address_parts_t  parts;

    if (address_parse_in(text, address) == 0) {
        return 0;
    }

    if (address_split(text, &parts) != 0) {
        return -1;
    }

    return address_parse_parts(&parts, address);
}


static const struct addrinfo *
address_choose(const struct addrinfo *list)
{
    const struct addrinfo  *ai;

    for (ai = list; ai != NULL; ai = ai->ai_next) {
        if (ai->ai_family == AF_INET) {
            return ai;
        }
    }

    return list;
}


static int
address_split_or_say(const char *text, address_parts_t *parts, char *error)
{
    if (address_split(text, parts) == 0) {
        return 0;
    }

    snprintf(error, ADDRESS_ERROR_BYTES, "\"%.60s\" is no HOST:PORT", text);

    return -1;
}


/*
 * Looks a host up.  0: *list, which freeaddrinfo() frees, is not empty; -1 and
 * a reason.
 */
static int
address_look_up(const address_parts_t *parts, int family,
    struct addrinfo **list, char *error)
{
    int              rc;
    struct addrinfo  hints;

    memset(&hints, 0, sizeof(hints));
    hints.ai_family = family;
    hints.ai_socktype = SOCK_STREAM;

    rc = getaddrinfo(parts->host, NULL, &hints, list);

    if (rc != 0) {
        snprintf(error, ADDRESS_ERROR_BYTES, "host \"%.60s\": %s",
                 parts->host, gai_strerror(rc));
        return -1;
    }

    return 0;
}


static void
address_take(address_t *address, const struct addrinfo *ai, unsigned port)
{
    memset(address, 0, sizeof(*address));
    memcpy(&address->ss, ai->ai_addr, ai->ai_addrlen);
    address->len = ai->ai_addrlen;
    address_set_port(address, port);
}


int
address_resolve(const char *text, address_t *address, char *error)
{
    address_parts_t   parts;
    struct addrinfo  *list;

    if (address_split_or_say(text, &parts, error) != 0) {
        return -1;
    }

    if (address_parse_parts(&parts, address) == 0) {
        return 0;
    }

    if (address_look_up(&parts, AF_UNSPEC, &list, error) != 0) {
        return -1;
    }

    address_take(address, address_choose(list), parts.port);
    freeaddrinfo(list);

    return 0;
}


static int
address_is_among(const address_t *address, const address_t *addresses,
    size_t n)
{
    size_t  i;

    for (i = 0; i < n; i++) {
        if (address_equal(&addresses[i], address)) {
            return 1;
        }
    }

    return 0;
}


int
address_resolve_all(const char *text, int family, address_t *addresses,
    size_t max, char *error)
{
    size_t                  n;
    address_t               address;
    address_parts_t         parts;
    struct addrinfo        *list;
    const struct addrinfo  *ai;

    if (address_split_or_say(text, &parts, error) != 0) {
        return -1;
    }

    if (address_parse_parts(&parts, &address) == 0) {
        addresses[0] = address;
        return 1;
    }

    if (address_look_up(&parts, family, &list, error) != 0) {
        return -1;
    }

    for (n = 0, ai = list; ai != NULL && n < max; ai = ai->ai_next) {
        address_take(&address, ai, parts.port);

        if (!address_is_among(&address, addresses, n)) {
            addresses[n++] = address;
        }
    }

    freeaddrinfo(list);

    return (int) n;
}


int
address_is_valid(const char *text)
{
    address_parts_t  parts;

    return address_split(text, &parts) == 0;
}


static const struct sockaddr_in *
address_in(const address_t *address)
{
    return (const struct sockaddr_in *) &address->ss;
}


static const struct sockaddr_in6 *
address_in6(const address_t *address)
{
    return (const struct sockaddr_in6 *) &address->ss;
}


static char *
address_put(char *p, unsigned n, char end)
{
    unsigned  unit;

    for (unit = 10000; unit > n && unit > 1; unit /= 10) { /* void */ }

    for ( /* void */ ; unit > 0; unit /= 10) {
        *p++ = '0' + n / unit % 10;
    }

    *p++ = end;

    return p;
}


/*
 * The counterpart of address_parse_in(), called as often; inet_ntop() would use
 * sprintf().
 */
static void
address_format_in(const struct sockaddr_in *sin, char *buf)
{
    size_t    i;
    uint32_t  ip;

    ip = ntohl(sin->sin_addr.s_addr);

    for (i = 0; i < 4; i++) {
        buf = address_put(buf, ip >> (24 - 8 * i) & 0xff, "...:"[i]);
    }

    address_put(buf, ntohs(sin->sin_port), '\0');
}


void
address_format(const address_t *address, char *buf)
{
    char  host[INET6_ADDRSTRLEN];

    switch (address->ss.ss_family) {

    case AF_INET:
        address_format_in(address_in(address), buf);
        return;

    case AF_INET6:
        inet_ntop(AF_INET6, &address_in6(address)->sin6_addr, host,
                  sizeof(host));
        snprintf(buf, ADDRESS_TEXT_BYTES, "[%s]:%u", host,
                 address_port(address));
        return;

    default:
        snprintf(buf, ADDRESS_TEXT_BYTES, "-");
    }
}


unsigned
address_port(const address_t *address)
{
    switch (address->ss.ss_family) {

    case AF_INET:
        return ntohs(address_in(address)->sin_port);

    case AF_INET6:
        return ntohs(address_in6(address)->sin6_port);

    default:
        return 0;
    }
}


void
address_set_port(address_t *address, unsigned port)
{
    if (address->ss.ss_family == AF_INET) {
        ((struct sockaddr_in *) &address->ss)->sin_port =
            htons((uint16_t) port);

    } else if (address->ss.ss_family == AF_INET6) {
        ((struct sockaddr_in6 *) &address->ss)->sin6_port =
            htons((uint16_t) port);
    }
}


int
address_is_wildcard(const address_t *address)
{
    if (address->ss.ss_family == AF_INET6) {
        return IN6_IS_ADDR_UNSPECIFIED(&address_in6(address)->sin6_addr);
    }

    return address->ss.ss_family == AF_INET
           && address_in(address)->sin_addr.s_addr == htonl(INADDR_ANY);
}


int
address_is_loopback(const address_t *address)
{
    const uint8_t          *in;
    const struct in6_addr  *in6;

    if (address->ss.ss_family == AF_INET) {
        in = (const uint8_t *) &address_in(address)->sin_addr;
        return in[0] == 127;
    }

    if (address->ss.ss_family != AF_INET6) {
        return 0;
    }

    /* on a socket that listens on [::], an IPv4 peer has a mapped address */

    in6 = &address_in6(address)->sin6_addr;

    return IN6_IS_ADDR_LOOPBACK(in6)
           || (IN6_IS_ADDR_V4MAPPED(in6) && in6->s6_addr[12] == 127);
}


int
address_equal(const address_t *a, const address_t *b)
{
    return address_is_same_host(a, b) && address_port(a) == address_port(b);
}


int
address_is_same_host(const address_t *a, const address_t *b)
{
    if (a->ss.ss_family != b->ss.ss_family) {
        return 0;
    }

    switch (a->ss.ss_family) {

    case AF_INET:
        return address_in(a)->sin_addr.s_addr == address_in(b)->sin_addr.s_addr;

    case AF_INET6:
        return address_in6(a)->sin6_scope_id == address_in6(b)->sin6_scope_id
               && IN6_ARE_ADDR_EQUAL(&address_in6(a)->sin6_addr,
                                     &address_in6(b)->sin6_addr);

    default:
        return 0;
    }
}


/* The errno of a connection that was begun; ETIMEDOUT: there was no answer. */
static int
address_connect_error(int fd)
{
    int            error;
    socklen_t      len;
    struct pollfd  ready = { .fd = fd, .events = POLLOUT };

    len = sizeof(error);

    if (poll(&ready, 1, ADDRESS_SERVED_MS) != 1
        || getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &len) == -1)
    {
        return ETIMEDOUT;
    }

    return error;
}


int
address_is_served(const address_t *address)
{
    int  fd, error;

    fd = socket(address->ss.ss_family, SOCK_STREAM|SOCK_NONBLOCK|SOCK_CLOEXEC,
                0);
    if (fd == -1) {
        return 1;
    }

    error = connect(fd, (const struct sockaddr *) &address->ss, address->len)
            == 0 ? 0 : errno;

    if (error == EINPROGRESS) {
        error = address_connect_error(fd);
    }

    close(fd);

    return error != ECONNREFUSED;
}
