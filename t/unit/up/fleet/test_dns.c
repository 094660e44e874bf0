
/* The addresses of a name, which another process resolves. */

#include <arpa/inet.h>
#include <netdb.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "up/fleet/dns.h"
#include "up/host/bound.h"


typedef struct {
    dns_t  dns;
    int    n;
    char   last[ADDRESS_TEXT_BYTES];
    char   why[256];
} scene_t;


/* A name that is a number has so many addresses, the last one first. */
int
getaddrinfo(const char *name, const char *service,
    const struct addrinfo *hints, struct addrinfo **found)
{
    int                  i, n;
    struct addrinfo     *info;
    struct sockaddr_in  *address;

    n = atoi(name);
    *found = NULL;

    for (i = 1; i <= n; i++) {
        info = calloc(1, sizeof(struct addrinfo)
                         + sizeof(struct sockaddr_in));
        address = (struct sockaddr_in *) (info + 1);
        address->sin_family = AF_INET;
        address->sin_addr.s_addr = htonl(0x0a000000 + 100 + (uint32_t) i);
        address->sin_port = htons(8000);
        info->ai_family = AF_INET;
        info->ai_socktype = SOCK_STREAM;
        info->ai_addr = (struct sockaddr *) address;
        info->ai_addrlen = sizeof(struct sockaddr_in);
        info->ai_next = *found;
        *found = info;
    }

    return n > 0 ? 0 : EAI_NONAME;
}


void
freeaddrinfo(struct addrinfo *found)
{
    struct addrinfo  *next;

    for ( /* void */ ; found != NULL; found = next) {
        next = found->ai_next;
        free(found);
    }
}


static void
on_set(void *data, const char *const *texts, int n, const char *why)
{
    scene_t  *s = data;

    s->n = n;
    snprintf(s->last, sizeof(s->last), "%s", n > 0 ? texts[n - 1] : "");
    snprintf(s->why, sizeof(s->why), "%s", why != NULL ? why : "");
    ev_break(s->dns.loop, EVBREAK_ALL);
}


static scene_t
resolved(const char *name)
{
    scene_t  s;

    memset(&s, 0, sizeof(s));
    dns_init(&s.dns, ev_default_loop(0), BOUND_PROGRAM, name, 60, on_set, &s);
    ev_run(s.dns.loop, 0);
    dns_done(&s.dns);

    return s;
}


static void
all_addresses_up_to_the_limit_are_used(void **state)
{
    scene_t  s;

    s = resolved("64.example:8000");
    assert_int_equal(s.n, DNS_MAX);
    assert_string_equal(s.last, "10.0.0.164:8000");
    assert_string_equal(s.why, "");
}


static void
one_address_beyond_the_limit_is_told(void **state)
{
    scene_t  s;

    s = resolved("65.example:8000");
    assert_int_equal(s.n, DNS_MAX);
    assert_string_equal(s.last, "10.0.0.164:8000");
    assert_string_equal(s.why, "more than 64 addresses: 64 are used");
    s = resolved("300.example:8000");
    assert_int_equal(s.n, DNS_MAX);
}


static void
name_without_an_address_is_told(void **state)
{
    scene_t  s;

    s = resolved("none.example:8000");
    assert_int_equal(s.n, -1);
    assert_string_not_equal(s.why, "");
}


int
main(int argc, char **argv)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(all_addresses_up_to_the_limit_are_used),
        cmocka_unit_test(one_address_beyond_the_limit_is_told),
        cmocka_unit_test(name_without_an_address_is_told)
    };

    /* As in the launcher, this program is its own resolver. */

    if (argc > 1 && strcmp(argv[1], BOUND_COMMAND) == 0) {
        return bound_main(argc - 1, argv + 1);
    }

    if (argc > 1 && strcmp(argv[1], DNS_COMMAND) == 0) {
        return dns_main(argc - 1, argv + 1);
    }

    return cmocka_run_group_tests(tests, NULL, NULL);
}
