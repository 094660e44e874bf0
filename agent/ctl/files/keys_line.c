
/* Words of a line of the key file. */

#include <string.h>

#include "ctl/files/keys_line.h"
#include "proto/date.h"


void
keys_line_id(const keys_file_line_t *line, char id[KEY_ID_CHARS + 1])
{
    uint32_t  i;

    for (i = 0; i < KEY_ID_CHARS && i < line->hash.len; i++) {
        id[i] = line->hash.text[i];

        if (id[i] >= 'A' && id[i] <= 'F') {
            id[i] += 'a' - 'A';
        }
    }

    id[i] = '\0';
}


int
keys_line_word(const keys_file_line_t *line, uint32_t *at,
    llmgw_key_text_t *word)
{
    const char  *p, *end, *begin;

    p = line->rest.text + *at;
    end = line->rest.text + line->rest.len;

    while (p < end && strchr(" \t\r", *p) != NULL) {
        p++;
    }

    for (begin = p; p < end && strchr(" \t\r", *p) == NULL; p++) {
        /* void */
    }

    *word = (llmgw_key_text_t) { begin, (uint32_t) (p - begin) };
    *at = (uint32_t) (p - line->rest.text);

    return word->len > 0;
}


int
keys_line_find(const keys_file_line_t *line, const char *begins,
    llmgw_key_text_t *word)
{
    uint32_t  at;

    for (at = 0; keys_line_word(line, &at, word); ) {
        if (word->len >= strlen(begins)
            && memcmp(word->text, begins, strlen(begins)) == 0)
        {
            return 1;
        }
    }

    return 0;
}


uint64_t
keys_line_until_ms(const keys_file_line_t *line)
{
    uint32_t                  i, len;
    uint64_t                  ms, least;
    llmgw_key_text_t          word;
    static const char *const  names[] = { "until=", "expires=" };

    least = LLMGW_KEY_FOREVER;

    for (i = 0; i < 2; i++) {
        len = (uint32_t) strlen(names[i]);

        if (keys_line_find(line, names[i], &word)
            && llmgw_key_date(word.text + len, word.len - len, &ms) == 0
            && ms < least)
        {
            least = ms;
        }
    }

    return least;
}
