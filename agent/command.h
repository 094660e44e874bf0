
/*
 * What a line on the control socket asks, and what is answered.
 *
 * No sockets here: a line comes in, a JSON object goes out, so that tests and
 * the fuzzer ask what people ask.  A command is an entry in one table and a
 * function.  docs/control.md shows each with its answer.
 */

#ifndef COMMAND_H
#define COMMAND_H

#include <jansson.h>

#include "publish.h"
#include "report.h"
#include "swim.h"


/* Who asks: one connection. */
typedef struct {
    int  is_reporter;       /* it is the replica's, and reported before */
} command_peer_t;

typedef struct {
    const char  *code;      /* for programs: "busy" */
    const char  *text;      /* for people */
} command_error_t;

typedef struct {
    const char       *id;
    const char       *role;
    const char       *cluster;
    const char       *members_path;     /* NULL: none is written */
    const swim_t     *swim;
    const publish_t  *publish;
    uint64_t          started_us;       /* monotonic */

    uint64_t  (*now_us)(void *data);

    /* NULL: taken; else why not. */
    const command_error_t *(*on_report)(void *data, command_peer_t *peer,
                                        const report_t *report);
    void             *data;
} command_env_t;


/*
 * Answers one line.  The answer is the caller's; NULL: nothing is to be said
 * (a report that is not the connection's first, or out of memory).
 */
json_t *command_answer(const command_env_t *env, command_peer_t *peer,
    const char *line, size_t len);

#endif /* COMMAND_H */
