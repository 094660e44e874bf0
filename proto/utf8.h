
/*
 * UTF-8 as RFC 3629 has it: no overlong forms, no surrogates, nothing above
 * U+10FFFF.
 */

#ifndef LLMGW_UTF8_H
#define LLMGW_UTF8_H

#include <stddef.h>


int llmgw_utf8_is_valid(const void *text, size_t len);

/*
 * The number of bytes before the first one that is not UTF-8; len if all are.
 */
size_t llmgw_utf8_prefix(const void *text, size_t len);

/*
 * The number of bytes of the first character if it may stand in a line of a
 * log.  0: it is a control character (C0, DEL, or C1: U+009B is what ESC [ is
 * to a terminal), or no character at all.
 */
size_t llmgw_utf8_shown(const void *text, size_t len);

#endif /* LLMGW_UTF8_H */
