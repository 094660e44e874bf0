
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/openai/known_inner.h"


/* Which value asks for a row's feature. */
typedef enum {
    NEVER = 0,
    GIVEN,              /* anything but false */
    FILLED,             /* not false, 0, "", [] or {} either */
    NOT_ONE             /* anything but the number 1 */
} known_when_t;

typedef struct {
    const char     *name;
    unsigned        types;
    unsigned        apis;       /* elsewhere it is a key that we do not know */
    known_when_t    when;
    unsigned        feature;
    size_t          span;       /* where the body notes it; 0: nowhere */
    known_read_pt   read;
} known_row_t;

#define ALL  (~0u)

#define PLAIN(name)                                                           \
    { name, ANY, ALL, NEVER, 0, 0, NULL }
#define TYPED(name, types, apis)                                              \
    { name, types, apis, NEVER, 0, 0, NULL }
#define ASKS(name, types, apis, when, feature)                                \
    { name, types, apis, when, feature, 0, NULL }
#define READS(name, types, apis, read)                                        \
    { name, types, apis, NEVER, 0, 0, read }
#define NOTES(name, types, apis, field, read)                                 \
    { name, types, apis, NEVER, 0, offsetof(llmgw_openai_body_t, field), read }


static void known_last(known_t *known, const llmgw_openai_member_t **last);
static const known_row_t *known_find(const char *name);
static int known_compare(const void *a, const void *b);
static int known_judge(known_t *known, const known_row_t *row);
static int known_is_filled(llmgw_json_t value);
static int known_is_number(llmgw_json_t value, char digit);
static int known_check_choices(known_t *known);
static int known_finish(known_t *known);


/*
 * Sorted by name.  Not in it, and so FEATURE_UNKNOWN, are keys that add
 * something to an answer which is not made of text and finish_reason.
 */
static const known_row_t  known_rows[] = {
    PLAIN("add_generation_prompt"),
    PLAIN("add_special_tokens"),
    PLAIN("allowed_token_ids"),
    PLAIN("bad_words"),
    READS("best_of", NUMBER, COMPLETIONS, known_choices),
    PLAIN("cache_prompt"),
    NOTES("cache_salt", ANY, ALL, cache_salt, NULL),
    PLAIN("chat_template"),
    PLAIN("chat_template_kwargs"),
    PLAIN("continue_final_message"),
    PLAIN("dimensions"),
    PLAIN("documents"),
    PLAIN("dry_allowed_length"),
    PLAIN("dry_base"),
    ASKS("dry_multiplier", ANY, ALL, FILLED, F(PENALTY)),
    PLAIN("dry_penalty_last_n"),
    PLAIN("dry_sequence_breakers"),
    PLAIN("dynatemp_exponent"),
    PLAIN("dynatemp_range"),
    ASKS("ebnf", ANY, ALL, FILLED, F(FORMAT)),
    ASKS("echo", BOOL, COMPLETIONS, FILLED, F(ECHO)),
    PLAIN("encoding_format"),
    ASKS("frequency_penalty", NUMBER, ALL, FILLED, F(PENALTY)),
    READS("function_call", STRING | OBJECT, CHAT, known_function_call),
    NOTES("functions", ARRAY, CHAT, functions, NULL),
    ASKS("grammar", ANY, ALL, FILLED, F(FORMAT)),
    ASKS("guided_choice", ANY, ALL, FILLED, F(FORMAT)),
    PLAIN("guided_decoding_backend"),
    ASKS("guided_grammar", ANY, ALL, FILLED, F(FORMAT)),
    ASKS("guided_json", ANY, ALL, FILLED, F(FORMAT)),
    ASKS("guided_regex", ANY, ALL, FILLED, F(FORMAT)),
    PLAIN("guided_whitespace_pattern"),
    PLAIN("id_slot"),
    PLAIN("ignore_eos"),
    PLAIN("include_reasoning"),
    PLAIN("include_stop_str_in_output"),
    NOTES("input", STRING | ARRAY, EMBEDDINGS | RESPONSES, prompt,
          known_prompt),
    NOTES("instructions", ANY, RESPONSES, system, NULL),
    ASKS("json_schema", ANY, ALL, FILLED, F(FORMAT)),
    PLAIN("length_penalty"),
    PLAIN("logit_bias"),
    ASKS("logprobs", BOOL | NUMBER, CHAT | COMPLETIONS, GIVEN, F(LOGPROBS)),
    READS("max_completion_tokens", NUMBER, ALL, known_max_completion),
    READS("max_output_tokens", NUMBER, RESPONSES, known_max_tokens),
    READS("max_tokens", NUMBER, ALL, known_max_tokens),
    NOTES("messages", ARRAY, CHAT | EMBEDDINGS | MESSAGES, messages,
          known_messages),
    PLAIN("metadata"),
    PLAIN("min_keep"),
    PLAIN("min_p"),
    ASKS("min_tokens", NUMBER, ALL, FILLED, F(MIN_TOKENS)),
    PLAIN("mirostat"),
    PLAIN("mirostat_eta"),
    PLAIN("mirostat_tau"),
    PLAIN("mm_processor_kwargs"),
    READS("model", STRING, ALL, known_model),
    READS("n", NUMBER, CHAT | COMPLETIONS, known_n),
    PLAIN("n_keep"),
    ASKS("n_probs", ANY, ALL, FILLED, F(LOGPROBS)),
    PLAIN("parallel_tool_calls"),
    ASKS("presence_penalty", NUMBER, ALL, FILLED, F(PENALTY)),
    PLAIN("priority"),
    NOTES("prompt", STRING | ARRAY, COMPLETIONS, prompt, known_prompt),
    NOTES("prompt_cache_key", ANY, ALL, cache_key, NULL),
    PLAIN("prompt_cache_retention"),
    READS("prompt_embeds", ANY, COMPLETIONS, known_embeds),
    ASKS("prompt_logprobs", ANY, ALL, GIVEN, F(LOGPROBS)),
    PLAIN("reasoning"),
    PLAIN("reasoning_effort"),
    PLAIN("reasoning_format"),
    ASKS("regex", ANY, ALL, FILLED, F(FORMAT)),
    PLAIN("repeat_last_n"),
    ASKS("repeat_penalty", NUMBER, ALL, NOT_ONE, F(PENALTY)),
    ASKS("repetition_penalty", NUMBER, ALL, NOT_ONE, F(PENALTY)),
    PLAIN("request_id"),
    READS("response_format", OBJECT, CHAT | COMPLETIONS, known_format),
    PLAIN("safety_identifier"),
    PLAIN("samplers"),
    PLAIN("seed"),
    PLAIN("separate_reasoning"),
    PLAIN("service_tier"),
    PLAIN("skip_special_tokens"),
    PLAIN("spaces_between_special_tokens"),
    ASKS("stop", STRING | ARRAY, CHAT | COMPLETIONS, FILLED, F(STOP)),
    ASKS("stop_sequences", ARRAY, MESSAGES, FILLED, F(STOP)),
    PLAIN("stop_token_ids"),
    PLAIN("store"),
    READS("stream", BOOL, ALL, known_stream),
    READS("stream_options", OBJECT, CHAT | COMPLETIONS, known_stream_options),
    PLAIN("stream_reasoning"),
    ASKS("structured_outputs", ANY, ALL, FILLED, F(FORMAT)),
    ASKS("suffix", ANY, COMPLETIONS, FILLED, F(ECHO)),
    NOTES("system", STRING | ARRAY, MESSAGES, system, NULL),
    PLAIN("t_max_predict_ms"),
    TYPED("temperature", NUMBER, ALL),
    TYPED("text", ANY, RESPONSES),
    TYPED("thinking", ANY, MESSAGES),
    READS("tool_choice", STRING | OBJECT, ALL, known_tool_choice),
    NOTES("tools", ARRAY, ALL, tools, NULL),
    PLAIN("top_k"),
    ASKS("top_logprobs", NUMBER, CHAT | COMPLETIONS, FILLED, F(LOGPROBS)),
    PLAIN("top_n_sigma"),
    TYPED("top_p", NUMBER, ALL),
    PLAIN("truncate_prompt_tokens"),
    TYPED("truncation", ANY, RESPONSES),
    PLAIN("typical_p"),
    ASKS("use_beam_search", ANY, ALL, FILLED, F(CHOICES)),
    NOTES("user", ANY, ALL, user, NULL),
    PLAIN("verbosity"),
    PLAIN("xtc_probability"),
    PLAIN("xtc_threshold"),
};

#define ROWS  (sizeof(known_rows) / sizeof(known_rows[0]))


int
llmgw_openai_known_read(llmgw_openai_body_t *body,
    llmgw_openai_error_t *error)
{
    size_t                        i;
    known_t                       known;
    const llmgw_openai_member_t  *last[ROWS];

    memset(&known, 0, sizeof(known));
    memset(last, 0, sizeof(last));

    known.body = body;
    known.error = error;

    known_last(&known, last);

    for (i = 0; i < ROWS; i++) {
        known.member = last[i];

        if (known.member && known_judge(&known, &known_rows[i]) != 0) {
            return -1;
        }
    }

    return known_finish(&known);
}


/* Of a key that comes twice the last one counts. */
static void
known_last(known_t *known, const llmgw_openai_member_t **last)
{
    size_t              i;
    const known_row_t  *row;

    for (i = 0; i < known->body->nmembers; i++) {
        row = known_find(known->body->members[i].key);

        if (row && (known->body->api == LLMGW_OPENAI_ANY_API
                    || row->apis & (1u << known->body->api)))
        {
            last[row - known_rows] = &known->body->members[i];

        } else {
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


static int
known_compare(const void *name, const void *row)
{
    return strcmp(name, ((const known_row_t *) row)->name);
}


static int
known_judge(known_t *known, const known_row_t *row)
{
    int                  asks;
    llmgw_json_t         value;
    llmgw_openai_span_t  span;

    span.begin = known->member->value;
    span.end = known->member->end;
    value = llmgw_openai_body_value(known->body, span);

    if (value.kind == LLMGW_JSON_NULL) {
        return 0;
    }

    if ((row->types & (1u << value.kind)) == 0) {
        return known_type_error(known, row->name, row->types, value);
    }

    asks = row->when == GIVEN ? value.kind != LLMGW_JSON_FALSE
           : row->when == FILLED ? known_is_filled(value)
           : row->when == NOT_ONE ? !known_is_number(value, '1') : 0;

    if (asks) {
        known->body->features |= row->feature;
    }

    if (row->span) {
        memcpy((char *) known->body + row->span, &span, sizeof(span));
    }

    return row->read ? row->read(known, value) : 0;
}


static int
known_is_filled(llmgw_json_t value)
{
    llmgw_json_item_t   item;
    llmgw_json_items_t  items;

    switch (value.kind) {

    case LLMGW_JSON_END:
    case LLMGW_JSON_FALSE:
        return 0;

    case LLMGW_JSON_NUMBER:
        return !known_is_number(value, '0');

    case LLMGW_JSON_STRING:
        return value.end - value.begin > 2;

    case LLMGW_JSON_ARRAY:
    case LLMGW_JSON_OBJECT:
        items = llmgw_json_items(value);
        return llmgw_json_next(&items, &item);

    default:
        return 1;
    }
}


/* 1: it is that digit, perhaps with a sign and zeros behind its point. */
static int
known_is_number(llmgw_json_t value, char digit)
{
    const uint8_t  *p;

    p = value.begin + (*value.begin == '-' && digit == '0');

    if (value.kind != LLMGW_JSON_NUMBER || *p++ != (uint8_t) digit) {
        return 0;
    }

    if (p < value.end && *p == '.') {
        for (p++; p < value.end && *p == '0'; p++) { /* void */ }
    }

    return p == value.end;
}


/* n times the prompts; of an API whose answers have choices. */
static int
known_check_choices(known_t *known)
{
    char                        what[64];
    const llmgw_openai_body_t  *body;

    body = known->body;

    if (body->api != LLMGATEWAY__API__API_COMPLETIONS
        || (uint64_t) body->n * body->prompts <= LLMGW_OPENAI_MAX_CHOICES)
    {
        return 0;
    }

    (void) snprintf(what, sizeof(what), "prompts times n must be at most %u",
                    LLMGW_OPENAI_MAX_CHOICES);

    return known_value_error(known, "prompt", what);
}


/* What several members say together. */
static int
known_finish(known_t *known)
{
    unsigned              api;
    llmgw_openai_body_t  *body;

    body = known->body;
    api = 1u << body->api;

    if (known->max_completion_tokens) {
        body->max_tokens = known->max_completion_tokens;
    }

    if ((!known->no_tools && known_is_filled(
                          llmgw_openai_body_value(body, body->tools)))
        || (!known->no_functions && known_is_filled(
                          llmgw_openai_body_value(body, body->functions))))
    {
        body->features |= F(TOOLS);
    }

    if (body->model_len == 0 && body->api != LLMGW_OPENAI_ANY_API) {
        return known_missing(known, "model");
    }

    if ((api & (CHAT | MESSAGES)) && body->messages.end == 0) {
        return known_missing(known, "messages");
    }

    if ((api & COMPLETIONS) && body->prompt.end == 0 && !known->has_embeds) {
        return known_missing(known, "prompt");
    }

    if ((api & EMBEDDINGS) && body->prompt.end == 0
        && body->messages.end == 0)
    {
        return known_missing(known, "input");
    }

    return known_check_choices(known);
}
