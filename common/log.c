
/*
 * One line per event, written by one write(2), so that lines of processes that
 * share a terminal or a file do not run into each other.
 *
 * Values in a line may come from a peer: control bytes are shown as '?', so no
 * peer can forge a line or control a terminal.  Lines are cut at
 * LOG_LINE_BYTES.  A line that cannot be written is dropped: a daemon does not
 * stop for its log.
 */

#include <errno.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "common/log.h"
#include "proto/utf8.h"


/* Below PIPE_BUF: a write of this size into a pipe is not torn. */
#define LOG_LINE_BYTES  2048


static const char *const  log_level_names[] = {
    "error", "warn", "info", "debug"
};


static size_t
log_stamp(char *buf, size_t capacity)
{
    size_t           n;
    struct tm        tm;
    struct timespec  now;

    clock_gettime(CLOCK_REALTIME, &now);
    gmtime_r(&now.tv_sec, &tm);

    n = strftime(buf, capacity, "%Y-%m-%dT%H:%M:%S", &tm);
    n += (size_t) snprintf(buf + n, capacity - n, ".%03ldZ",
                           now.tv_nsec / 1000000);

    return n;
}


/*
 * The number of bytes that snprintf() really wrote, computed from its result.
 */
static size_t
log_fitted(int n, size_t capacity)
{
    if (n < 0) {
        return 0;
    }

    return (size_t) n < capacity ? (size_t) n : capacity - 1;
}


static void
log_clean(char *text, size_t len)
{
    size_t  i, n;

    for (i = 0; i < len; i += n) {
        n = llmgw_utf8_shown(text + i, len - i);

        if (n == 0) {
            n = 1;
            text[i] = '?';
        }
    }
}


void
log_write(const log_t *log, log_level_t level, const char *format, ...)
{
    int      saved_errno;
    char     line[LOG_LINE_BYTES];
    size_t   n;
    ssize_t  written;
    va_list  args;

    if (level > log->level) {
        return;
    }

    saved_errno = errno;

    n = log_stamp(line, sizeof(line));
    n += log_fitted(snprintf(line + n, sizeof(line) - n, " %s %s%s%s: ",
                             log_level_names[level], log->program,
                             log->id != NULL ? " " : "",
                             log->id != NULL ? log->id : ""),
                    sizeof(line) - n);

    va_start(args, format);
    n += log_fitted(vsnprintf(line + n, sizeof(line) - n, format, args),
                    sizeof(line) - n);
    va_end(args);

    log_clean(line, n);
    line[n++] = '\n';

    do {
        written = write(STDERR_FILENO, line, n);
    } while (written < 0 && errno == EINTR);

    errno = saved_errno;
}
