
/* A question to the agent, and its answer. */

#ifndef CTL_LINK_H
#define CTL_LINK_H

#include "ctl/main.h"


/*
 * Sends one request and reads one line.  CTL_DONE and *answer (owned by the
 * caller, without its "ok"); otherwise an exit status, after a line on stderr.
 * The request is released.
 */
int ctl_link_ask(const ctl_t *ctl, json_t *request, json_t **answer);

/* The same, for an answer that has only "ok". */
int ctl_link_tell(const ctl_t *ctl, json_t *request);

/*
 * The same for commands that take long: on_event (NULL: none) gets each event
 * until the last line has come.  *answer is the last line, whether the command
 * succeeded or failed, or NULL if none came; answer may be NULL. LIVELY: the
 * agent sends a line each second, and counts as gone if it does not.
 */
typedef void (*ctl_event_pt)(void *data, const json_t *event);

typedef enum {
    CTL_LINK_LIVELY = 0,
    CTL_LINK_PATIENT
} ctl_link_mode_t;

int ctl_link_follow(const ctl_t *ctl, json_t *request, ctl_event_pt on_event,
    void *data, ctl_link_mode_t mode, json_t **answer);

/*
 * Runs a command that reports its progress each second.  Events are shown as
 * lines, or for people by on_event; the last line by on_done.
 */
int ctl_follow(const ctl_t *ctl, json_t *request, ctl_event_pt on_event,
    ctl_show_pt on_done);

#endif /* CTL_LINK_H */
