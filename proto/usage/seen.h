
/*
 * The set of records seen so far: numbers n for each (gateway, birth), as
 * ranges.  Records come nearly in order, so a source has a few ranges, however
 * many records it wrote; a record that was lost is a gap.
 */

#ifndef LLMGW_SEEN_H
#define LLMGW_SEEN_H

#include "proto/usage/record.h"


/* Most ranges of all sources: 16 MB. */
#define LLMGW_SEEN_RANGES   1000000

/* Most sources, that is gateways times their restarts: 8 MB. */
#define LLMGW_SEEN_SOURCES  65536

typedef struct llmgw_seen_s  llmgw_seen_t;

typedef enum {
    LLMGW_SEEN_NEW = 0,                 /* and remembered now */
    LLMGW_SEEN_DOUBLE,
    LLMGW_SEEN_FULL                     /* too many ranges or sources, or no
                                           memory: it cannot be known */
} llmgw_seen_rc_t;


/* NULL: no memory. */
llmgw_seen_t *llmgw_seen_create(void);
void llmgw_seen_destroy(llmgw_seen_t *seen);

llmgw_seen_rc_t llmgw_seen_add(llmgw_seen_t *seen,
    const llmgw_usage_source_t *source, uint64_t n);

#endif /* LLMGW_SEEN_H */
