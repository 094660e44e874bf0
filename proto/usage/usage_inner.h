
/*
 * Writes texts alike in records and in the state, since names are the same
 * there.
 */

#ifndef LLMGW_USAGE_INNER_H
#define LLMGW_USAGE_INNER_H

#include <stddef.h>


/*
 * Appends the text of a field that has room for `size` bytes, without quotes,
 * at most two bytes for each one.  Returns the end.  What is not UTF-8 and
 * control characters become '?'.
 */
char *usage_escape(char *p, const char *text, size_t size);

#endif /* LLMGW_USAGE_INNER_H */
