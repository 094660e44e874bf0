
/*
 * The engines of this gateway: the sources that were given, and the engines of
 * each source.  A URL or a command has one engine, a name has one at each of
 * its addresses.
 */

#ifndef FLEET_H
#define FLEET_H

#include "up/fleet/dns.h"
#include "up/fleet/pair.h"


/* Including one for each address of a name. */
#define FLEET_ENGINES_MAX  256

typedef struct fleet_source_s  fleet_source_t;

struct fleet_source_s {
    source_t         source;
    struct fleet_s  *fleet;
    dns_t            dns;               /* used by SOURCE_DNS */
    char             name[SOURCE_HOST_BYTES + 8];   /* "host:port" */
    char             why[PROBE_WHY_BYTES];  /* why it cannot be resolved */
    fleet_source_t  *next;
};

typedef struct fleet_s {
    struct ev_loop   *loop;
    const files_t    *files;
    const tools_t    *tools;
    const char       *key;              /* the engines' key; NULL: none */
    double            dns_period_s;
    void            (*on_empty)(void *data);    /* after fleet_end(), when no
                                                   engine is left */
    void             *data;

    fleet_source_t   *sources;          /* in order of being added */
    pair_t           *pairs;            /* likewise */
    unsigned          npairs;
    int               is_ending;
    char              slots[FLEET_ENGINES_MAX];
} fleet_t;


/*
 * Adds a source, and starts its engine or resolves its name.  0, or -1 and a
 * reason.
 */
int fleet_add(fleet_t *fleet, const source_t *source,
    char error[FILES_ERROR_BYTES]);

/* Removes a source, found by its text or by its only engine's id, and drains
   its engines.  0, or -1: there is no such source. */
int fleet_remove(fleet_t *fleet, const char *text);

/*
 * Drains all engines.  on_empty is called once when none is left, or at once if
 * there are none.
 */
void fleet_end(fleet_t *fleet, int is_hurried);

void fleet_see(fleet_t *fleet, const json_t *members);

/* Prints what has changed, and, every FLEET_REMIND_S, which engines are still
   waited for. */
void fleet_say(fleet_t *fleet);

int fleet_count_ready(const fleet_t *fleet);
void fleet_trim_logs(const fleet_t *fleet);
void fleet_done(fleet_t *fleet);

#endif /* FLEET_H */
