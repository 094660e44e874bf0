
/*
 * The words of a command, and marks in them, as "{version}" or "{port}", for
 * values that are only known when the command is started.
 */

#ifndef WORDS_H
#define WORDS_H


#define WORDS_VERSION  "{version}"

#define WORDS_MAX          1024     /* engines have many options */
#define WORDS_ERROR_BYTES  128

/*
 * Splits at blanks.  Within '...' every character stands for itself; within
 * "..." and outside of quotes, a backslash makes the next character stand for
 * itself.  There is no shell: no variables, patterns or redirections.  NULL and
 * a reason: not a command.
 */
char **words_split(const char *text, char error[WORDS_ERROR_BYTES]);

/* Whether any word contains this mark. */
int words_have(char *const *command, const char *mark);

/*
 * A copy of the words, with the value in place of each mark; NULL: out of
 * memory.
 */
char **words_fill(char *const *command, const char *mark, const char *value);

/* Frees the result of words_split() or words_fill(); words may be NULL. */
void words_destroy(char **words);

#endif /* WORDS_H */
