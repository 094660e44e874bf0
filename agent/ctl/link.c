
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "ctl/link.h"


/* An agent that does not answer within this time counts as not running. */
#define CTL_LINK_TIMEOUT_S  5


static int
ctl_link_unreachable(const ctl_t *ctl, const char *what)
{
    fprintf(ctl->errors, "llmgwctl: cannot reach the %s at \"%s\": %s\n",
            ctl->options.service != NULL ? "service" : "agent", ctl->socket,
            what);

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


/* Connects and sends the request.  NULL: it failed, which was reported. */
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


/* A system call with a timeout on a socket is interrupted when the process is
   stopped and continued (signal(7)); after ^Z and fg the agent is not taken for
   silent. */
static int
ctl_link_getc(FILE *stream)
{
    int  c;

    while ((c = getc(stream)) == EOF && ferror(stream) && errno == EINTR) {
        clearerr(stream);
    }

    return c;
}


/* Reads one line with its end, which the caller frees; NULL: none came. */
static char *
ctl_link_line(FILE *stream)
{
    int      c;
    char    *line;
    FILE    *text;
    size_t   bytes;

    text = open_memstream(&line, &bytes);

    if (text == NULL) {
        return NULL;
    }

    do {
        c = ctl_link_getc(stream);
        (void) (c != EOF && fputc(c, text));
    } while (c != EOF && c != '\n');

    fclose(text);

    if (c == EOF) {
        free(line);
        return NULL;
    }

    return line;
}


/* Reads one answer.  NULL: no line came, which was reported. */
static json_t *
ctl_link_read(const ctl_t *ctl, FILE *stream)
{
    char    *line;
    json_t  *json;

    line = ctl_link_line(stream);

    if (line == NULL) {
        ctl_link_unreachable(ctl, feof(stream) ? "it closed the connection"
                                               : "it does not answer");
        return NULL;
    }

    json = json_loads(line, 0, NULL);
    free(line);

    return json ? json : json_null();
}


/* The exit status for the code of a refusal; other codes: CTL_FAILED. */
static const struct {
    const char  *code;
    int          status;
} ctl_link_statuses[] = {
    { "not_found",      CTL_NOT_FOUND },
    { "timeout",        CTL_TIMED_OUT },
    { "unreachable",    CTL_UNREACHABLE },
    { "last_replica",   CTL_REFUSED },
    { "not_a_replica",  CTL_REFUSED },
    { "no_keyring",     CTL_REFUSED },
    { "no_child",       CTL_REFUSED },
    { "owned",          CTL_REFUSED },
    { "leaving",        CTL_REFUSED },
    { "restarted",      CTL_REFUSED },
    { "busy",           CTL_REFUSED },
    { "update_running", CTL_REFUSED },
    { "min_available",  CTL_REFUSED },
    { "cannot_restart", CTL_REFUSED },
    { "no_version",     CTL_REFUSED },
    { "not_a_gateway",  CTL_REFUSED },
    { "wrong_user",     CTL_REFUSED },
    { "whole_group",    CTL_REFUSED },
    { "not_active",     CTL_REFUSED },
    { "no_standby",     CTL_REFUSED },
    { "no_process",     CTL_REFUSED },
    { "no_lock",        CTL_REFUSED }
};

#define CTL_LINK_NSTATUSES                                                    \
    (sizeof(ctl_link_statuses) / sizeof(ctl_link_statuses[0]))


static int
ctl_link_status(const json_t *answer)
{
    size_t       i;
    const char  *code;

    code = json_string_value(json_object_get(answer, "code"));

    for (i = 0; code != NULL && i < CTL_LINK_NSTATUSES; i++) {
        if (strcmp(ctl_link_statuses[i].code, code) == 0) {
            return ctl_link_statuses[i].status;
        }
    }

    return CTL_FAILED;
}


static int
ctl_link_check(const ctl_t *ctl, json_t *answer)
{
    const char  *error;

    if (json_is_true(json_object_get(answer, "ok"))) {
        json_object_del(answer, "ok");
        return CTL_DONE;
    }

    error = json_string_value(json_object_get(answer, "error"));
    fprintf(ctl->errors, "llmgwctl: %s\n",
            error ? error : "the answer is malformed");

    return ctl_link_status(answer);
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

    status = ctl_link_check(ctl, json);

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


/* The last line is the one without "event"; NULL: it did not come. */
static json_t *
ctl_link_read_events(const ctl_t *ctl, FILE *stream, ctl_event_pt on_event,
    void *data)
{
    json_t  *json;

    for ( ;; ) {
        json = ctl_link_read(ctl, stream);

        if (json == NULL || json_object_get(json, "event") == NULL) {
            return json;
        }

        if (on_event != NULL) {
            on_event(data, json);
        }

        json_decref(json);
    }
}


int
ctl_link_follow(const ctl_t *ctl, json_t *request, ctl_event_pt on_event,
    void *data, ctl_link_mode_t mode, json_t **answer)
{
    int             status;
    FILE           *stream;
    json_t         *last;
    struct timeval  never = { 0, 0 };

    if (answer != NULL) {
        *answer = NULL;
    }

    stream = ctl_link_open(ctl, request);

    if (stream == NULL) {
        return CTL_UNREACHABLE;
    }

    if (mode == CTL_LINK_PATIENT) {
        setsockopt(fileno(stream), SOL_SOCKET, SO_RCVTIMEO, &never,
                   sizeof(never));
    }

    last = ctl_link_read_events(ctl, stream, on_event, data);
    fclose(stream);
    status = last ? ctl_link_check(ctl, last) : CTL_UNREACHABLE;

    if (answer != NULL) {
        *answer = last;

    } else {
        json_decref(last);
    }

    return status;
}
