
/*
 * Preloaded into a resolver: a name has the addresses that a file lists,
 * $LLMGW_NAMES, one IPv4 address a line; without that file it cannot be
 * resolved now.
 */

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>


typedef struct {
    struct addrinfo     info;
    struct sockaddr_in  address;
} found_t;


int
getaddrinfo(const char *name, const char *service,
    const struct addrinfo *hints, struct addrinfo **found)
{
    char               line[64];
    FILE              *file;
    found_t           *f;
    struct addrinfo  **last;

    file = fopen(getenv("LLMGW_NAMES"), "r");

    if (file == NULL) {
        return EAI_AGAIN;
    }

    last = found;
    *last = NULL;

    while (fgets(line, sizeof(line), file) != NULL) {
        line[strcspn(line, "\n")] = '\0';
        f = calloc(1, sizeof(found_t));
        f->address.sin_family = AF_INET;
        inet_pton(AF_INET, line, &f->address.sin_addr);
        f->address.sin_port = htons((unsigned short) atoi(
                                        service != NULL ? service : "0"));
        f->info.ai_family = AF_INET;
        f->info.ai_socktype = SOCK_STREAM;
        f->info.ai_addr = (struct sockaddr *) &f->address;
        f->info.ai_addrlen = sizeof(f->address);
        *last = &f->info;
        last = &f->info.ai_next;
    }

    fclose(file);

    return *found != NULL ? 0 : EAI_NONAME;
}


/* Nothing is freed: a resolver's process ends soon. */
void
freeaddrinfo(struct addrinfo *found)
{
}
