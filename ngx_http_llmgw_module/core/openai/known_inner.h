
/*
 * Shared by known.c (the table of members) and known_read.c (readers of some
 * values).
 */

#ifndef LLMGW_OPENAI_KNOWN_INNER_H
#define LLMGW_OPENAI_KNOWN_INNER_H

#include "core/openai/known.h"


/* Types that a value may have; null is the same as no value. */
#define STRING   (1u << LLMGW_JSON_STRING)
#define NUMBER   (1u << LLMGW_JSON_NUMBER)
#define BOOL     (1u << LLMGW_JSON_TRUE | 1u << LLMGW_JSON_FALSE)
#define ARRAY    (1u << LLMGW_JSON_ARRAY)
#define OBJECT   (1u << LLMGW_JSON_OBJECT)
#define ANY      (STRING | NUMBER | BOOL | ARRAY | OBJECT)
#define INTEGER  0                  /* only named in errors */

#define CHAT         (1u << LLMGATEWAY__API__API_CHAT)
#define COMPLETIONS  (1u << LLMGATEWAY__API__API_COMPLETIONS)
#define EMBEDDINGS   (1u << LLMGATEWAY__API__API_EMBEDDINGS)
#define RESPONSES    (1u << LLMGATEWAY__API__API_RESPONSES)
#define MESSAGES     (1u << LLMGATEWAY__API__API_MESSAGES)
#define PASS         (1u << LLMGATEWAY__API__API_PASS)
#define ALL          (~0u)

#define F(feature)   LLMGATEWAY__FEATURE__FEATURE_ ## feature

#define KNOWN_ROWS   64             /* at least as many as the table has */


typedef struct {
    llmgw_openai_body_t          *body;
    llmgw_openai_error_t         *error;
    const llmgw_openai_member_t  *last[KNOWN_ROWS]; /* by row; the last member
                                                       with a key counts */
} known_t;


/*
 * The value of a name in the table.  Of kind END: there is none, or it is null.
 */
llmgw_json_t known_value(const known_t *known, const char *name);

/* known_read.c: read the values that the gateway has to know.  -1: an error. */
int known_model(known_t *known);
int known_messages(known_t *known);
int known_prompt(known_t *known);
int known_stream(known_t *known);
int known_numbers(known_t *known);

/* Sets the error, and returns -1. */
int known_type_error(known_t *known, const char *path, unsigned types,
    llmgw_json_t value);

#endif /* LLMGW_OPENAI_KNOWN_INNER_H */
