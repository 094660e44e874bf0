
/*
 * llama.cpp's server.
 *
 * Only its own /completion shows ids, one token in each event.  A chat is
 * rendered by /apply-template and requested there, if its template has no
 * thoughts: otherwise the chat's parser does more than copy the text.  A whole
 * answer is requested as a stream, since the server notices late that the
 * client of a whole answer has left; but not with log probabilities, since a
 * stream lacks those of tokens without text of their own.
 *
 * While a character is not whole the server sends nothing, and the event that
 * completes it has only the last id; the event's count of tokens shows that
 * others are missing (see piece.c).
 *
 * Its penalties count the prompt's tokens as well, so they are the same for a
 * stream that is resumed.
 */

#include <string.h>

#include "replica/engine/dialect/dialect_inner.h"
#include "replica/engine/dialect/facts.h"


#define LLAMACPP_MAX_SLOTS  1000000

/* Metrics have six digits: above this a moving counter seems to stand still. */
#define LLAMACPP_MAX_COUNTER  999999


static const prom_name_t  llamacpp_names[] = {
    { "llamacpp:requests_processing", FACTS_RUNNING, PROM_SUM, NULL },
    { "llamacpp:requests_deferred", FACTS_WAITING, PROM_SUM, NULL },
    { "llamacpp:kv_cache_usage_ratio", FACTS_KV, PROM_MAX, NULL },
    { "llamacpp:n_decode_total", FACTS_PROGRESS, PROM_SUM, NULL },
    { NULL, 0, PROM_SUM, NULL }
};


static void
llamacpp_generate(dialect_call_t *call, buf_t *body)
{
    buf_text(body, "\"n_predict\":");
    buf_number(body, ask_tokens_left(call));
    buf_text(body, ",\"stream\":true,\"return_tokens\":true");
}


/* Checks the prompt's count, which comes with the events and includes what was
   delivered. */
static int
llamacpp_check_prompt(dialect_call_t *call, llmgw_json_t event)
{
    uint64_t  n;

    if (call->prompt_tokens != 0
        || llmgw_json_uint(llmgw_json_member(event, "tokens_evaluated"),
                           CALL_MAX_TOKENS, &n) != 0)
    {
        return 0;
    }

    call->prompt_tokens = (uint32_t) n;
    message_prompt(call, (uint32_t) n, call->prompt_hash);

    return call->goes_on && n != call->base_prompt + call->nkept ? -1 : 0;
}


/* Counts ids that are missing, since tokens were held back until a character
   was whole. */
static void
llamacpp_count(dialect_call_t *call, llmgw_json_t event, size_t had)
{
    uint64_t  n, known;

    if (!(call->want & LLMGATEWAY__WANT__WANT_IDS) || call->nids == had
        || llmgw_json_uint(llmgw_json_member(event, "tokens_predicted"),
                           CALL_MAX_TOKENS, &n) != 0)
    {
        return;
    }

    known = call->engine_tokens + (call->nids - had);
    call->engine_tokens = n;

    if (n > known && piece_fill(call, n - known) != 0) {
        message_without_ids(call);
    }
}


static void
llamacpp_finish(dialect_call_t *call, llmgw_json_t event, int *is_wrong)
{
    int                is_limit;
    uint64_t           n, cached;
    llmgw_json_t       kind, flag, reason, timings;
    Llmgateway__Usage  usage = LLMGATEWAY__USAGE__INIT;

    kind = llmgw_json_member(event, "stop_type");
    flag = llmgw_json_member(event, "stopped_limit");
    is_limit = llmgw_json_is(kind, "limit") || flag.kind == LLMGW_JSON_TRUE;
    reason = llmgw_json_of(is_limit ? "\"length\"" : "\"stop\"");
    *is_wrong |= message_finish(call, 0, reason) != 0;

    timings = llmgw_json_member(event, "timings");

    if (llmgw_json_uint(llmgw_json_member(timings, "cache_n"),
                        CALL_MAX_TOKENS, &cached) != 0)
    {
        cached = 0;
    }

    if (llmgw_json_uint(llmgw_json_member(event, "tokens_predicted"),
                        CALL_MAX_TOKENS, &n) == 0)
    {
        usage.prompt_tokens = call->prompt_tokens;
        usage.completion_tokens = (uint32_t) n;
        usage.cached_tokens = (uint32_t) cached;
        message_usage(call, &usage);
    }
}


/* Members that the server itself would have added to the chat, or to OpenAI's
   completion. */
static void
llamacpp_extra(dialect_call_t *call, llmgw_json_t event)
{
    buf_t  version = { NULL, 0, 0, 0 };

    extra_answer(call, llmgw_json_of("\"timings\""),
                 llmgw_json_member(event, "timings"));

    if (call->api == LLMGATEWAY__API__API_COMPLETIONS) {
        extra_choice(call, 0, llmgw_json_of("\"logprobs\""),
                     llmgw_json_of("null"));
    }

    buf_string(&version, call->facts->version, strlen(call->facts->version));

    if (version.len > 2 && !version.failed) {
        extra_answer(call, llmgw_json_of("\"system_fingerprint\""),
                     llmgw_json_at(version.data, version.data + version.len));
    }

    buf_free(&version);
}


static dialect_do_t
llamacpp_event(dialect_call_t *call, llmgw_json_t event)
{
    int           is_wrong, is_last;
    size_t        had;
    llmgw_json_t  content;
    dialect_do_t  next;

    content = llmgw_json_member(event, "content");
    is_wrong = content.kind != LLMGW_JSON_STRING;
    is_last = llmgw_json_member(event, "stop").kind == LLMGW_JSON_TRUE;

    if (llamacpp_check_prompt(call, event) != 0) {
        return call_fail(call, LLMGW_GRPC_FAILED_PRECONDITION,
                         "the stream cannot go on here: its prompt becomes"
                         " other ids");
    }

    buf_unescape(&call->token, content);
    had = call->nids;

    if (call->want & LLMGATEWAY__WANT__WANT_IDS) {
        message_ids(call, llmgw_json_member(event, "tokens"), &is_wrong);
    }

    llamacpp_count(call, event, had);

    if (is_last) {
        llamacpp_finish(call, event, &is_wrong);
        llamacpp_extra(call, event);
    }

    if (is_wrong) {
        return call_malformed(call, "an event of another form than its own");
    }

    next = message_end(call, 0);

    if (next != DIALECT_MORE || !is_last) {
        return next;
    }

    call->has_final = 1;        /* no [DONE] follows */

    return DIALECT_DONE;
}


/* Errors of its parser and of types are the request's own fault. */
static int
llamacpp_is_fault(unsigned status, const char *message)
{
    return status == 500 && strncmp(message, "[json.exception.", 16) == 0;
}


static int
llamacpp_learn_health(dialect_facts_t *facts, unsigned status,
    const char *body, size_t len)
{
    return facts_health(facts, status, status == 503 ? DIALECT_STARTING
                                                     : DIALECT_DOWN);
}


static int
llamacpp_learn_metrics(dialect_facts_t *facts, unsigned status,
    const char *body, size_t len)
{
    if (facts_metrics(facts, status, body, len, llamacpp_names) != 0) {
        return -1;
    }

    if (facts->progress > LLAMACPP_MAX_COUNTER) {
        facts->progress = -1;
    }

    return 0;
}


/* Whether the template mentions thoughts, which the server may then parse. */
static int
llamacpp_has_thoughts(llmgw_json_t template)
{
    size_t                    i, len;

    static const char *const  marks[] = {
        "think", "thought", "reason", "<|channel|>", "<|START_"
    };

    if (template.kind != LLMGW_JSON_STRING) {
        return 1;
    }

    len = llmgw_json_bytes(template);

    for (i = 0; i < sizeof(marks) / sizeof(marks[0]); i++) {
        if (memmem(template.begin, len, marks[i], strlen(marks[i])) != NULL) {
            return 1;
        }
    }

    return 0;
}


static int
llamacpp_learn_props(dialect_facts_t *facts, unsigned status, const char *body,
    size_t len)
{
    uint64_t      slots, context;
    llmgw_json_t  object, settings;

    static const char *const  mixed[] = { "build_info", "chat_template", NULL };

    if (facts_object(status, body, len, &object) != 0) {
        return -1;
    }

    settings = llmgw_json_member(object, "default_generation_settings");

    if (llmgw_json_uint(llmgw_json_member(object, "total_slots"),
                        LLAMACPP_MAX_SLOTS, &slots) == 0)
    {
        facts->capacity = (int32_t) slots;
    }

    if (llmgw_json_uint(llmgw_json_member(settings, "n_ctx"), CALL_MAX_TOKENS,
                        &context) == 0)
    {
        facts->context = (uint32_t) context;
    }

    llmgw_json_copy(llmgw_json_member(object, "build_info"), facts->version,
                    sizeof(facts->version));
    facts->numerics[FACTS_OF_SERVER] = 0;
    facts_mix_all(&facts->numerics[FACTS_OF_SERVER], mixed, object);
    facts->chat_is_text = !llamacpp_has_thoughts(llmgw_json_member(object,
                                                            "chat_template"));

    return 0;
}


static const dialect_probe_t  llamacpp_probes[] = {
    { "/health", DIALECT_OFTEN, 0, llamacpp_learn_health },
    { "/metrics", DIALECT_OFTEN, 1, llamacpp_learn_metrics },
    { "/v1/models", DIALECT_ONCE, 0, facts_models },
    { "/props", DIALECT_ONCE, 0, llamacpp_learn_props },
    { NULL, DIALECT_ONCE, 0, NULL }
};

static const dialect_ops_t  llamacpp_ops = {
    .keys = KEYS_LLAMACPP,
    .render_path = "/apply-template",
    .completion_path = "/completion",
    .tokenize_path = "/tokenize",
    .prefills = 1,
    .counts_prompt = 1,
    .counts_choices = 1,
    .holds_stops = 1,
    .always_streams = 1,
    .assembles = 1,
    .renders_text = 1,
    .generate = llamacpp_generate,
    .event = llamacpp_event,
    .is_fault = llamacpp_is_fault
};

const dialect_t  dialect_llamacpp = {
    "llamacpp", llamacpp_probes, 1500, &llamacpp_ops, 0
};
