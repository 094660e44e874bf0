
/* Growing memory, and JSON that is written into it. */

#ifndef BUF_H
#define BUF_H

#include <stddef.h>
#include <stdint.h>

#include "proto/json/walk.h"


/* A failed one takes nothing more and stays failed. */
typedef struct {
    char    *data;
    size_t   len;
    size_t   size;
    int      failed;
} buf_t;


void buf_add(buf_t *buf, const void *data, size_t len);
void buf_text(buf_t *buf, const char *text);

/* As it is written. */
void buf_value(buf_t *buf, llmgw_json_t value);

void buf_number(buf_t *buf, int64_t number);

/* With quotes and escapes; text that is no UTF-8 fails. */
void buf_string(buf_t *buf, const void *text, size_t len);

/* A string's text, without quotes and escapes; of no string nothing. */
void buf_unescape(buf_t *buf, llmgw_json_t value);

void buf_free(buf_t *buf);

#endif /* BUF_H */
