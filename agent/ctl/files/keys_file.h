
/*
 * The key file as it is read and changed.
 *
 * A change is a whole new file beside the old one, with its owner and mode,
 * that is written, synced, and renamed over it: a reader at any moment reads
 * one of the two.  A lock (flock) on the old file keeps a second llmgwctl out;
 * one that waited for it reads the new file.  A path that is a symbolic link
 * stays one: what it points to is replaced.
 *
 * A new text that nginx would refuse is not written.
 */

#ifndef CTL_KEYS_FILE_H
#define CTL_KEYS_FILE_H

#include <sys/stat.h>

#include "proto/keys/keys.h"


typedef struct {
    char         *path;                 /* of what the links point to */
    int           fd;                   /* locked; -1: read only, or new */
    struct stat   st;
    char         *text;                 /* with a NUL after it */
    size_t        len;
} keys_file_t;

/* A line of it, as it stands there. */
typedef struct {
    llmgw_key_text_t  line;             /* without its newline */
    llmgw_key_text_t  name;             /* NULL: no key's, no identity's */
    llmgw_key_text_t  hash;             /* or "-" */
    llmgw_key_text_t  rest;             /* after that, without a comment */
    llmgw_key_text_t  comment;          /* NULL: none */
} keys_file_line_t;


/*
 * 0, and what it holds until done(); -1: it was said on standard error why not.
 * to_change: it is locked.  is_new: where it does not exist it is empty, and
 * made by write().
 */
int keys_file_open(keys_file_t *file, const char *path, int to_change,
    int is_new);
void keys_file_done(keys_file_t *file);

/* Replaces it.  0; -1: it was said on standard error why not. */
int keys_file_write(const keys_file_t *file, const char *text, size_t len);

/*
 * Reads a text as nginx does; on_error is called for each error.  Returns the
 * keys; NULL: no memory, which was said.
 */
llmgw_keys_t *keys_file_parse(const char *text, size_t len,
    void (*on_error)(const llmgw_keys_error_t *error, void *data), void *data);

/* The next line from *at on; 0: there is none. */
int keys_file_next(const keys_file_t *file, const char **at,
    keys_file_line_t *line);

/* Of whole seconds, as the file has them. */
uint64_t keys_file_now_ms(void);

#endif /* CTL_KEYS_FILE_H */
