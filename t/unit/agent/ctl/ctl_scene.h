
/*
 * A command of llmgwctl with an agent that answers what the test wants: it
 * stands in for ctl/link.c, so that no socket is needed.  What the command
 * prints is kept.
 */

#ifndef CTL_SCENE_H
#define CTL_SCENE_H

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "ctl/link.h"


#define SCENE_LINES  8
#define SCENE_BYTES  16384

typedef struct {
    const char  *lines[SCENE_LINES];    /* the agent's answers, with ' for " */
    int          status;                /* of the last line */
    int          next;
    int          is_last;               /* SIGTERM comes after the question */
    char         asked[1024];           /* the last request */
    char         said[SCENE_BYTES];     /* on both outputs */
} ctl_scene_t;

static ctl_scene_t  scene;


static json_t *
scene_line(void)
{
    char        *quote, line[4096];
    json_t      *json;
    const char  *text;

    text = scene.lines[scene.next++];
    snprintf(line, sizeof(line), "%s", text ? text : "null");

    while ((quote = strchr(line, '\'')) != NULL) {
        *quote = '"';
    }

    json = json_loads(line, JSON_DECODE_ANY, NULL);
    assert_non_null(json);

    return json;
}


static void
scene_take(json_t *request)
{
    char  *text;

    text = json_dumps(request, JSON_COMPACT);
    assert_non_null(text);
    snprintf(scene.asked, sizeof(scene.asked), "%s", text);
    free(text);
    json_decref(request);
}


int
ctl_link_follow(const ctl_t *ctl, json_t *request, ctl_event_pt on_event,
    void *data, ctl_link_mode_t mode, json_t **answer)
{
    json_t  *line;

    scene_take(request);

    for ( ;; ) {
        line = scene_line();

        if (json_object_get(line, "event") == NULL) {
            break;
        }

        on_event(data, line);
        json_decref(line);
    }

    if (answer != NULL) {
        *answer = line;

    } else {
        json_decref(line);
    }

    return scene.status;
}


int
ctl_link_ask(const ctl_t *ctl, json_t *request, json_t **answer)
{
    scene_take(request);

    if (scene.is_last) {
        raise(SIGTERM);
    }

    if (scene.status == CTL_DONE) {
        *answer = scene_line();
    }

    return scene.status;
}


int
ctl_link_tell(const ctl_t *ctl, json_t *request)
{
    scene_take(request);

    return scene.status;
}


/* --- what ctl/main.c has */

int
ctl_usage(const char *what, const char *value)
{
    printf("usage: %s %s\n", what, value ? value : "-");

    return CTL_USAGE;
}


/* --- for tests */

static void
scene_swap(int fds[2], int to_out, int to_err)
{
    fflush(stdout);
    fds[0] = dup(STDOUT_FILENO);
    fds[1] = dup(STDERR_FILENO);
    dup2(to_out, STDOUT_FILENO);
    dup2(to_err, STDERR_FILENO);
}


/* Runs the command, which has to return this status; returns its output. */
static const char *
scene_run(int (*run)(const ctl_t *ctl), const ctl_t *ctl, int status)
{
    int     got, fds[2], spent[2];
    FILE   *file;
    size_t  len;

    file = tmpfile();
    assert_non_null(file);
    scene_swap(fds, fileno(file), fileno(file));
    got = run(ctl);
    scene_swap(spent, fds[0], fds[1]);
    close(fds[0]);
    close(fds[1]);
    close(spent[0]);
    close(spent[1]);

    rewind(file);
    len = fread(scene.said, 1, sizeof(scene.said) - 1, file);
    scene.said[len] = '\0';
    fclose(file);
    assert_int_equal(got, status);

    return scene.said;
}


/* The same for a command that gets this answer, and succeeds. */
static inline const char *
scene_show(int (*run)(const ctl_t *ctl), const ctl_t *ctl, const char *answer)
{
    memset(&scene, 0, sizeof(scene));
    scene.lines[0] = answer;

    return scene_run(run, ctl, CTL_DONE);
}

#endif /* CTL_SCENE_H */
