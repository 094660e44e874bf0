
/* A line of the key file, for the commands that list and change keys. */

#ifndef CTL_KEYS_LINE_H
#define CTL_KEYS_LINE_H

#include <string.h>

#include "ctl/files/keys_file.h"


/* A key is spoken of by the first digits of its hash. */
#define KEY_ID_CHARS  8


static inline int
keys_text_is(llmgw_key_text_t text, const char *word)
{
    return text.len == strlen(word) && memcmp(text.text, word, text.len) == 0;
}


/* The id of a line's key; of an identity "-". */
void keys_line_id(const keys_file_line_t *line, char id[KEY_ID_CHARS + 1]);

/*
 * The next word after a line's hash, where *at is 0 at first; 0: there is
 * none.
 */
int keys_line_word(const keys_file_line_t *line, uint32_t *at,
    llmgw_key_text_t *word);

/* 1 and the word that begins with those characters; 0: none does. */
int keys_line_find(const keys_file_line_t *line, const char *begins,
    llmgw_key_text_t *word);

/* Until when its key is valid, since 1970; LLMGW_KEY_FOREVER. */
uint64_t keys_line_until_ms(const keys_file_line_t *line);

#endif /* CTL_KEYS_LINE_H */
