
/*
 * The words of a replica's command, with its version in place of "{version}".
 */

#ifndef CHILD_WORDS_H
#define CHILD_WORDS_H


#define CHILD_WORDS_VERSION  "{version}"

/* Does any word contain "{version}"? */
int child_words_want_version(char *const *command);

/* As posix_spawn() takes them; NULL: out of memory. */
char **child_words_create(char *const *command, const char *version);
void child_words_destroy(char **words);

#endif /* CHILD_WORDS_H */
