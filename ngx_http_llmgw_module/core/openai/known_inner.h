
/*
 * What known.c (the table of members) and known_read.c (what the values of some
 * of them say) share.
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

#define CHAT         (1u << LLMGATEWAY__API__API_CHAT)
#define COMPLETIONS  (1u << LLMGATEWAY__API__API_COMPLETIONS)
#define EMBEDDINGS   (1u << LLMGATEWAY__API__API_EMBEDDINGS)
#define RESPONSES    (1u << LLMGATEWAY__API__API_RESPONSES)
#define MESSAGES     (1u << LLMGATEWAY__API__API_MESSAGES)

#define F(feature)   LLMGATEWAY__FEATURE__FEATURE_ ## feature


typedef struct {
    llmgw_openai_body_t          *body;
    llmgw_openai_error_t         *error;
    const llmgw_openai_member_t  *member;   /* the one that is read */
    uint32_t                      max_completion_tokens;
    unsigned                      no_tools:1;       /* tool_choice */
    unsigned                      no_functions:1;   /* function_call */
    unsigned                      has_embeds:1;     /* prompt_embeds */
} known_t;

/* Reads a value of a type that the member may have.  -1: an error. */
typedef int (*known_read_pt)(known_t *known, llmgw_json_t value);


int known_choices(known_t *known, llmgw_json_t value);
int known_embeds(known_t *known, llmgw_json_t value);
int known_format(known_t *known, llmgw_json_t value);
int known_function_call(known_t *known, llmgw_json_t value);
int known_max_completion(known_t *known, llmgw_json_t value);
int known_max_tokens(known_t *known, llmgw_json_t value);
int known_messages(known_t *known, llmgw_json_t value);
int known_model(known_t *known, llmgw_json_t value);
int known_n(known_t *known, llmgw_json_t value);
int known_prompt(known_t *known, llmgw_json_t value);
int known_stream(known_t *known, llmgw_json_t value);
int known_stream_options(known_t *known, llmgw_json_t value);
int known_tool_choice(known_t *known, llmgw_json_t value);

/* Set the error, and return -1; types == 0: an integer was expected. */
int known_missing(known_t *known, const char *path);
int known_type_error(known_t *known, const char *path, unsigned types,
    llmgw_json_t value);
int known_value_error(known_t *known, const char *path, const char *what);

#endif /* LLMGW_OPENAI_KNOWN_INNER_H */
