
/*
 * The body of a request of OpenAI's API: what the gateway has to know of it. It
 * is forwarded byte for byte, so the results are positions in it.
 *
 *     body.c          checks that it is JSON, and finds its members
 *     known.c         the types of those that we know, and what they ask for
 *     affinity_key.c  which replica it belongs to
 *     body_blocks.c   what of it a replica may have in its cache
 *     value.c         hashes of values, for these two
 *     prompt_text.c   its prompt, for replicas that read only text
 *     form.c          a body that is a form with a file, in place of JSON
 *
 * Members that the gateway does not know are passed on unread.  If a key comes
 * twice the last value counts, as in engines; `null` is the same as no value.
 * No function recurses, and all take time in proportion to the body.
 */

#ifndef LLMGW_OPENAI_BODY_H
#define LLMGW_OPENAI_BODY_H

#include <stddef.h>
#include <stdint.h>

#include "core/openai/error.h"
#include "proto/json/text.h"
#include "llmgateway.pb-c.h"


/*
 * The largest body that fits a replica's message, with room for its other
 * fields.
 */
#define LLMGW_OPENAI_MAX_BYTES    (63u * 1024 * 1024)

/* Top-level keys: the most that any engine knows is some 100. */
#define LLMGW_OPENAI_MAX_MEMBERS  1024

/* Engines name models by a path or by owner and name. */
#define LLMGW_OPENAI_MAX_MODEL    512

/* OpenAI's own limit of `n`; the gateway keeps something for each choice. */
#define LLMGW_OPENAI_MAX_CHOICES  128

/*
 * A pseudo API for callers that only need the key: no member is required, and
 * the bytes are not validated.
 */
#define LLMGW_OPENAI_ANY_API      ((Llmgateway__Api) 31)


/*
 * As realloc(): bytes == 0 frees, p == NULL allocates, NULL is returned if
 * there is no memory.  It is called by the thread that reads the body.
 */
typedef struct {
    void       *(*resize)(void *data, void *p, size_t bytes);
    void         *data;
} llmgw_openai_memory_t;

/* A span of the body's bytes. end == 0: the body has no such value. */
typedef struct {
    uint32_t      begin;
    uint32_t      end;
} llmgw_openai_span_t;

/* One member of the body's object, as in proto/llmgateway.proto. */
typedef struct {
    const char   *key;              /* without escapes; ends with NUL */
    uint32_t      begin;            /* of the key's opening quote */
    uint32_t      value;            /* of the value */
    uint32_t      end;              /* behind the value */
} llmgw_openai_member_t;

typedef struct {
    Llmgateway__Api         api;
    const uint8_t          *bytes;  /* the caller's; must outlive the body */
    size_t                  len;

    char                    model[LLMGW_OPENAI_MAX_MODEL + 1];
                                    /* without escapes; ends with NUL */
    size_t                  model_len;
    uint32_t                features;       /* a sum of Llmgateway__Feature */
    uint32_t                n;              /* at least 1 */
    uint32_t                prompts;        /* of completions; at least 1 */
    uint32_t                max_tokens;     /* 0: none; max_completion_tokens
                                               comes before max_tokens */
    unsigned                stream:1;
    unsigned                include_usage:1;

    llmgw_openai_span_t     messages;
    llmgw_openai_span_t     prompt;         /* or `input` */
    llmgw_openai_span_t     system;         /* or `instructions` */
    llmgw_openai_span_t     tools;
    llmgw_openai_span_t     functions;      /* older form of tools */
    llmgw_openai_span_t     cache_salt;
    llmgw_openai_span_t     cache_key;      /* prompt_cache_key */
    llmgw_openai_span_t     user;
    llmgw_openai_span_t     previous;       /* previous_response_id */
    llmgw_openai_span_t     tier;           /* service_tier */
    llmgw_openai_span_t     file;           /* of a form (form.h) */

    llmgw_openai_member_t  *members;        /* all, in their order */
    size_t                  nmembers;
    size_t                  held;           /* bytes that are allocated */

    const llmgw_openai_memory_t  *memory;
} llmgw_openai_body_t;


/* Initializes a body; nothing is read or allocated yet. */
void llmgw_openai_body_begin(llmgw_openai_body_t *body, Llmgateway__Api api,
    const void *bytes, size_t len, const llmgw_openai_memory_t *memory);

/*
 * Reads a whole body.  0: it is valid, and holds memory until done(), in
 * proportion to its length.  -1: error is set, and nothing is allocated.
 */
int llmgw_openai_body_read(llmgw_openai_body_t *body, Llmgateway__Api api,
    const void *bytes, size_t len, const llmgw_openai_memory_t *memory,
    llmgw_openai_error_t *error);

/* Frees what read() allocated; idempotent. */
void llmgw_openai_body_done(llmgw_openai_body_t *body);

/* The value at a span; of kind END if the body has none. */
llmgw_json_t llmgw_openai_body_value(const llmgw_openai_body_t *body,
    llmgw_openai_span_t span);

#endif /* LLMGW_OPENAI_BODY_H */
