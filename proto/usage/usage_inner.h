
/* How texts are written, in records as in the state: names are the same. */

#ifndef LLMGW_USAGE_INNER_H
#define LLMGW_USAGE_INNER_H

#include <stddef.h>


/*
 * Appends the text of a field that has room for `size` bytes, without quotes,
 * and returns its end: no more than two bytes for one.  What is not UTF-8 and
 * control characters are '?'.
 */
char *usage_escape(char *p, const char *text, size_t size);

#endif /* LLMGW_USAGE_INNER_H */
