
/* The key file.  keys_file.h says how it is changed. */

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <time.h>
#include <unistd.h>

#include "common/os/atomic_file.h"
#include "ctl/files/keys_file.h"


/* The group of a new file: nginx's workers run in it in Debian's package. */
#define NEW_GROUP  "www-data"
#define NEW_MODE   0640


static int
file_fail(const char *path, const char *what)
{
    fprintf(stderr, "llmgwctl: \"%s\": %s\n", path, what);

    return -1;
}


/* The file to which the path's links lead; for a new file the path itself. */
static char *
file_resolve(const char *path, int is_new)
{
    char  *real;

    real = realpath(path, NULL);

    return real == NULL && errno == ENOENT && is_new ? strdup(path) : real;
}


/*
 * Opens and locks the file.  Another llmgwctl may have replaced it while this
 * one waited for the lock; then this is repeated with the new file.
 */
static int
file_lock(keys_file_t *file)
{
    struct stat  now;

    for ( ;; ) {
        file->fd = open(file->path, O_RDONLY|O_CLOEXEC);

        if (file->fd == -1) {
            return -1;
        }

        if (flock(file->fd, LOCK_EX) != 0) {
            return -1;
        }

        if (fstat(file->fd, &file->st) == 0 && stat(file->path, &now) == 0
            && now.st_ino == file->st.st_ino && now.st_dev == file->st.st_dev)
        {
            return 0;
        }

        close(file->fd);
    }
}


static int
file_read(keys_file_t *file)
{
    ssize_t  n;

    if (!S_ISREG(file->st.st_mode)) {
        return file_fail(file->path, "it is not a regular file");
    }

    if (file->st.st_size > LLMGW_KEY_FILE_MAX) {
        return file_fail(file->path, "it is larger than 16 MB");
    }

    file->text = malloc((size_t) file->st.st_size + 1);

    if (file->text == NULL) {
        return file_fail(file->path, strerror(errno));
    }

    while (file->len < (size_t) file->st.st_size) {
        n = read(file->fd, file->text + file->len,
                 (size_t) file->st.st_size - file->len);

        if (n < 0) {
            return file_fail(file->path, strerror(errno));
        }

        if (n == 0) {
            break;                      /* the file was made shorter */
        }

        file->len += (size_t) n;
    }

    file->text[file->len] = '\0';

    return 0;
}


int
keys_file_open(keys_file_t *file, const char *path, int to_change, int is_new)
{
    int  rc;

    memset(file, 0, sizeof(*file));
    file->fd = -1;
    file->path = file_resolve(path, is_new);

    if (file->path == NULL) {
        return file_fail(path, strerror(errno));
    }

    if (to_change) {
        rc = file_lock(file);

    } else {
        file->fd = open(file->path, O_RDONLY|O_CLOEXEC);
        rc = file->fd == -1 ? -1 : fstat(file->fd, &file->st);
    }

    if (rc == 0) {
        rc = file_read(file);

    } else if (file->fd == -1 && errno == ENOENT && is_new) {
        file->st.st_mode = NEW_MODE;
        file->text = strdup("");
        rc = file->text ? 0 : file_fail(path, strerror(errno));

    } else {
        rc = file_fail(path, strerror(errno));
    }

    if (rc != 0) {
        keys_file_done(file);
    }

    return rc;
}


void
keys_file_done(keys_file_t *file)
{
    if (file->fd != -1) {
        (void) close(file->fd);         /* this unlocks it */
        file->fd = -1;
    }

    free(file->path);
    free(file->text);
    file->path = file->text = NULL;
}


llmgw_keys_t *
keys_file_parse(const char *text, size_t len,
    void (*on_error)(const llmgw_keys_error_t *error, void *data), void *data)
{
    char                *copy;
    llmgw_keys_t        *keys;
    llmgw_keys_rc_t      rc;
    llmgw_keys_error_t   error;

    copy = malloc(len + 1);
    keys = NULL;

    if (copy != NULL) {
        memcpy(copy, text, len);
        keys = llmgw_keys_create(copy, len);
    }

    if (keys == NULL) {
        free(copy);
        fprintf(stderr, "llmgwctl: out of memory\n");
        return NULL;
    }

    do {
        rc = llmgw_keys_step(keys, LLMGW_KEYS_STEP_LINES, &error);

        if (rc == LLMGW_KEYS_ERROR) {
            on_error(&error, data);
        }
    } while (rc == LLMGW_KEYS_MORE || rc == LLMGW_KEYS_ERROR);

    if (rc == LLMGW_KEYS_ENOMEM) {
        llmgw_keys_destroy(keys);
        fprintf(stderr, "llmgwctl: out of memory\n");
        return NULL;
    }

    return keys;
}


static void
file_refuse(const llmgw_keys_error_t *error, void *data)
{
    int  *errors = data;

    if ((*errors)++ > 0) {
        return;
    }

    fprintf(stderr, "llmgwctl: nothing was changed, because nginx would refuse"
            " the new file");

    if (error->line > 0) {
        fprintf(stderr, ", line %u", error->line);
    }

    fprintf(stderr, ": %s\n", error->text);
}


/*
 * Sets owner and mode: an old file keeps its own, a new file gets the owner and
 * mode that nginx needs.
 */
static int
file_own(const keys_file_t *file, int fd)
{
    struct group  *group;

    if (file->fd != -1) {
        return fchown(fd, file->st.st_uid, file->st.st_gid) == 0
               && fchmod(fd, file->st.st_mode & 07777) == 0 ? 0 : -1;
    }

    group = geteuid() == 0 ? getgrnam(NEW_GROUP) : NULL;

    return (group == NULL || fchown(fd, (uid_t) -1, group->gr_gid) == 0)
           && fchmod(fd, NEW_MODE) == 0 ? 0 : -1;
}


/*
 * Puts the file in its place.  A new file has no lock: if another llmgwctl has
 * made it meanwhile, this one fails.
 */
static int
file_name(const keys_file_t *file, const char *fresh)
{
    if (file->fd != -1) {
        return rename(fresh, file->path);
    }

    return link(fresh, file->path) == 0 ? unlink(fresh) : -1;
}


int
keys_file_write(const keys_file_t *file, const char *text, size_t len)
{
    int            fd, errors, rc;
    char           fresh[PATH_MAX];
    llmgw_keys_t  *keys;

    errors = 0;
    keys = keys_file_parse(text, len, file_refuse, &errors);

    if (keys == NULL || errors > 0) {
        llmgw_keys_destroy(keys);
        return -1;
    }

    llmgw_keys_destroy(keys);

    if (len > LLMGW_KEY_FILE_MAX) {
        return file_fail(file->path, "it would be larger than 16 MB");
    }

    if (snprintf(fresh, sizeof(fresh), "%s.XXXXXX", file->path)
        >= (int) sizeof(fresh))
    {
        return file_fail(file->path, strerror(ENAMETOOLONG));
    }

    fd = mkostemp(fresh, O_CLOEXEC);

    if (fd == -1) {
        return file_fail(file->path, strerror(errno));
    }

    rc = file_own(file, fd) == 0 && atomic_file_put(fd, text, len) == 0
         && file_name(file, fresh) == 0 ? 0 : -1;

    if (rc != 0) {
        file_fail(file->path, strerror(errno));
        (void) unlink(fresh);

    } else {
        atomic_file_sync_dir(file->path);
    }

    (void) close(fd);

    return rc;
}


static llmgw_key_text_t
file_word(const char **at, const char *end)
{
    llmgw_key_text_t  word;

    while (*at < end && strchr(" \t\r", **at) != NULL) {
        (*at)++;
    }

    word.text = *at;

    while (*at < end && strchr(" \t\r", **at) == NULL) {
        (*at)++;
    }

    word.len = (uint32_t) (*at - word.text);

    return word;
}


/* Where a word begins with '#'; or the end. */
static const char *
file_comment(const char *at, const char *end)
{
    llmgw_key_text_t  word;

    while (at < end) {
        word = file_word(&at, end);

        if (word.len > 0 && word.text[0] == '#') {
            return word.text;
        }
    }

    return end;
}


int
keys_file_next(const keys_file_t *file, const char **at,
    keys_file_line_t *line)
{
    const char  *p, *end, *newline, *comment;

    p = *at ? *at : file->text;
    end = file->text + file->len;

    if (p == end) {
        return 0;
    }

    newline = memchr(p, '\n', (size_t) (end - p));
    end = newline ? newline : end;
    *at = newline ? newline + 1 : end;

    memset(line, 0, sizeof(*line));
    line->line = (llmgw_key_text_t) { p, (uint32_t) (end - p) };
    comment = file_comment(p, end);

    if (comment < end) {
        line->comment = (llmgw_key_text_t) { comment,
                                             (uint32_t) (end - comment) };
    }

    line->name = file_word(&p, comment);
    line->hash = file_word(&p, comment);

    while (p < comment && strchr(" \t\r", *p) != NULL) {
        p++;
    }

    while (comment > p && strchr(" \t\r", comment[-1]) != NULL) {
        comment--;
    }

    line->rest = (llmgw_key_text_t) { p, (uint32_t) (comment - p) };

    if (line->name.len == 0 || line->hash.len == 0) {
        line->name.text = NULL;
    }

    return 1;
}


uint64_t
keys_file_now_ms(void)
{
    struct timespec  now;

    (void) clock_gettime(CLOCK_REALTIME, &now);

    return (uint64_t) now.tv_sec * 1000;
}
