
/*
 * Models in several files: "NAME-00001-of-00004.gguf" is the first of 4.
 */

#ifndef PARTS_H
#define PARTS_H

#include <stddef.h>


/* Number of files of the model whose first file this is; 1: it is one file. */
size_t parts_count(const char *file);

/* The paths of all its files, to be freed by parts_free().  NULL: out of
   memory. */
char **parts_list(const char *file, size_t *n);
void parts_free(char **parts, size_t n);

#endif /* PARTS_H */
