
#include <stdlib.h>
#include <string.h>

#include "supervise/child_words.h"


int
child_words_want_version(char *const *command)
{
    for ( /* void */ ; *command != NULL; command++) {
        if (strstr(*command, CHILD_WORDS_VERSION) != NULL) {
            return 1;
        }
    }

    return 0;
}


/* Bytes of the word when it is filled, without the NUL. */
static size_t
child_words_bytes(const char *word, const char *version)
{
    size_t       bytes;
    const char  *found;

    bytes = strlen(word);

    while ((found = strstr(word, CHILD_WORDS_VERSION)) != NULL) {
        bytes += strlen(version) - strlen(CHILD_WORDS_VERSION);
        word = found + strlen(CHILD_WORDS_VERSION);
    }

    return bytes;
}


static char *
child_words_fill(const char *word, const char *version)
{
    char        *filled, *to;
    const char  *found;

    filled = malloc(child_words_bytes(word, version) + 1);
    if (filled == NULL) {
        return NULL;
    }

    to = filled;

    while ((found = strstr(word, CHILD_WORDS_VERSION)) != NULL) {
        memcpy(to, word, found - word);
        to = stpcpy(to + (found - word), version);
        word = found + strlen(CHILD_WORDS_VERSION);
    }

    strcpy(to, word);

    return filled;
}


char **
child_words_create(char *const *command, const char *version)
{
    size_t   i, n;
    char   **words;

    for (n = 0; command[n] != NULL; n++) { /* void */ }

    words = calloc(n + 1, sizeof(char *));
    if (words == NULL) {
        return NULL;
    }

    for (i = 0; i < n; i++) {
        words[i] = child_words_fill(command[i], version);

        if (words[i] == NULL) {
            child_words_destroy(words);
            return NULL;
        }
    }

    return words;
}


void
child_words_destroy(char **words)
{
    size_t  i;

    for (i = 0; words[i] != NULL; i++) {
        free(words[i]);
    }

    free(words);
}
