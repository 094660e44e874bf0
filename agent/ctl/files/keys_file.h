
/*
 * The key file as it is read and changed.
 *
 * A change writes a whole new file beside the old one, with its owner and mode,
 * syncs it, and renames it over the old one: a reader at any moment reads one
 * of the two.  A lock (flock) on the old file keeps a second llmgwctl out; when
 * that gets the lock, it reads the new file.  A path that is a symbolic link
 * stays one: the file that it points to is replaced.
 *
 * A new text that nginx would refuse is not written.
 */

#ifndef CTL_KEYS_FILE_H
#define CTL_KEYS_FILE_H

#include <sys/stat.h>

#include "proto/keys/keys.h"


typedef struct {
    char         *path;                 /* after following symbolic links */
    int           fd;                   /* locked; -1: only read, or a new
                                           file */
    struct stat   st;
    char         *text;                 /* with a NUL at its end */
    size_t        len;
} keys_file_t;

/* A line of the file, as it stands there. */
typedef struct {
    llmgw_key_text_t  line;             /* without its newline */
    llmgw_key_text_t  name;             /* NULL: the line has no key or
                                           identity */
    llmgw_key_text_t  hash;             /* or "-" */
    llmgw_key_text_t  rest;             /* after the hash, without a comment */
    llmgw_key_text_t  comment;          /* NULL: none */
} keys_file_line_t;


/*
 * Reads the file into memory, until done().  0; -1: an error was reported.
 * to_change: the file is locked.  is_new: a file that does not exist counts as
 * empty, and is made by write().
 */
int keys_file_open(keys_file_t *file, const char *path, int to_change,
    int is_new);
void keys_file_done(keys_file_t *file);

/* Replaces the file.  0; -1: an error was reported. */
int keys_file_write(const keys_file_t *file, const char *text, size_t len);

/*
 * Reads a text as nginx does; on_error is called for each error.  Returns the
 * keys; NULL: no memory, which was reported.
 */
llmgw_keys_t *keys_file_parse(const char *text, size_t len,
    void (*on_error)(const llmgw_keys_error_t *error, void *data), void *data);

/* Takes the next line from *at on; 0: there is none. */
int keys_file_next(const keys_file_t *file, const char **at,
    keys_file_line_t *line);

/* The present time in whole seconds, as the file has them. */
uint64_t keys_file_now_ms(void);

#endif /* CTL_KEYS_FILE_H */
