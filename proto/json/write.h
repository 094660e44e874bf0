
/*
 * Writes JSON, by appending to the caller's memory, which must be large enough:
 * the limits below tell how much each function writes at most.  Each function
 * returns the end of what it wrote.
 */

#ifndef LLMGW_JSON_H
#define LLMGW_JSON_H

#include <stddef.h>
#include <stdint.h>


/* Most bytes of an integer: its digits and sign. */
#define LLMGW_JSON_NUMBER_BYTES  20

/* Most bytes of a double: its sign, six digits, point and exponent. */
#define LLMGW_JSON_REAL_BYTES  24

/* Most bytes of a string: \u001f for each byte, and two quotes. */
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

/* The same without quotes, for a string that is written piece by piece. */
char *llmgw_json_escape(char *p, const void *text, size_t len);
size_t llmgw_json_escape_bytes(const void *text, size_t len);

char *llmgw_json_number(char *p, int64_t number);

/*
 * Appends a finite number, to six digits; with '.' or 'e' even if it is whole.
 */
char *llmgw_json_real(char *p, double number);

#endif /* LLMGW_JSON_H */
