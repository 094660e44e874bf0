
/* A line of the key file, for the commands that list and change keys. */

#ifndef CTL_KEYS_LINE_H
#define CTL_KEYS_LINE_H

#include <string.h>

#include "ctl/files/keys_file.h"


/* The number of digits of a hash that identify its key. */
#define KEY_ID_CHARS  8


static inline int
keys_text_is(llmgw_key_text_t text, const char *word)
{
    return text.len == strlen(word) && memcmp(text.text, word, text.len) == 0;
}


/* Writes the id of a line's key; for an identity "-". */
void keys_line_id(const keys_file_line_t *line, char id[KEY_ID_CHARS + 1]);

/*
 * Takes the next word after a line's hash; *at is 0 at first.  0: there is
 * none.
 */
int keys_line_word(const keys_file_line_t *line, uint32_t *at,
    llmgw_key_text_t *word);

/*
 * Finds the word that begins with these characters.  1 and the word; 0: there
 * is none.
 */
int keys_line_find(const keys_file_line_t *line, const char *begins,
    llmgw_key_text_t *word);

/*
 * The end of validity of a line's key, in ms since 1970, or LLMGW_KEY_FOREVER.
 */
uint64_t keys_line_until_ms(const keys_file_line_t *line);

#endif /* CTL_KEYS_LINE_H */
