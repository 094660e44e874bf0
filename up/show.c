
/* What is printed for people, and what they can type next. */

#include <stdio.h>
#include <string.h>

#include "up/up.h"


void
show_start(const up_t *up)
{
    printf("llmgw " LLMGW_VERSION ": configuration %s in %s\n",
           up->options->is_log_stderr ? "is" : "and logs are", up->place.dir);

    if (up->new_key[0] != '\0') {
        printf("\nOther hosts reach %s, so clients need a key.  This one is "
               "not shown again:\n\n    %s\n\n", up->listen, up->new_key);

    } else if (up->keys[0] != '\0') {
        printf("Clients need a key of %s\n", up->keys);

    } else if (!address_is_loopback(&up->address)) {
        printf("Every client that reaches %s may use the engines (--open)\n",
               up->listen);
    }

    printf("Engines:\n");
}


static const char *
show_model(const up_t *up)
{
    const pair_t  *p;

    for (p = up->fleet.pairs; p != NULL; p = p->next) {
        if (pair_is_ready(p) && p->seen.model[0] != '\0') {
            return p->seen.model;
        }
    }

    return "MODEL";
}


void
show_ready(up_t *up)
{
    const char  *auth;

    auth = up->keys[0] != '\0'
           ? "        -H \"Authorization: Bearer $LLMGW_KEY\" \\\n" : "";

    printf("\nReady.  The base URL of clients is %s/v1\n\n"
           "    curl -N %s/v1/chat/completions \\\n"
           "%s        -H 'Content-Type: application/json' -d \\\n"
           "        '{\"model\": \"%s\", \"stream\": true, \"messages\": "
           "[{\"role\": \"user\", \"content\": \"Hello\"}]}'\n\n"
           "Dashboard   %s/dashboard\n"
           "Engines     llmgw add URL | remove URL | status%s%s\n"
           "End         Ctrl-C: running streams have time to finish\n\n",
           up->base, up->base, auth, show_model(up), up->pages,
           up->options->dir != NULL ? " --dir " : "",
           up->options->dir != NULL ? up->options->dir : "");
}


void
show_broken(program_t *program)
{
    if (program_is_broken(program) && program->said != program->starts) {
        program->said = program->starts;
        printf("  %-20s ended and is started again: %s\n", program->name,
               program->why);
    }
}


void
show_end(const up_t *up)
{
    long           streams;
    const pair_t  *p;

    streams = 0;

    for (p = up->fleet.pairs; p != NULL; p = p->next) {
        streams += (long) p->seen.active;
    }

    if (up->is_hurried) {
        printf("Ending at once\n");
        return;
    }

    printf("Ending: %ld streams run, and have %g s; a second signal does not "
           "wait\n", streams, (double) up->options->drain_timeout_ms / 1000);
}
