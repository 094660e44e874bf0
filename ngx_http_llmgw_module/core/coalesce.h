
/*
 * Coalescing: when a busy worker reads its replicas at intervals, and not
 * whenever one of them has sent something.
 *
 * Each arrival from a replica costs an iteration of the event loop: a wake-up,
 * a read, and a write for each client connection that gets a token.  At tens of
 * thousands of tokens a second, many iterations carry few tokens each; one
 * iteration per interval carries them all, with one write for each connection.
 * Network drivers do the same with their interrupts (Mogul, Ramakrishnan:
 * Eliminating Receive Livelock in an Interrupt-driven Kernel, 1996; Linux'
 * NAPI).
 *
 *                    busy, and read within the last interval
 *      by events ----------------------------------------------> at intervals
 *          ^                                                          |
 *          +------- not busy, or most intervals brought nothing ------+
 *
 * A token then waits half an interval on average, a whole one at most.  This
 * pays only if an interval gathers enough tokens: a timer that fires costs as
 * much as several iterations.  Measured with a worker on one processor and 4 to
 * 20 client connections, 10 and 20 tokens an interval cost as much as without
 * coalescing, 40 and 50 a third less.  So a worker is busy from BUSY tokens an
 * interval on, and calm again below CALM, both averaged over WINDOW intervals.
 * A source goes back to events when, of its last intervals, QUIET more were
 * empty than were not.
 *
 * Tokens are counted, not the streams that have some: an interval sees each
 * stream once, so a worker would look calmer because it coalesces.
 *
 * now_ms is monotonic; zeroed memory is a calm worker, a source read by
 * events.
 */

#ifndef LLMGW_COALESCE_H
#define LLMGW_COALESCE_H

#include <stdint.h>


#define LLMGW_COALESCE_BUSY    32
#define LLMGW_COALESCE_CALM    16
#define LLMGW_COALESCE_WINDOW  8
#define LLMGW_COALESCE_QUIET   4

/* A worker's load. */
typedef struct {
    uint64_t  interval_ms;      /* 0: off */
    uint64_t  since_ms;         /* the window's begin */
    uint64_t  tokens;           /* in the window; added by the code that sends
                                   them */
    int       is_busy;
} llmgw_coalesce_load_t;

/* How a connection to a replica is read. */
typedef struct {
    uint64_t  read_ms;          /* when an event last led to a read */
    uint32_t  quiet;            /* empty intervals, less the others */
    int       has_brought;      /* in the current interval */
    int       at_intervals;
} llmgw_coalesce_source_t;


/* An iteration of the event loop ends. */
void llmgw_coalesce_iteration(llmgw_coalesce_load_t *load, uint64_t now_ms);

/*
 * An event says that there is something to read.  1: at_intervals was set, the
 * next reads are at intervals.
 */
int llmgw_coalesce_event(const llmgw_coalesce_load_t *load,
    llmgw_coalesce_source_t *source, uint64_t now_ms);

/*
 * An interval is over and the source is read now. 1: from then on it is read
 * by events, and the caller clears at_intervals.
 */
int llmgw_coalesce_interval(const llmgw_coalesce_load_t *load,
    llmgw_coalesce_source_t *source);

/* The read brought something. */
void llmgw_coalesce_brought(llmgw_coalesce_source_t *source);


#endif /* LLMGW_COALESCE_H */
