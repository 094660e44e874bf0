
/*
 * Writes JSON, by appending to memory of the caller's that is large enough:
 * for each function there is a limit of what it writes.  Each returns the end
 * of what it wrote.
 */

#ifndef LLMGW_JSON_H
#define LLMGW_JSON_H

#include <stddef.h>
#include <stdint.h>


/* A number's digits and sign. */
#define LLMGW_JSON_NUMBER_BYTES  20

/* A double's sign, six digits and what goes with them. */
#define LLMGW_JSON_REAL_BYTES  24

/* No text is longer when escaped: \u001f for one byte, and two quotes. */
#define LLMGW_JSON_STRING_BYTES(len)  (6 * (size_t) (len) + 2)


/* Appends a constant as it is. */
#define llmgw_json_literal(p, text)                                           \
    llmgw_json_raw(p, text, sizeof(text) - 1)

/* Appends bytes that are JSON. */
char *llmgw_json_raw(char *p, const void *json, size_t len);

/* Appends a string with its quotes; the text must be UTF-8. */
char *llmgw_json_string(char *p, const void *text, size_t len);

/* The exact number of bytes that llmgw_json_string() writes. */
size_t llmgw_json_string_bytes(const void *text, size_t len);

/* The same without quotes, for a string that is written in pieces. */
char *llmgw_json_escape(char *p, const void *text, size_t len);
size_t llmgw_json_escape_bytes(const void *text, size_t len);

char *llmgw_json_number(char *p, int64_t number);

/* A finite number, to six digits; with '.' or 'e' even if it is whole. */
char *llmgw_json_real(char *p, double number);

#endif /* LLMGW_JSON_H */
