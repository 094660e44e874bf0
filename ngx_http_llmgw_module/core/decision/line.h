
/*
 * Writes a line of JSON into memory that may be too small: what does not fit is
 * counted and not written, so a caller learns how much it takes.  Members come
 * in the order of the calls; a key is NULL inside an array and at the top.
 */

#ifndef LLMGW_DECISION_LINE_H
#define LLMGW_DECISION_LINE_H

#include <stddef.h>
#include <stdint.h>


typedef struct {
    char    *start;
    size_t   size;
    size_t   len;               /* that all of it takes; above size, it is cut
                                   and of no use */
    char     last;              /* byte of the line */
} llmgw_line_t;

typedef struct {
    const char  *text;          /* UTF-8 */
    size_t       len;
} llmgw_line_text_t;


void llmgw_line_init(llmgw_line_t *out, char *memory, size_t size);

/* close: '}' for what begins with '{', ']' for '['. */
void llmgw_line_open(llmgw_line_t *out, const char *key, char open);
void llmgw_line_close(llmgw_line_t *out, char close);

void llmgw_line_int(llmgw_line_t *out, const char *key, int64_t value);
void llmgw_line_bool(llmgw_line_t *out, const char *key, int value);

/* 17 digits, which read back as the same double; null if it is not finite. */
void llmgw_line_double(llmgw_line_t *out, const char *key, double value);

/* 64 bits do not fit into a number of JSON: a string of 16 digits. */
void llmgw_line_hex(llmgw_line_t *out, const char *key, uint64_t value);

void llmgw_line_text(llmgw_line_t *out, const char *key,
    llmgw_line_text_t text);

/* As llmgw_line_text(), for a string that ends with a NUL. */
void llmgw_line_word(llmgw_line_t *out, const char *key,
    const char *word);

/* Ends the line. */
void llmgw_line_end(llmgw_line_t *out);

#endif /* LLMGW_DECISION_LINE_H */
