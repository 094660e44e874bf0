
/*
 * The words of a replica's command, with the version that it is to have put
 * where they say "{version}".
 */

#ifndef CHILD_WORDS_H
#define CHILD_WORDS_H


#define CHILD_WORDS_VERSION  "{version}"

/* Does any of them want to know it? */
int child_words_want_version(char *const *command);

/* As posix_spawn() takes them; NULL: out of memory. */
char **child_words_create(char *const *command, const char *version);
void child_words_destroy(char **words);

#endif /* CHILD_WORDS_H */
