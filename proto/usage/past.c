
/* Reads earlier usage.  past.h has the rules. */

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "proto/date.h"
#include "proto/usage/log.h"
#include "proto/usage/past.h"


#define PAST_ALLOWED_S   60
#define PAST_PATH_BYTES  4096

/* Room for as many lines as there may be accounts. */
#define PAST_STATE_BYTES  ((size_t) LLMGW_BOOKS_ACCOUNTS                      \
                           * LLMGW_STATE_LINE_BYTES)

typedef struct {
    dev_t                device;
    ino_t                inode;
    char                *path;
} past_file_t;

struct llmgw_past_s {
    llmgw_past_files_t   files;
    llmgw_books_t       *books;
    llmgw_past_counts_t  counts;
    time_t               since;         /* files changed before are left out */
    char                *text;          /* text of the state, until it is
                                           read */
    size_t               len;
    size_t               at;
    past_file_t         *found;
    uint32_t             nfound;
    uint32_t             next;          /* next file to be read */
    int                  is_full;       /* too many files; this was reported */
    llmgw_usage_log_t   *log;           /* the file that is being read */
    int                  is_out;        /* out of memory for the records */
};


static void
past_trouble(llmgw_past_t *past, const char *path, const char *why, int error)
{
    past->files.on_trouble(past->files.data, path, why, error);
}


static time_t
past_month_began(uint64_t unix_ms)
{
    char  date[LLMGW_DATE_BYTES];

    llmgw_date_write(date, unix_ms);
    memcpy(date + sizeof("2026-11-") - 1, "01", 2);

    return llmgw_date_read(date, sizeof("2026-11-01") - 1, &unix_ms) == 0
           ? (time_t) (unix_ms / 1000) : 0;
}


/* Reads a whole file.  NULL: errno has the reason; 0: the file is too large. */
static char *
past_read(int fd, const struct stat *st)
{
    char     *text;
    size_t    len;
    ssize_t   n;

    if (!S_ISREG(st->st_mode) || (size_t) st->st_size > PAST_STATE_BYTES) {
        errno = 0;
        return NULL;
    }

    text = malloc((size_t) st->st_size + 1);

    for (len = 0; text != NULL && len < (size_t) st->st_size; len += n) {
        n = read(fd, text + len, (size_t) st->st_size - len);

        if (n <= 0) {
            free(text);
            return NULL;
        }
    }

    return text;
}


static void
past_refuse(llmgw_past_t *past, const char *why, int error)
{
    past->counts.is_refused = 1;
    past->since = past_month_began(past->files.unix_ms) - PAST_ALLOWED_S;
    past_trouble(past, past->files.state, why, error);
}


static void
past_open_state(llmgw_past_t *past)
{
    int          fd;
    struct stat  st;

    fd = open(past->files.state, O_RDONLY|O_CLOEXEC|O_NONBLOCK);

    if (fd == -1 && errno == ENOENT) {
        return;
    }

    if (fd == -1 || fstat(fd, &st) == -1) {
        past_refuse(past, "it cannot be read", errno);

    } else {
        past->text = past_read(fd, &st);

        if (past->text == NULL) {
            past_refuse(past, errno ? "it cannot be read"
                                    : "it is no state of usage", errno);

        } else {
            past->len = (size_t) st.st_size;

            if (st.st_mtime - PAST_ALLOWED_S > past->since) {
                past->since = st.st_mtime - PAST_ALLOWED_S;
            }
        }
    }

    if (fd != -1) {
        (void) close(fd);
    }
}


llmgw_past_t *
llmgw_past_begin(const llmgw_past_files_t *files)
{
    llmgw_past_t  *past;

    past = calloc(1, sizeof(*past));

    if (past == NULL) {
        return NULL;
    }

    past->files = *files;
    past->books = llmgw_books_create(files->gateway, files->below);

    if (past->books == NULL) {
        free(past);
        return NULL;
    }

    past->since = past_month_began(files->unix_ms) - PAST_ALLOWED_S;

    if (files->state != NULL) {
        past_open_state(past);
    }

    return past;
}


void
llmgw_past_done(llmgw_past_t *past)
{
    uint32_t  i;

    if (past == NULL) {
        return;
    }

    for (i = 0; i < past->nfound; i++) {
        free(past->found[i].path);
    }

    free(past->found);
    free(past->text);
    llmgw_usage_log_close(past->log);
    llmgw_books_destroy(past->books);
    free(past);
}


static int
past_step_state(llmgw_past_t *past)
{
    int          rc;
    const char  *why;

    rc = llmgw_books_state(past->books, past->text, past->len, &past->at,
                           LLMGW_USAGE_LOG_STEP_LINES, &why);

    if (rc == -1) {
        past_refuse(past, why, 0);
    }

    if (rc != 1) {
        free(past->text);
        past->text = NULL;
    }

    return 1;
}


/*
 * Adds a file of the log, unless it is known or has no record that counts.  -1:
 * no memory.
 */
static int
past_found(llmgw_past_t *past, const char *path)
{
    uint32_t      i;
    struct stat   st;
    past_file_t  *file;

    if (stat(path, &st) == -1 || !S_ISREG(st.st_mode)
        || st.st_mtime < past->since)
    {
        return 0;
    }

    for (i = 0; i < past->nfound; i++) {
        if (past->found[i].inode == st.st_ino
            && past->found[i].device == st.st_dev)
        {
            return 0;
        }
    }

    if (past->nfound == LLMGW_PAST_FILES) {

        if (!past->is_full) {
            past->is_full = 1;
            past_trouble(past, path, "the log has more files than are read", 0);
        }

        return 0;
    }

    if (past->found == NULL) {
        past->found = calloc(LLMGW_PAST_FILES, sizeof(past_file_t));
    }

    if (past->found == NULL) {
        return -1;
    }

    file = &past->found[past->nfound];
    *file = (past_file_t) { st.st_dev, st.st_ino, strdup(path) };
    past->nfound += file->path != NULL;

    return file->path ? 0 : -1;
}


/*
 * Looks for files of the log.  1: some have to be read; 0: none; -1: no memory.
 */
static int
past_look(llmgw_past_t *past)
{
    int             rc;
    DIR            *dir;
    char            path[PAST_PATH_BYTES];
    size_t          len;
    const char     *base;
    struct dirent  *entry;

    base = strrchr(past->files.log, '/');
    base = base ? base + 1 : past->files.log;
    len = (size_t) (base - past->files.log);
    snprintf(path, sizeof(path), "%.*s.", (int) len, past->files.log);

    dir = opendir(path);

    if (dir == NULL) {
        past_trouble(past, path, "the log's folder cannot be read", errno);
        return 0;
    }

    for (rc = 0; rc == 0 && (entry = readdir(dir)) != NULL; ) {

        if (strncmp(entry->d_name, base, strlen(base)) == 0) {
            snprintf(path, sizeof(path), "%.*s%s", (int) len, past->files.log,
                     entry->d_name);
            rc = past_found(past, path);
        }
    }

    (void) closedir(dir);

    return rc == -1 ? -1 : past->next < past->nfound;
}


static int
past_is_at(const past_file_t *file)
{
    struct stat  st;

    return stat(file->path, &st) == 0 && st.st_ino == file->inode
           && st.st_dev == file->device;
}


/*
 * Opens the next file that was found.  One that was renamed meanwhile is
 * forgotten, so that it is found again by its new name.
 */
static void
past_open_log(llmgw_past_t *past)
{
    int           error;
    past_file_t  *file = &past->found[past->next];

    past->log = llmgw_usage_log_open(file->path);
    error = errno;

    if (!past_is_at(file)) {
        file->inode = 0;
        llmgw_usage_log_close(past->log);
        past->log = NULL;

    } else if (past->log == NULL) {
        past_trouble(past, file->path, "it cannot be read", error);
    }

    if (past->log == NULL) {
        past->next++;
        return;
    }

    past->counts.files++;
}


static int
past_on_record(void *data, const llmgw_usage_source_t *source,
    const llmgw_usage_t *usage)
{
    llmgw_past_t  *past = data;

    past->counts.records++;
    past->is_out = llmgw_books_record(past->books, source, usage) != 0;

    return past->is_out ? -1 : 0;
}


static int
past_step_log(llmgw_past_t *past)
{
    int  rc;

    rc = llmgw_usage_log_step(past->log, LLMGW_USAGE_LOG_STEP_LINES,
                              past_on_record, past);

    if (rc == 1) {
        return 1;
    }

    if (rc == -1 && !past->is_out) {
        past_trouble(past, past->found[past->next].path,
                     "it cannot be read to its end", 0);
    }

    llmgw_usage_log_close(past->log);
    past->log = NULL;
    past->next++;

    return past->is_out ? -1 : 1;
}


int
llmgw_past_step(llmgw_past_t *past)
{
    if (past->text != NULL) {
        return past_step_state(past);
    }

    if (past->log != NULL) {
        return past_step_log(past);
    }

    if (past->next < past->nfound) {
        past_open_log(past);
        return 1;
    }

    return past->files.log != NULL ? past_look(past) : 0;
}


const llmgw_books_t *
llmgw_past_books(const llmgw_past_t *past)
{
    return past->books;
}


const llmgw_past_counts_t *
llmgw_past_counts(const llmgw_past_t *past)
{
    return &past->counts;
}
