
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


/* The answer's line, allocated; NULL: it did not come. */
static char *
ctl_link_talk(const ctl_t *ctl, int fd, const char *request)
{
    char     *line;
    FILE     *stream;
    size_t    capacity;
    ssize_t   n;

    stream = fdopen(fd, "r+");

    if (stream == NULL) {
        close(fd);
        return NULL;
    }

    line = NULL;
    capacity = 0;

    fprintf(stream, "%s\n", request);
    fflush(stream);
    n = getline(&line, &capacity, stream);

    if (n == -1) {
        ctl_link_unreachable(ctl, "it does not answer");
        free(line);
        line = NULL;
    }

    fclose(stream);

    return line;
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
ctl_link_ask(const ctl_t *ctl, const char *request, json_t **answer)
{
    int      fd, status;
    char    *line;
    json_t  *json;

    fd = ctl_link_connect(ctl);

    if (fd == -1) {
        return CTL_UNREACHABLE;
    }

    line = ctl_link_talk(ctl, fd, request);

    if (line == NULL) {
        return CTL_UNREACHABLE;
    }

    json = json_loads(line, 0, NULL);
    free(line);

    status = ctl_link_check(json);

    if (status != CTL_DONE) {
        json_decref(json);
        return status;
    }

    *answer = json;

    return CTL_DONE;
}
