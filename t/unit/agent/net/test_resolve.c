
/*
 * Seeds that are names.  The name server is in this test: "aN.test" has the N
 * addresses 10.N.0.1 and so on, of which it sends the first one twice; other
 * names have none.
 */

#include <netdb.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "net/resolve.h"


typedef struct {
    struct addrinfo     ai;
    struct sockaddr_in  sin;
} answer_t;

typedef struct {
    struct ev_loop  *loop;
    address_t        addresses[RESOLVE_MAX_SEEDS];
    size_t           n;
} scene_t;

static int  asked_family;


int
getaddrinfo(const char *host, const char *service,
    const struct addrinfo *hints, struct addrinfo **list)
{
    int                i, n;
    answer_t          *answer;
    struct addrinfo  **place;

    asked_family = hints->ai_family;
    *list = NULL;

    if (sscanf(host, "a%d.test", &n) != 1) {
        return EAI_NONAME;
    }

    for (i = 0, place = list; i <= n; i++, place = &(*place)->ai_next) {
        answer = calloc(1, sizeof(answer_t));
        answer->sin.sin_family = AF_INET;
        answer->sin.sin_addr.s_addr = htonl(10 << 24 | n << 16
                                            | (i ? i : 1));
        answer->ai.ai_family = AF_INET;
        answer->ai.ai_addr = (struct sockaddr *) &answer->sin;
        answer->ai.ai_addrlen = sizeof(answer->sin);
        *place = &answer->ai;
    }

    return 0;
}


void
freeaddrinfo(struct addrinfo *list)
{
    struct addrinfo  *next;

    for ( /* void */ ; list != NULL; list = next) {
        next = list->ai_next;
        free(list);
    }
}


static void
on_done(void *data, const address_t *addresses, size_t n)
{
    scene_t  *scene = data;

    assert_true(n <= RESOLVE_MAX_SEEDS);
    memcpy(scene->addresses, addresses, n * sizeof(address_t));
    scene->n = n;
    ev_break(scene->loop, EVBREAK_ALL);
}


static int
is_urgent(void *data)
{
    return 0;
}


/* Resolves a list of seeds, and writes the addresses with spaces between. */
static void
resolved(const char *list, int family, char *text)
{
    char        error[RESOLVE_ERROR_BYTES];
    size_t      i;
    scene_t     scene;
    resolve_t  *resolve;

    memset(&scene, 0, sizeof(scene));
    scene.loop = ev_loop_new(0);
    resolve = resolve_create(scene.loop, list, family, on_done, is_urgent,
                             &scene, error);
    assert_non_null(resolve);
    ev_run(scene.loop, 0);
    resolve_destroy(resolve);
    ev_loop_destroy(scene.loop);

    for (*text = '\0', i = 0; i < scene.n; i++) {
        strcat(text, i ? " " : "");
        address_format(&scene.addresses[i], text + strlen(text));
    }
}


static void
all_addresses_of_a_name_are_seeds_each_once(void **state)
{
    char  text[RESOLVE_MAX_SEEDS * ADDRESS_TEXT_BYTES];

    resolved("a3.test:70,nobody.test:71,10.0.0.9:72,a1.test:73", AF_INET,
             text);
    assert_string_equal(text, "10.3.0.1:70 10.3.0.2:70 10.3.0.3:70 "
                              "10.0.0.9:72 10.1.0.1:73");
    assert_int_equal(asked_family, AF_INET);

    resolved("a1.test:70", AF_INET6, text);
    assert_int_equal(asked_family, AF_UNSPEC);
}


static size_t
words(const char *text)
{
    size_t  n;

    for (n = 1; (text = strchr(text, ' ')) != NULL; text++) {
        n++;
    }

    return n;
}


static void
no_name_takes_the_room_of_another(void **state)
{
    char    list[RESOLVE_MAX_SEEDS * 16], last[32];
    char    text[RESOLVE_MAX_SEEDS * ADDRESS_TEXT_BYTES];
    size_t  i;

    snprintf(list, sizeof(list), "a%d.test:70", RESOLVE_NAME_SEEDS);
    resolved(list, AF_INET, text);
    assert_int_equal(words(text), RESOLVE_NAME_SEEDS);
    snprintf(list, sizeof(list), "a%d.test:70", RESOLVE_NAME_SEEDS + 1);
    resolved(list, AF_INET, text);
    assert_int_equal(words(text), RESOLVE_NAME_SEEDS);

    for (list[0] = '\0', i = 1; i <= RESOLVE_MAX_SEEDS; i++) {
        snprintf(list + strlen(list), 16, "%sa%zu.test:70", i > 1 ? "," : "",
                 i);
    }

    resolved(list, AF_INET, text);
    assert_int_equal(words(text), RESOLVE_MAX_SEEDS);
    snprintf(last, sizeof(last), " 10.%d.0.1:70", RESOLVE_MAX_SEEDS);
    assert_non_null(strstr(text, last));
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(all_addresses_of_a_name_are_seeds_each_once),
        cmocka_unit_test(no_name_takes_the_room_of_another),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
