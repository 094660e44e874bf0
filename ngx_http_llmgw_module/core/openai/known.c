
#include <stdlib.h>
#include <string.h>

#include "core/openai/known_inner.h"


/* Which values of a member request its row's feature. */
typedef enum {
    NEVER = 0,
    GIVEN,              /* anything but false */
    FILLED,             /* GIVEN, and not 0, "", [] or {} */
    NOT_ONE             /* anything but the number 1 */
} known_when_t;

typedef struct {
    const char     *name;
    unsigned        types;
    unsigned        apis;       /* in other APIs the key is unknown */
    known_when_t    when;
    unsigned        feature;
    size_t          span;       /* field of the body that it sets; 0: none */
} known_row_t;

#define TYPED(name, types, apis)                                              \
    { name, types, apis, NEVER, 0, 0 }
#define ASKS(name, types, apis, when, feature)                                \
    { name, types, apis, when, feature, 0 }
#define NOTES(name, types, apis, field)                                       \
    { name, types, apis, NEVER, 0, offsetof(llmgw_openai_body_t, field) }

/* Sorted by name. */
static const known_row_t  known_rows[] = {
    ASKS("best_of", NUMBER, COMPLETIONS, NOT_ONE, F(CHOICES)),
    NOTES("cache_salt", ANY, ALL, cache_salt),
    NOTES("content", ANY, PASS, prompt),
    ASKS("dry_multiplier", ANY, ALL, FILLED, F(PENALTY)),
    ASKS("ebnf", ANY, ALL, FILLED, F(FORMAT)),
    ASKS("echo", BOOL, COMPLETIONS, FILLED, F(ECHO)),
    ASKS("frequency_penalty", NUMBER, ALL, FILLED, F(PENALTY)),
    TYPED("function_call", STRING | OBJECT, CHAT),
    NOTES("functions", ARRAY, CHAT, functions),
    ASKS("grammar", ANY, ALL, FILLED, F(FORMAT)),
    ASKS("guided_choice", ANY, ALL, FILLED, F(FORMAT)),
    ASKS("guided_grammar", ANY, ALL, FILLED, F(FORMAT)),
    ASKS("guided_json", ANY, ALL, FILLED, F(FORMAT)),
    ASKS("guided_regex", ANY, ALL, FILLED, F(FORMAT)),
    NOTES("input", STRING | ARRAY, EMBEDDINGS | RESPONSES | PASS, prompt),
    NOTES("instructions", ANY, RESPONSES, system),
    ASKS("json_schema", ANY, ALL, FILLED, F(FORMAT)),
    ASKS("logprobs", BOOL | NUMBER, CHAT | COMPLETIONS, GIVEN, F(LOGPROBS)),
    TYPED("max_completion_tokens", NUMBER, ALL),
    TYPED("max_output_tokens", NUMBER, RESPONSES),
    TYPED("max_tokens", NUMBER, ALL),
    NOTES("messages", ARRAY, CHAT | EMBEDDINGS | MESSAGES | PASS, messages),
    ASKS("min_tokens", NUMBER, ALL, FILLED, F(MIN_TOKENS)),
    TYPED("model", STRING, ALL),
    TYPED("n", NUMBER, CHAT | COMPLETIONS),
    ASKS("n_probs", ANY, ALL, FILLED, F(LOGPROBS)),
    ASKS("presence_penalty", NUMBER, ALL, FILLED, F(PENALTY)),
    NOTES("previous_response_id", STRING, RESPONSES, previous),
    NOTES("prompt", STRING | ARRAY, COMPLETIONS | PASS, prompt),
    NOTES("prompt_cache_key", ANY, ALL, cache_key),
    ASKS("prompt_embeds", ANY, COMPLETIONS, GIVEN, F(IDS_PROMPT)),
    ASKS("prompt_logprobs", ANY, ALL, GIVEN, F(LOGPROBS)),
    NOTES("query", ANY, PASS, prompt),
    ASKS("regex", ANY, ALL, FILLED, F(FORMAT)),
    ASKS("repeat_penalty", NUMBER, ALL, NOT_ONE, F(PENALTY)),
    ASKS("repetition_penalty", NUMBER, ALL, NOT_ONE, F(PENALTY)),
    TYPED("response_format", OBJECT, CHAT | COMPLETIONS),
    NOTES("service_tier", ANY, ALL, tier),
    ASKS("stop", STRING | ARRAY, CHAT | COMPLETIONS, FILLED, F(STOP)),
    ASKS("stop_sequences", ARRAY, MESSAGES, FILLED, F(STOP)),
    TYPED("stream", BOOL, ALL),
    TYPED("stream_options", OBJECT, CHAT | COMPLETIONS),
    ASKS("structured_outputs", ANY, ALL, FILLED, F(FORMAT)),
    ASKS("suffix", ANY, COMPLETIONS, FILLED, F(ECHO)),
    NOTES("system", STRING | ARRAY, MESSAGES | PASS, system),
    TYPED("temperature", NUMBER, ALL),
    NOTES("text_1", ANY, PASS, prompt),
    TYPED("tool_choice", STRING | OBJECT, ALL),
    NOTES("tools", ARRAY, ALL, tools),
    ASKS("top_logprobs", NUMBER, CHAT | COMPLETIONS, FILLED, F(LOGPROBS)),
    TYPED("top_p", NUMBER, ALL),
    ASKS("use_beam_search", ANY, ALL, FILLED, F(CHOICES)),
    NOTES("user", ANY, ALL, user),
};

/*
 * Engines' keys that only influence the choice of tokens.  A key that is
 * neither here nor above is FEATURE_UNKNOWN: it may add something to an answer
 * that is not made of text and finish_reason.  Sorted.
 */
static const char *const  known_plain[] = {
    "add_generation_prompt", "add_special_tokens", "allowed_token_ids",
    "bad_words", "cache_prompt", "chat_template", "chat_template_kwargs",
    "continue_final_message", "dimensions", "documents", "dry_allowed_length",
    "dry_base", "dry_penalty_last_n", "dry_sequence_breakers",
    "dynatemp_exponent", "dynatemp_range", "encoding_format",
    "guided_decoding_backend", "guided_whitespace_pattern", "id_slot",
    "ignore_eos", "include_reasoning", "include_stop_str_in_output",
    "length_penalty", "logit_bias", "metadata", "min_keep", "min_p",
    "mirostat", "mirostat_eta", "mirostat_tau", "mm_processor_kwargs",
    "n_keep", "parallel_tool_calls", "priority", "prompt_cache_retention",
    "reasoning", "reasoning_effort", "reasoning_format", "repeat_last_n",
    "request_id", "safety_identifier", "samplers", "seed",
    "separate_reasoning", "skip_special_tokens",
    "spaces_between_special_tokens", "stop_token_ids", "store",
    "stream_reasoning", "t_max_predict_ms", "top_k", "top_n_sigma",
    "truncate_prompt_tokens", "typical_p", "verbosity", "xtc_probability",
    "xtc_threshold"
};

#define ROWS   (sizeof(known_rows) / sizeof(known_rows[0]))
#define PLAIN  (sizeof(known_plain) / sizeof(known_plain[0]))

_Static_assert(ROWS <= KNOWN_ROWS, "a member for each row");


static void known_last(known_t *known);
static const known_row_t *known_find(const char *name);
static int known_compare(const void *a, const void *b);
static int known_row(known_t *known, const known_row_t *row);
static int known_is_filled(llmgw_json_t value);
static int known_is_number(llmgw_json_t value, char digit);
static void known_features(known_t *known);


int
llmgw_openai_known_read(llmgw_openai_body_t *body,
    llmgw_openai_error_t *error)
{
    size_t   i;
    known_t  known;

    memset(&known, 0, sizeof(known));
    known.body = body;
    known.error = error;

    known_last(&known);

    for (i = 0; i < ROWS; i++) {
        if (known.last[i] && known_row(&known, &known_rows[i]) != 0) {
            return -1;
        }
    }

    known_features(&known);

    return known_model(&known) != 0 || known_messages(&known) != 0
           || known_prompt(&known) != 0 || known_stream(&known) != 0
           ? -1 : known_numbers(&known);
}


static void
known_last(known_t *known)
{
    size_t                        i;
    const char                   *key;
    const known_row_t            *row;

    for (i = 0; i < known->body->nmembers; i++) {
        key = known->body->members[i].key;
        row = known_find(key);

        if (row && (known->body->api == LLMGW_OPENAI_ANY_API
                    || row->apis & (1u << known->body->api)))
        {
            known->last[row - known_rows] = &known->body->members[i];

        } else if (row || bsearch(key, known_plain, PLAIN, sizeof(char *),
                                  known_compare) == NULL)
        {
            known->body->features |= F(UNKNOWN);
        }
    }
}


static const known_row_t *
known_find(const char *name)
{
    return bsearch(name, known_rows, ROWS, sizeof(known_row_t),
                   known_compare);
}


/* The name is the first field of a row. */
static int
known_compare(const void *name, const void *row)
{
    return strcmp(name, *(const char *const *) row);
}


llmgw_json_t
known_value(const known_t *known, const char *name)
{
    llmgw_json_t                  value = { 0 };
    llmgw_openai_span_t           span;
    const llmgw_openai_member_t  *member;

    member = known->last[known_find(name) - known_rows];

    if (member) {
        span.begin = member->value;
        span.end = member->end;
        value = llmgw_openai_body_value(known->body, span);
    }

    if (value.kind == LLMGW_JSON_NULL) {
        value.kind = LLMGW_JSON_END;
    }

    return value;
}


/* Checks a member's type, and notes its feature and its place. */
static int
known_row(known_t *known, const known_row_t *row)
{
    int                   asks;
    llmgw_json_t          value;
    llmgw_openai_span_t  *span;

    value = known_value(known, row->name);

    if (value.kind == LLMGW_JSON_END) {
        return 0;
    }

    if ((row->types & (1u << value.kind)) == 0) {

        if (row->apis != ALL && known->body->api == LLMGATEWAY__API__API_PASS) {
            known->last[row - known_rows] = NULL;   /* left for the engine to
                                                       judge */
            return 0;
        }

        return known_type_error(known, row->name, row->types, value);
    }

    asks = row->when == GIVEN ? value.kind != LLMGW_JSON_FALSE
           : row->when == FILLED ? known_is_filled(value)
           : row->when == NOT_ONE ? !known_is_number(value, '1') : 0;

    if (asks) {
        known->body->features |= row->feature;
    }

    if (row->span) {
        span = (llmgw_openai_span_t *) ((char *) known->body + row->span);
        span->begin = (uint32_t) (value.begin - known->body->bytes);
        span->end = (uint32_t) (value.end - known->body->bytes);
    }

    return 0;
}


static int
known_is_filled(llmgw_json_t value)
{
    return value.kind != LLMGW_JSON_FALSE && !known_is_number(value, '0')
           && !llmgw_json_is_empty(value);
}


/* 1: the value is that digit, or -0. */
static int
known_is_number(llmgw_json_t value, char digit)
{
    const uint8_t  *p;

    value = llmgw_json_integral(value);
    p = value.begin + (*value.begin == '-' && digit == '0');

    return value.kind == LLMGW_JSON_NUMBER && p + 1 == value.end
           && *p == (uint8_t) digit;
}


/* Notes features that no single value shows. */
static void
known_features(known_t *known)
{
    size_t        i;
    llmgw_json_t  format, tools;

    static const struct {
        const char  *tools;
        const char  *choice;
    } pairs[] = {
        { "tools", "tool_choice" },
        { "functions", "function_call" }
    };

    for (i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++) {
        tools = known_value(known, pairs[i].tools);

        if (!llmgw_json_is_empty(tools)
            && !llmgw_json_is(known_value(known, pairs[i].choice), "none"))
        {
            known->body->features |= F(TOOLS);
        }
    }

    format = known_value(known, "response_format");

    if (format.kind != LLMGW_JSON_END
        && !llmgw_json_is(llmgw_json_member(format, "type"), "text"))
    {
        known->body->features |= F(FORMAT);
    }
}
