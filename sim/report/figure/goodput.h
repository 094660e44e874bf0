
/*
 * Goodput: the share of requests that were served within the targets of their
 * class.
 *
 * A class may have a target for each of three times.  A request is good if it
 * completed and met all of them.  Requests that were refused, dropped or timed
 * out count as not good, because a client sees no difference; classes without a
 * target do not count at all.  A request without a class is of "default".
 */

#ifndef REPORT_GOODPUT_H
#define REPORT_GOODPUT_H

#include <stddef.h>
#include <stdint.h>


#define REPORT_MAX_TARGETS   64         /* of classes; BLIS names five */
#define REPORT_CLASS_BYTES   64

typedef enum {
    REPORT_TTFT = 0,
    REPORT_ITL,                         /* mean gap between tokens */
    REPORT_E2E,
    REPORT_TIMES
} report_time_t;

typedef struct {
    char              slo_class[REPORT_CLASS_BYTES];
    double            ms[REPORT_TIMES]; /* 0: no target */
} report_target_t;

/* Sorted by class name. */
typedef struct {
    report_target_t   list[REPORT_MAX_TARGETS];
    size_t            n;
} report_targets_t;

typedef struct {
    int64_t           injected;
    int64_t           good;
    int64_t           seen[REPORT_TIMES];   /* completed, with this target */
    int64_t           met[REPORT_TIMES];
} report_attained_t;


extern const char *const  report_time_names[REPORT_TIMES];

/*
 * The class's row, which is added if it is missing; NULL: there are too many,
 * or the name is too long.
 */
report_target_t *report_target_of(report_targets_t *targets,
    const char *slo_class, size_t len);

/* The class's row, or NULL; for "" that of "default". */
const report_target_t *report_target_find(const report_targets_t *targets,
    const char *slo_class);

/*
 * Reads targets of one time, "critical=100ms,standard=1.5s"; they replace those
 * that are there.  0, or -1 and an error.
 */
int report_targets_parse(report_targets_t *targets, report_time_t time,
    const char *text, char *error, size_t size);

/*
 * Nanoseconds of a text such as "1m30s", "1.5s", "200us"; -1 if it is no
 * duration, or not above 0.
 */
int64_t report_duration_ns(const char *text, size_t len);

/* Counts one completed request; NaN stands for a time that it does not have. */
void report_attain(const report_target_t *target, report_attained_t *attained,
    const double ms[REPORT_TIMES]);

#endif /* REPORT_GOODPUT_H */
