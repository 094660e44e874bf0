
/*
 * A logged decision, made once more by core's functions from the facts that
 * were logged: the same choice, or the log does not explain it.
 */

#ifndef REPORT_LOG_REPLAY_H
#define REPORT_LOG_REPLAY_H

#include "sim/report/log/read.h"


/* Zeroed: empty.  Memory for one decision. */
typedef struct {
    uint32_t         max;
    double          *ranks;         /* as core made them, by position */
    double          *scores;
    uint32_t        *matched;
    llmgw_cold_t    *cold;
} report_replay_t;

typedef enum {
    REPORT_REPLAYED = 0,
    REPORT_REPLAY_LACKS,            /* not all candidates, or not all that the
                                       policy reads */
    REPORT_REPLAY_NO_MEMORY
} report_replay_rc_t;


/*
 * Ranks the candidates by `ranker`, the pool's own or another one; *best is
 * the position that it chooses among those that could be chosen.
 */
report_replay_rc_t report_replay(report_replay_t *replay,
    const report_log_entry_t *entry, const llmgw_ranker_t *ranker,
    uint32_t *best);

void report_replay_done(report_replay_t *replay);

#endif /* REPORT_LOG_REPLAY_H */
