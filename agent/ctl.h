
/*
 * llmgwctl: what its subcommands share.  A subcommand is an entry in the
 * table of ctl.c and a file; it asks the agent, shows the answer, and returns
 * the exit status.
 */

#ifndef CTL_H
#define CTL_H

#include <jansson.h>


/* Exit statuses, as docs/control.md has them. */
#define CTL_DONE         0
#define CTL_FAILED       1
#define CTL_USAGE        2
#define CTL_UNREACHABLE  6

typedef struct {
    const char  *socket;        /* path */
    int          is_json;       /* for programs, not for people */
    int          has_colours;
    char       **words;         /* behind the command, */
    int          nwords;        /* as many as its entry allows */
} ctl_t;


int ctl_members(const ctl_t *ctl);
int ctl_status(const ctl_t *ctl);
int ctl_leave(const ctl_t *ctl);
int ctl_events(const ctl_t *ctl);
int ctl_keyring(const ctl_t *ctl);
int ctl_inject_suspect(const ctl_t *ctl);

/* Prints one JSON object and a newline. */
void ctl_print_json(const json_t *json);

/* Says what is wrong with the command line; returns CTL_USAGE. */
int ctl_usage(const char *what, const char *value);

#endif /* CTL_H */
