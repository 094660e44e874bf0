
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/child/words.h"


int
words_have(char *const *command, const char *mark)
{
    for ( /* void */ ; *command != NULL; command++) {
        if (strstr(*command, mark) != NULL) {
            return 1;
        }
    }

    return 0;
}


/* The length of the word when it is filled, without the NUL. */
static size_t
words_bytes(const char *word, const char *mark, const char *value)
{
    size_t       bytes;
    const char  *found;

    bytes = strlen(word);

    while ((found = strstr(word, mark)) != NULL) {
        bytes += strlen(value) - strlen(mark);
        word = found + strlen(mark);
    }

    return bytes;
}


static char *
words_fill_one(const char *word, const char *mark, const char *value)
{
    char        *filled, *to;
    const char  *found;

    filled = malloc(words_bytes(word, mark, value) + 1);
    if (filled == NULL) {
        return NULL;
    }

    to = filled;

    while ((found = strstr(word, mark)) != NULL) {
        memcpy(to, word, found - word);
        to = stpcpy(to + (found - word), value);
        word = found + strlen(mark);
    }

    strcpy(to, word);

    return filled;
}


char **
words_fill(char *const *command, const char *mark, const char *value)
{
    size_t   i, n;
    char   **words;

    for (n = 0; command[n] != NULL; n++) { /* void */ }

    words = calloc(n + 1, sizeof(char *));
    if (words == NULL) {
        return NULL;
    }

    for (i = 0; i < n; i++) {
        words[i] = words_fill_one(command[i], mark, value);

        if (words[i] == NULL) {
            words_destroy(words);
            return NULL;
        }
    }

    return words;
}


/* Copies a word's characters to `to`.  Returns the place after the word; NULL:
   a quote or a backslash has no partner. */
static const char *
words_take(const char *text, char *to)
{
    char  quote;

    for (quote = '\0'; *text != '\0'; text++) {

        if (quote == '\0' && (*text == ' ' || *text == '\t')) {
            break;
        }

        if (*text == quote) {
            quote = '\0';

        } else if (quote == '\0' && (*text == '"' || *text == '\'')) {
            quote = *text;

        } else if (*text == '\\' && quote != '\'') {
            if (*++text == '\0') {
                return NULL;
            }

            *to++ = *text;

        } else {
            *to++ = *text;
        }
    }

    *to = '\0';

    return quote == '\0' ? text : NULL;
}


/* Splits the text into words.  0, or -1 and a reason. */
static int
words_split_into(char **words, const char *text, char error[WORDS_ERROR_BYTES])
{
    int  n;

    for (n = 0; *(text += strspn(text, " \t")) != '\0'; n++) {

        if (n == WORDS_MAX) {
            snprintf(error, WORDS_ERROR_BYTES, "more than %d words",
                     WORDS_MAX);
            return -1;
        }

        words[n] = malloc(strlen(text) + 1);

        if (words[n] == NULL) {
            snprintf(error, WORDS_ERROR_BYTES, "out of memory");
            return -1;
        }

        text = words_take(text, words[n]);

        if (text == NULL) {
            snprintf(error, WORDS_ERROR_BYTES, "a quote that does not end, or "
                     "a backslash at the end");
            return -1;
        }
    }

    if (n == 0) {
        snprintf(error, WORDS_ERROR_BYTES, "no words");
        return -1;
    }

    return 0;
}


char **
words_split(const char *text, char error[WORDS_ERROR_BYTES])
{
    char  **words;

    words = calloc(WORDS_MAX + 1, sizeof(char *));

    if (words == NULL) {
        snprintf(error, WORDS_ERROR_BYTES, "out of memory");
        return NULL;
    }

    if (words_split_into(words, text, error) != 0) {
        words_destroy(words);
        return NULL;
    }

    return words;
}


void
words_destroy(char **words)
{
    size_t  i;

    for (i = 0; words != NULL && words[i] != NULL; i++) {
        free(words[i]);
    }

    free(words);
}
