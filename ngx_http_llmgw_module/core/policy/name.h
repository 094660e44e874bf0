
/*
 * Names of policies, scorers, rules and orders, as people write them: words
 * joined by '-', or by '_' as in nginx's directives.
 */

#ifndef LLMGW_NAME_H
#define LLMGW_NAME_H

#include <stddef.h>


/* name: with '-', ended by a NUL */
static inline int
llmgw_name_is(const char *name, const char *text, size_t len)
{
    size_t  i;

    for (i = 0; i < len && name[i] != '\0'; i++) {
        if (text[i] != name[i] && !(text[i] == '_' && name[i] == '-')) {
            return 0;
        }
    }

    return i == len && name[i] == '\0';
}


/* The position of a name in a table of n; -1: it is not there. */
static inline int
llmgw_name_find(const char *const *names, size_t n, const char *text,
    size_t len)
{
    size_t  i;

    for (i = 0; i < n; i++) {
        if (llmgw_name_is(names[i], text, len)) {
            return (int) i;
        }
    }

    return -1;
}

#endif /* LLMGW_NAME_H */
