
/*
 * `llmgw add`, `remove` and `status`: send one question to a running gateway.
 */

#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "up/up.h"


#define ASK_TIMEOUT_S    10
#define ASK_ANSWER_BYTES (4 << 20)


/* Returns a connected socket; -1: no gateway listens. */
static int
ask_connect(const char *run)
{
    int                 fd;
    struct timeval      timeout = { ASK_TIMEOUT_S, 0 };
    struct sockaddr_un  address = { .sun_family = AF_UNIX };

    snprintf(address.sun_path, sizeof(address.sun_path), "%s/" UP_SOCKET,
             run);
    fd = socket(AF_UNIX, SOCK_STREAM|SOCK_CLOEXEC, 0);

    if (fd != -1
        && (setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof(timeout))
            != 0
            || connect(fd, (struct sockaddr *) &address, sizeof(address))
               != 0))
    {
        close(fd);
        return -1;
    }

    return fd;
}


/* Sends the question, which is freed.  Returns the answer, or NULL. */
static json_t *
ask_line(int fd, json_t *question)
{
    char     *text;
    FILE     *stream;
    json_t   *answer;
    ssize_t   n;
    size_t    len;

    text = json_dumps(question, JSON_COMPACT);
    json_decref(question);

    if (text == NULL) {
        return NULL;
    }

    len = strlen(text);
    text[len] = '\n';           /* in place of the NUL */
    n = send(fd, text, len + 1, MSG_NOSIGNAL);
    free(text);
    stream = n == (ssize_t) len + 1 ? fdopen(dup(fd), "r") : NULL;

    if (stream == NULL) {
        return NULL;
    }

    answer = json_loadf(stream, JSON_DISABLE_EOF_CHECK, NULL);
    fclose(stream);

    return answer;
}


static const char *
ask_word(const json_t *object, const char *name)
{
    const char  *word;

    word = json_string_value(json_object_get(object, name));

    return word != NULL ? word : "";
}


static void
ask_show(const json_t *answer)
{
    size_t   i;
    json_t  *engines, *engine;

    printf("%s/v1 is %s; configuration and logs are in %s\n",
           ask_word(answer, "base"), ask_word(answer, "state"),
           ask_word(answer, "dir"));
    engines = json_object_get(answer, "engines");

    json_array_foreach(engines, i, engine) {
        printf("  %-20s %s\n  %-20s %s\n", ask_word(engine, "id"),
               ask_word(engine, "url"), "", ask_word(engine, "state"));
    }
}


/* Prints the answer, which is freed; returns the exit status. */
static int
ask_tell(const char *verb, const cmdline_t *o, json_t *answer)
{
    int  status;

    status = json_is_true(json_object_get(answer, "ok")) ? 0 : 1;

    if (answer == NULL) {
        fprintf(stderr, "llmgw %s: the gateway does not answer\n", verb);

    } else if (status != 0) {
        fprintf(stderr, "llmgw %s: %s\n", verb, ask_word(answer, "error"));

    } else if (o->is_json) {
        json_dumpf(answer, stdout, JSON_COMPACT);
        printf("\n");

    } else if (strcmp(verb, "status") == 0) {
        ask_show(answer);
    }

    json_decref(answer);

    return status;
}


static int
ask(const char *verb, const cmdline_t *o)
{
    int      fd, status;
    char     error[PLACE_ERROR_BYTES];
    place_t  place = { 0 };

    if (place_find_running(&place, o->dir, error) != 0) {
        fprintf(stderr, "llmgw %s: %s\n", verb, error);
        return 1;
    }

    fd = ask_connect(place.run);

    if (fd == -1) {
        fprintf(stderr, "llmgw %s: the gateway in \"%s\" does not answer: "
                "%s\n", verb, place.dir, strerror(errno));
        return 1;
    }

    status = ask_tell(verb, o, ask_line(fd, json_pack("{s:s, s:s?}", "cmd",
                                        verb, "url", o->nwords > 0
                                        ? o->words[0] : NULL)));
    close(fd);

    return status;
}


int
ask_main(int argc, char **argv)
{
    int        status;
    cmdline_t  options;

    switch (cmdline_read_ask(&options, argc, argv)) {
    case OPTIONS_EXIT:
        return 0;
    case OPTIONS_EUSAGE:
        return 2;
    default:
        break;
    }

    status = ask(argv[0], &options);
    cmdline_done_ask(&options);

    return status;
}
