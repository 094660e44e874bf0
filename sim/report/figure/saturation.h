
/*
 * Was the fleet saturated?  Detectors look at completed requests, one event
 * after the other, and give a verdict after each; the final label is the most
 * frequent verdict of the last window, the more severe one in a tie.
 *
 *   composite       too few completions for the arrivals, or latency that rises
 *                   from quarter to quarter (from 20 completions on), each
 *                   above the noise of 1/sqrt(arrivals)
 *   threshold       mean end-to-end latency against a limit
 *   backlog-drift   the slope of requests in flight, a sample a window, by
 *                   least squares, against the same noise
 *
 * The verdict of composite needs all latencies again: n events cost n*n/2
 * additions in the window that counts, and everywhere if a trace is asked for.
 */

#ifndef REPORT_SATURATION_H
#define REPORT_SATURATION_H

#include <stddef.h>
#include <stdint.h>


#define REPORT_SIGNALS  5           /* most signals of one verdict */

typedef enum {
    REPORT_STABLE = 0,
    REPORT_BACKLOGGED,
    REPORT_OVERLOADED,
    REPORT_LEVELS
} report_level_t;

typedef enum {
    REPORT_COMPOSITE = 0,
    REPORT_THRESHOLD,
    REPORT_BACKLOG_DRIFT,
    REPORT_DETECTORS
} report_detector_t;

/* A completed request. */
typedef struct {
    const char       *id;               /* breaks ties */
    int64_t           arrival_us;
    int64_t           e2e_us;
} report_served_t;

typedef struct {
    const char       *name;
    double            value;
} report_signal_t;

typedef struct {
    report_level_t    level;
    double            score;
    double            confidence;
    report_signal_t   signals[REPORT_SIGNALS];  /* ascending by name */
    size_t            nsignals;
} report_verdict_t;

typedef struct {
    unsigned          detectors;        /* bits, 1 << report_detector_t */
    double            threshold_ms;
    int64_t           drift_window_us;
    int64_t           final_window_us;

    /*
     * May be NULL.  Called for each event, once for each detector in this
     * order.
     */
    void            (*verdict)(void *data, int64_t at_us,
                               report_detector_t detector,
                               const report_verdict_t *verdict);
    void             *data;
} report_saturation_t;


extern const char *const  report_detector_names[REPORT_DETECTORS];
extern const char *const  report_level_names[REPORT_LEVELS];

/* Sets BLIS's defaults: 5 s, windows of 60 s and 30 s, no detectors. */
void report_saturation_init(report_saturation_t *s);

/*
 * Selects detectors: "all", or names separated by commas.  0, or -1 with the
 * accepted names in *error (static text).
 */
int report_saturation_select(report_saturation_t *s, const char *names,
    const char **error);

/*
 * Fills labels[] of the selected detectors.  1; 0 and no label if no request
 * completed; -1: no memory.
 */
int report_saturation_run(const report_saturation_t *s,
    const report_served_t *served, size_t n,
    report_level_t labels[REPORT_DETECTORS]);

#endif /* REPORT_SATURATION_H */
