
/*
 * Preloaded into a daemon: the first name that is looked up is not found, as
 * before the resolver runs; later ones resolve to the wildcard address,
 * 0.0.0.0.
 */

#include <netdb.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <netinet/in.h>


typedef struct {
    struct addrinfo     info;
    struct sockaddr_in  address;
} found_t;


int
getaddrinfo(const char *name, const char *service,
    const struct addrinfo *hints, struct addrinfo **found)
{
    found_t         *f;
    static unsigned  asked;

    if (asked++ == 0) {
        return EAI_AGAIN;
    }

    f = calloc(1, sizeof(found_t));
    f->address.sin_family = AF_INET;
    f->info.ai_family = AF_INET;
    f->info.ai_addr = (struct sockaddr *) &f->address;
    f->info.ai_addrlen = sizeof(f->address);
    *found = &f->info;

    return 0;
}


void
freeaddrinfo(struct addrinfo *found)
{
    free(found);
}
