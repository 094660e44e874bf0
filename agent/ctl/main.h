
/*
 * llmgwctl: what its commands share.  A command is a row of the table in
 * verbs.c and a function; it asks the agent, shows the answer, and returns the
 * exit status.
 *
 * A command that has options names their table (common/options.h) in its row;
 * the fields of all of them are in ctl_options_t.
 */

#ifndef CTL_MAIN_H
#define CTL_MAIN_H

#include <stdio.h>

#include <jansson.h>

#include "common/options.h"


/* Exit statuses, as docs/control.md has them. */
#define CTL_DONE         0
#define CTL_FAILED       1
#define CTL_USAGE        2
#define CTL_REFUSED      3
#define CTL_NOT_FOUND    4
#define CTL_TIMED_OUT    5
#define CTL_UNREACHABLE  6
#define CTL_WARNED       7

/* Enough for a year's daily files of several gateways. */
#define CTL_MAX_WORDS    1024

typedef struct {
    uint64_t  drain_timeout_ms;     /* drain, rolling-update */
    uint64_t  switch_timeout_ms;    /* group switch */
    int       is_forced;            /* drain, certs */
    int       is_watched;           /* members, status */

    const char  *to;                /* options of rolling-update, from here */
    const char  *members;
    const char  *stop;
    const char  *start;
    const char  *min_available;
    uint64_t     rejoin_timeout_ms;
    int64_t      max_unavailable;
    int          is_dry;
    int          is_abort;

    const char  *names;             /* certs issue */
    const char  *ips;
    int64_t      days;              /* certs; 0: the default */

    const char  *keys_file;         /* options of keys, from here */
    uint64_t     grace_ms;
    int          is_identity;

    const char  *since;             /* options of usage, from here */
    const char  *until;
    const char  *by;
    const char  *format;

    const char  *nginx_conf;        /* options of doctor, from here */
    const char  *gateway;
    const char  *engine_urls;
    const char  *engine_key_file;
    const char  *engine_ca_file;

    const char  *service;           /* path of a service's socket; NULL: the
                                       command is for an agent */
} ctl_options_t;

typedef struct {
    const char     *socket;         /* path; NULL: the command can do without an
                                       agent, and there is not exactly one */
    FILE           *errors;         /* why an agent was not asked */
    int             is_json;        /* output for programs, not for people */
    int             is_terminal;    /* standard output is a terminal */
    int             has_colours;
    char           *words[CTL_MAX_WORDS];   /* after command and verb, */
    int             nwords;                 /* as many as its row allows */
    ctl_options_t   options;        /* values of the command's table, if any */
} ctl_t;


int ctl_members(const ctl_t *ctl);
int ctl_status(const ctl_t *ctl);
int ctl_metrics(const ctl_t *ctl);
int ctl_leave(const ctl_t *ctl);
int ctl_events(const ctl_t *ctl);
int ctl_inject_suspect(const ctl_t *ctl);
int ctl_drain(const ctl_t *ctl);
int ctl_undrain(const ctl_t *ctl);
int ctl_update(const ctl_t *ctl);
int ctl_group_list(const ctl_t *ctl);
int ctl_group_switch(const ctl_t *ctl);
int ctl_shards(const ctl_t *ctl);
int ctl_weights(const ctl_t *ctl);
int ctl_lock(const ctl_t *ctl);
int ctl_keyring_list(const ctl_t *ctl);
int ctl_keyring_add(const ctl_t *ctl);
int ctl_keyring_use(const ctl_t *ctl);
int ctl_keyring_remove(const ctl_t *ctl);
int ctl_certs_init(const ctl_t *ctl);
int ctl_certs_issue(const ctl_t *ctl);
int ctl_keys_add(const ctl_t *ctl);
int ctl_keys_list(const ctl_t *ctl);
int ctl_keys_revoke(const ctl_t *ctl);
int ctl_keys_rotate(const ctl_t *ctl);
int ctl_keys_check(const ctl_t *ctl);
int ctl_usage_logs(const ctl_t *ctl);
int ctl_doctor(const ctl_t *ctl);

extern const options_spec_t  ctl_drain_spec;
extern const options_spec_t  ctl_group_spec;
extern const options_spec_t  ctl_members_spec;
extern const options_spec_t  ctl_status_spec;
extern const options_spec_t  ctl_update_spec;
extern const options_spec_t  ctl_weights_spec;
extern const options_spec_t  ctl_lock_spec;
extern const options_spec_t  ctl_certs_spec;
extern const options_spec_t  ctl_keys_spec;
extern const options_spec_t  ctl_usage_spec;
extern const options_spec_t  ctl_doctor_spec;

/*
 * Asks, and shows the answer: once, or again each second with --watch.  show()
 * prints it for people; --json is handled here.  part: a field of the answer;
 * if it is missing, another service listens at the socket.
 */
typedef void (*ctl_show_pt)(const ctl_t *ctl, json_t *answer, FILE *out);

int ctl_show(const ctl_t *ctl, const char *cmd, const char *part,
    ctl_show_pt show);

/*
 * The same, once only, for a request with more than a command; it is released.
 */
int ctl_ask(const ctl_t *ctl, json_t *request, ctl_show_pt show);

/* Prints one JSON object and a newline. */
void ctl_print_json(const json_t *json);

/* The same, flushed at once, for readers of a pipe. */
void ctl_print_event(void *data, const json_t *event);

/* Reports what is wrong with the command line; returns CTL_USAGE. */
int ctl_usage(const char *what, const char *value);

#endif /* CTL_MAIN_H */
