
/* Growing memory, and JSON that is written into it. */

#ifndef BUF_H
#define BUF_H

#include <stddef.h>
#include <stdint.h>

#include "proto/json/walk.h"


/* A buffer whose write has failed stays failed, and further writes to it do
   nothing. */
typedef struct {
    char    *data;
    size_t   len;
    size_t   size;
    int      failed;
} buf_t;


void buf_add(buf_t *buf, const void *data, size_t len);
void buf_text(buf_t *buf, const char *text);

/* Appends the value as its source writes it. */
void buf_value(buf_t *buf, llmgw_json_t value);

void buf_number(buf_t *buf, int64_t number);

/* Appends a JSON string, with quotes and escapes.  Text that is not UTF-8
   fails. */
void buf_string(buf_t *buf, const void *text, size_t len);

/* Appends a JSON string's text, without quotes and escapes.  A value that is no
   string adds nothing. */
void buf_unescape(buf_t *buf, llmgw_json_t value);

void buf_free(buf_t *buf);

#endif /* BUF_H */
