
/*
 * The daemons' log: one line for each event, on standard error.
 *
 *   2026-11-20T19:40:02.123Z warn llmgw-agent r1: member "r2" is suspect
 *
 * Lower case, subject first, values quoted, unit printed, no full stop.
 */

#ifndef LOG_H
#define LOG_H

#include <stdarg.h>


typedef enum {
    LOG_ERROR = 0,      /* this request or command failed */
    LOG_WARN,           /* degraded and still serving */
    LOG_INFO,           /* start, stop, changes of state */
    LOG_DEBUG
} log_level_t;

typedef struct {
    const char   *program;      /* id of the member, or NULL */
    const char   *id;           /* lines of a higher level are not written */
    log_level_t   level;        /* above it nothing is written */
} log_t;

void log_write(const log_t *log, log_level_t level, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

#endif /* LOG_H */
