
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "ctl_link.h"


/* An agent that does not answer in this time does not run. */
#define CTL_LINK_TIMEOUT_S  5


static int
ctl_link_unreachable(const ctl_t *ctl, const char *what)
{
    fprintf(stderr, "llmgwctl: agent at \"%s\" is not reached: %s\n",
            ctl->socket, what);

    return -1;
}


static int
ctl_link_connect(const ctl_t *ctl)
{
    int                 fd;
    struct timeval      timeout = { CTL_LINK_TIMEOUT_S, 0 };
    struct sockaddr_un  un;

    memset(&un, 0, sizeof(un));
    un.sun_family = AF_UNIX;

    if (strlen(ctl->socket) >= sizeof(un.sun_path)) {
        return ctl_link_unreachable(ctl, "the path is too long");
    }

    strcpy(un.sun_path, ctl->socket);

    fd = socket(AF_UNIX, SOCK_STREAM|SOCK_CLOEXEC, 0);

    if (fd == -1) {
        return ctl_link_unreachable(ctl, strerror(errno));
    }

    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof(timeout));
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &timeout, sizeof(timeout));

    if (connect(fd, (struct sockaddr *) &un, sizeof(un)) == -1) {
        ctl_link_unreachable(ctl, strerror(errno));
        close(fd);
        return -1;
    }

    return fd;
}


/* Connects and writes the request.  NULL: not reached, and said so. */
static FILE *
ctl_link_open(const ctl_t *ctl, json_t *request)
{
    int    fd;
    FILE  *stream;

    fd = ctl_link_connect(ctl);

    if (fd == -1) {
        json_decref(request);
        return NULL;
    }

    stream = fdopen(fd, "r+");

    if (stream == NULL) {
        close(fd);

    } else {
        json_dumpf(request, stream, JSON_COMPACT);
        fputc('\n', stream);
        fflush(stream);
    }

    json_decref(request);

    return stream;
}


/* NULL: it did not come, and that was said. */
static json_t *
ctl_link_read(const ctl_t *ctl, FILE *stream)
{
    char    *line;
    size_t   capacity;
    json_t  *json;

    line = NULL;
    capacity = 0;

    if (getline(&line, &capacity, stream) == -1) {
        ctl_link_unreachable(ctl, feof(stream) ? "it closed the connection"
                                               : "it does not answer");
        free(line);
        return NULL;
    }

    json = json_loads(line, 0, NULL);
    free(line);

    return json ? json : json_null();
}


static int
ctl_link_check(json_t *answer)
{
    const char  *error;

    if (json_is_true(json_object_get(answer, "ok"))) {
        json_object_del(answer, "ok");
        return CTL_DONE;
    }

    error = json_string_value(json_object_get(answer, "error"));
    fprintf(stderr, "llmgwctl: %s\n",
            error ? error : "the answer makes no sense");

    return CTL_FAILED;
}


int
ctl_link_ask(const ctl_t *ctl, json_t *request, json_t **answer)
{
    int      status;
    FILE    *stream;
    json_t  *json;

    stream = ctl_link_open(ctl, request);

    if (stream == NULL) {
        return CTL_UNREACHABLE;
    }

    json = ctl_link_read(ctl, stream);
    fclose(stream);

    if (json == NULL) {
        return CTL_UNREACHABLE;
    }

    status = ctl_link_check(json);

    if (status != CTL_DONE) {
        json_decref(json);
        return status;
    }

    *answer = json;

    return CTL_DONE;
}


int
ctl_link_tell(const ctl_t *ctl, json_t *request)
{
    int      status;
    json_t  *answer;

    status = ctl_link_ask(ctl, request, &answer);

    if (status == CTL_DONE) {
        json_decref(answer);
    }

    return status;
}


/* The last line has no "event". */
static int
ctl_link_read_events(const ctl_t *ctl, FILE *stream, ctl_event_pt on_event)
{
    int      status;
    json_t  *json;

    for ( ;; ) {
        json = ctl_link_read(ctl, stream);

        if (json == NULL) {
            return CTL_UNREACHABLE;
        }

        if (json_object_get(json, "event") == NULL) {
            status = ctl_link_check(json);
            json_decref(json);
            return status;
        }

        if (on_event != NULL) {
            on_event(json);
        }

        json_decref(json);
    }
}


int
ctl_link_follow(const ctl_t *ctl, json_t *request, ctl_event_pt on_event)
{
    int             status;
    FILE           *stream;
    struct timeval  never = { 0, 0 };

    stream = ctl_link_open(ctl, request);

    if (stream == NULL) {
        return CTL_UNREACHABLE;
    }

    setsockopt(fileno(stream), SOL_SOCKET, SO_RCVTIMEO, &never,
               sizeof(never));
    status = ctl_link_read_events(ctl, stream, on_event);
    fclose(stream);

    return status;
}
