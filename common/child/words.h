
/*
 * The words of a command, and what stands in them for something that is known
 * only when it is started, as "{version}" or "{port}".
 */

#ifndef WORDS_H
#define WORDS_H


#define WORDS_VERSION  "{version}"

#define WORDS_MAX          1024     /* engines have many options */
#define WORDS_ERROR_BYTES  128

/*
 * Splits at blanks.  In '...' all stands for itself; in "..." and outside, a
 * backslash takes the next character's meaning away.  No shell: no variables,
 * patterns or redirections.  NULL and a reason: not a command.
 */
char **words_split(const char *text, char error[WORDS_ERROR_BYTES]);

/* Does any word contain this mark? */
int words_have(char *const *command, const char *mark);

/* A copy with the value for each mark; NULL: out of memory. */
char **words_fill(char *const *command, const char *mark, const char *value);

/* Of words_split() and words_fill(); NULL: none. */
void words_destroy(char **words);

#endif /* WORDS_H */
