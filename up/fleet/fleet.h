
/*
 * The engines before which this gateway stands: the sources that were named,
 * and for each of them its engines, one or, of a name, one at each address.
 */

#ifndef FLEET_H
#define FLEET_H

#include "up/fleet/dns.h"
#include "up/fleet/pair.h"


/* Addresses of names included. */
#define FLEET_ENGINES_MAX  256

typedef struct fleet_source_s  fleet_source_t;

struct fleet_source_s {
    source_t         source;
    struct fleet_s  *fleet;
    dns_t            dns;               /* of SOURCE_DNS */
    char             name[SOURCE_HOST_BYTES + 8];   /* "host:port" */
    char             why[PROBE_WHY_BYTES];  /* what is wrong with it */
    fleet_source_t  *next;
};

typedef struct fleet_s {
    struct ev_loop   *loop;
    const files_t    *files;
    const tools_t    *tools;
    const char       *key;              /* of the engines, or NULL */
    double            dns_period_s;
    void            (*on_empty)(void *data);    /* all have gone, at the end */
    void             *data;

    fleet_source_t   *sources;          /* in the order of their coming */
    pair_t           *pairs;            /* the same */
    unsigned          npairs;
    int               is_ending;
    char              slots[FLEET_ENGINES_MAX];
} fleet_t;


/* Begins with an engine or a name.  0, or -1 and a reason. */
int fleet_add(fleet_t *fleet, const source_t *source,
    char error[FILES_ERROR_BYTES]);

/* By its text, or of one engine by its id.  Its engines drain.  0, or -1:
   there is none. */
int fleet_remove(fleet_t *fleet, const char *text);

/* Drains all; on_empty comes once, at once if there are none. */
void fleet_end(fleet_t *fleet, int is_hurried);

void fleet_see(fleet_t *fleet, const json_t *members);

/* Says what has changed, and each FLEET_REMIND_S that one is still waited
   for. */
void fleet_say(fleet_t *fleet);

int fleet_count_ready(const fleet_t *fleet);
void fleet_trim_logs(const fleet_t *fleet);
void fleet_done(fleet_t *fleet);

#endif /* FLEET_H */
