
/* Reads logs of usage records.  log.h has the rules. */

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#include "proto/usage/log.h"


#define LOG_BYTES  65536

/*
 * Most bytes of a line: records that were cut off, with a whole one after them.
 */
#define LOG_LINE_BYTES  (4 * LLMGW_USAGE_LINE_BYTES)

/*
 * A record begins with this text, and has it nowhere else: quotes in its texts
 * are escaped.
 */
#define LOG_RECORD_BEGINS  "{\"time\":\""

struct llmgw_usage_log_s {
    gzFile                    file;
    size_t                    at;       /* bytes read and not used yet begin
                                           here */
    size_t                    len;      /* and end here */
    int                       is_long;  /* within a line that is too long */
    llmgw_usage_log_counts_t  counts;
    char                      bytes[LOG_BYTES];
};


llmgw_usage_log_t *
llmgw_usage_log_open(const char *path)
{
    int                 fd;
    llmgw_usage_log_t  *log;

    fd = open(path, O_RDONLY|O_CLOEXEC);

    if (fd == -1) {
        return NULL;
    }

    log = calloc(1, sizeof(*log));

    if (log != NULL) {
        log->file = gzdopen(fd, "r");

        if (log->file != NULL) {
            return log;
        }
    }

    free(log);
    (void) close(fd);
    errno = ENOMEM;

    return NULL;
}


void
llmgw_usage_log_close(llmgw_usage_log_t *log)
{
    if (log != NULL) {
        (void) gzclose(log->file);
        free(log);
    }
}


const llmgw_usage_log_counts_t *
llmgw_usage_log_counts(const llmgw_usage_log_t *log)
{
    return &log->counts;
}


/* Reads more of the file.  1: there is more; 0: the end; -1: an error. */
static int
log_fill(llmgw_usage_log_t *log)
{
    int  n;

    if (log->at > 0) {
        log->len -= log->at;
        memmove(log->bytes, log->bytes + log->at, log->len);
        log->at = 0;
    }

    n = gzread(log->file, log->bytes + log->len,
               (unsigned) (LOG_BYTES - log->len));

    if (n > 0) {
        log->len += (size_t) n;
        return 1;
    }

    /* reports a compressed file that is cut off as an error */

    (void) gzerror(log->file, &n);

    return n == Z_OK || n == Z_STREAM_END ? 0 : -1;
}


static void
log_wrong(llmgw_usage_log_t *log, const char *why)
{
    if (log->counts.wrong++ == 0) {
        log->counts.wrong_line = log->counts.lines;
        log->counts.wrong_why = why;
    }
}


/*
 * The last record that begins after the beginning of another one; NULL: there
 * is none.
 */
static const char *
log_behind(const char *line, size_t len)
{
    const char  *end, *at, *last;

    end = line + len;
    last = NULL;

    for (at = line; at != NULL; ) {
        at = memmem(at + 1, (size_t) (end - at - 1), LOG_RECORD_BEGINS,
                    sizeof(LOG_RECORD_BEGINS) - 1);
        last = at ? at : last;
    }

    return last;
}


static int
log_line(llmgw_usage_log_t *log, const char *line, size_t len,
    llmgw_usage_on_record_pt on_record, void *data)
{
    const char            *why, *end;
    llmgw_usage_t          usage;
    llmgw_usage_source_t   source;

    log->counts.lines++;

    if (log->is_long) {
        log->is_long = 0;
        log_wrong(log, "the line is too long");
        return 0;
    }

    if (len == 0) {
        return 0;
    }

    if (llmgw_usage_read(line, len, &source, &usage, &why) != 0) {
        log_wrong(log, why);
        end = line + len;
        line = log_behind(line, len);

        if (line == NULL
            || llmgw_usage_read(line, (size_t) (end - line), &source, &usage,
                                &why)
               != 0)
        {
            return 0;
        }
    }

    log->counts.records++;

    return on_record(data, &source, &usage);
}


int
llmgw_usage_log_step(llmgw_usage_log_t *log, uint32_t lines,
    llmgw_usage_on_record_pt on_record, void *data)
{
    int          rc;
    char        *line;
    const char  *newline;

    while (lines > 0) {
        line = log->bytes + log->at;
        newline = memchr(line, '\n', log->len - log->at);

        if (newline == NULL) {

            if (log->len - log->at >= LOG_LINE_BYTES) {
                log->is_long = 1;
                log->at = log->len;
            }

            rc = log_fill(log);

            if (rc <= 0) {
                return rc;
            }

            lines--;                    /* a line without an end counts, too */
            continue;
        }

        log->at += (size_t) (newline - line) + 1;
        lines--;

        if (log_line(log, line, (size_t) (newline - line), on_record, data)
            != 0)
        {
            return -1;
        }
    }

    return 1;
}
