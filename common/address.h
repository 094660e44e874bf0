
/*
 * HOST:PORT and [IPV6]:PORT.
 */

#ifndef ADDRESS_H
#define ADDRESS_H

#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>


typedef struct {
    struct sockaddr_storage  ss;
    socklen_t                len;
} address_t;

#define ADDRESS_TEXT_BYTES  72

/*
 * Parses an address; a name is resolved, which blocks (for start-up and seeds
 * only).  0, or -1 and a reason in error (of at least 128 bytes).
 */
int address_resolve(const char *text, address_t *address, char *error);

/*
 * Finds all addresses of a name, each once, in the resolver's order, `max` at
 * most; for a numeric host, its one address.  family: AF_INET or AF_INET6 for
 * the addresses of that family, AF_UNSPEC for all.  Returns their number, or -1
 * and a reason as above.
 */
int address_resolve_all(const char *text, int family, address_t *addresses,
    size_t max, char *error);

/* Like address_resolve(), for numeric hosts only; never blocks. */
int address_parse(const char *text, address_t *address);

/* Checks the syntax only: host not empty, port 1 .. 65535. */
int address_is_valid(const char *text);

/* Writes "127.0.0.1:80" or "[::1]:80"; buf: ADDRESS_TEXT_BYTES. */
void address_format(const address_t *address, char *buf);

unsigned address_port(const address_t *address);
void address_set_port(address_t *address, unsigned port);
int address_is_wildcard(const address_t *address);
int address_is_loopback(const address_t *address);
int address_equal(const address_t *a, const address_t *b);

/* Like address_equal(), without the port. */
int address_is_same_host(const address_t *a, const address_t *b);

/*
 * Whether TCP connections are accepted at an address of this host, which
 * answers at once.  If there is no answer within ADDRESS_SERVED_MS, returns 1.
 */
#define ADDRESS_SERVED_MS  50

int address_is_served(const address_t *address);

#endif /* ADDRESS_H */
