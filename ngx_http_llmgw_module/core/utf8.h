
/*
 * UTF-8 as RFC 3629 has it: no overlong forms, no surrogates, nothing above
 * U+10FFFF.
 */

#ifndef LLMGW_UTF8_H
#define LLMGW_UTF8_H

#include <stddef.h>


int llmgw_utf8_is_valid(const void *text, size_t len);

#endif /* LLMGW_UTF8_H */
