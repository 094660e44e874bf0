
/*
 * Which steps a call takes.
 *
 *   a pass                                          PASS
 *   a whole answer that only the engine can write   WHOLE
 *   a stream as the client asks for it              GENERATE (direct)
 *   the same, if only a completion shows ids        RENDER, GENERATE
 *   resumed by text                                 GENERATE (direct)
 *   resumed by ids              [PIECES | DETOKENIZE,] RENDER, GENERATE
 *
 * To resume by ids is right only if the prompt becomes the same ids here as at
 * the first engine, whose first message had their count and hash.  If an event
 * may have several tokens, the last ones may be the beginning of a character
 * that was not sent: DETOKENIZE shows that, and they are generated again.
 */

#include <string.h>

#include "replica/engine/dialect/dialect_inner.h"


#define PLAN_MAX_CUT  4         /* tokens of one character: bytes of UTF-8 */


static dialect_do_t
plan_refused(dialect_call_t *call, const char *why)
{
    return call_fail(call, LLMGW_GRPC_FAILED_PRECONDITION,
                     "the stream cannot go on here: %s", why);
}


/* Number of prompts: a string or a list of ids is one; several strings, or
   lists of ids, are several. */
static uint64_t
plan_prompts(const dialect_call_t *call)
{
    uint64_t            prompts;
    llmgw_json_t        prompt;
    llmgw_json_item_t   item;
    llmgw_json_items_t  items;

    prompt = edit_find(call->request->openai, "prompt");

    if (prompt.kind != LLMGW_JSON_ARRAY
        || llmgw_json_check(prompt.begin, llmgw_json_bytes(prompt),
                            &prompt) != 0)
    {
        return 1;
    }

    prompts = 0;
    items = llmgw_json_elements(prompt);

    while (llmgw_json_next(&items, &item)) {
        if (item.value.kind == LLMGW_JSON_NUMBER) {
            return 1;
        }

        prompts++;
    }

    return prompts == 0 ? 1 : prompts;
}


/* Sets the number of choices.  0, or -1: there would be too many. */
static int
plan_choices(dialect_call_t *call)
{
    uint64_t      n, choices;
    llmgw_json_t  value;

    if (!(call->features & LLMGATEWAY__FEATURE__FEATURE_CHOICES)) {
        return 0;
    }

    value = llmgw_json_integral(edit_find(call->request->openai, "n"));

    if (llmgw_json_uint(value, UINT32_MAX, &n) != 0) {
        n = 1;
    }

    choices = n * plan_prompts(call);

    if (choices > CALL_MAX_CHOICES) {
        return -1;
    }

    call->nalike = (uint32_t) n;
    call->nchoices = (uint32_t) choices;

    return 0;
}


/* Requests the answer to the prompt in call->prompt. */
static dialect_do_t
plan_generate(dialect_call_t *call)
{
    if (call->prompt.failed) {
        return call_fail(call, LLMGW_GRPC_INVALID_ARGUMENT,
                         "the prompt is no UTF-8, or there is no memory");
    }

    if (call->goes_on && (call->prompt_hash != call->base_hash
                          || (call->prompt_tokens != 0
                              && call->prompt_tokens != call->base_prompt)))
    {
        return plan_refused(call, "its prompt becomes other ids here");
    }

    if (call->prompt_tokens != 0) {
        message_prompt(call, call->prompt_tokens, call->prompt_hash);
    }

    return ask_rendered(call);
}


/* Sets the prompt to a list of ids: JSON without its brackets. */
static int
plan_ids(dialect_call_t *call, llmgw_json_t ids)
{
    if (message_hash_ids(ids, &call->prompt_tokens, &call->prompt_hash) != 0
        || call->prompt_tokens == 0)
    {
        return -1;
    }

    buf_add(&call->prompt, ids.begin + 1, llmgw_json_bytes(ids) - 2);

    return 0;
}


/* Sets the prompt to a string, as JSON. */
static void
plan_text(dialect_call_t *call, llmgw_json_t text)
{
    call->prompt_hash = message_hash_text(text.begin,
                                          llmgw_json_bytes(text));
    buf_value(&call->prompt, text);
}


/* Renders the prompt, unless the client gave ids, or the engine renders it
   itself. */
static dialect_do_t
plan_render(dialect_call_t *call)
{
    llmgw_json_t                        prompt;
    const Llmgateway__GenerateRequest  *request;

    request = call->request;

    if (call->features & LLMGATEWAY__FEATURE__FEATURE_IDS_PROMPT) {
        prompt = edit_find(request->openai, "prompt");

        if (llmgw_json_check(prompt.begin, llmgw_json_bytes(prompt),
                             &prompt) != 0 || plan_ids(call, prompt) != 0)
        {
            return call_fail(call, LLMGW_GRPC_INVALID_ARGUMENT,
                             "the prompt is no list of ids");
        }

        return plan_generate(call);
    }

    if (!call->dialect->ops->renders_text
        || call->api == LLMGATEWAY__API__API_CHAT)
    {
        return ask_render(call);
    }

    if (call->is_infer) {
        buf_string(&call->prompt, request->prompt.data, request->prompt.len);
        call->prompt_hash = message_hash_text(call->prompt.data,
                                              call->prompt.len);

    } else {
        plan_text(call, edit_find(request->openai, "prompt"));
    }

    return plan_generate(call);
}


/* Ends a call of which all that may be generated was delivered. */
static dialect_do_t
plan_complete(dialect_call_t *call)
{
    Llmgateway__Usage  usage = LLMGATEWAY__USAGE__INIT;

    call->request = NULL;
    call->out = OUT_TEXT;
    message_begin(call);
    message_finish(call, 0, llmgw_json_of("\"length\""));

    if (call->is_rendered && call->base_prompt != 0) {
        message_usage(call, &usage);
    }

    if (message_end(call, 0) == DIALECT_FAILED) {
        return DIALECT_FAILED;
    }

    call->has_final = 1;

    return DIALECT_DONE;
}


static dialect_do_t
plan_resume_ids(dialect_call_t *call)
{
    size_t                        i;
    const dialect_ops_t          *ops;
    const Llmgateway__Delivered  *delivered;

    ops = call->dialect->ops;
    delivered = call->request->delivered;
    call->out = OUT_TEXT;
    call->given = delivered->token_ids;
    call->nkept = delivered->n_token_ids;

    if (call->base_prompt == 0 || call->base_hash == 0) {
        return plan_refused(call, "its prompt's ids are not known");
    }

    for (i = 0; i < call->nkept; i++) {
        if (piece_is_one(call->given[i])) {
            return ops->tokenize_path == NULL
                   ? plan_refused(call, "some of its ids are not known")
                   : ask_pieces(call);
        }
    }

    return ops->detokenize_path != NULL ? ask_detokenize(call)
                                        : plan_render(call);
}


static dialect_do_t
plan_resume(dialect_call_t *call)
{
    const char                   *why;
    const Llmgateway__Delivered  *delivered;

    delivered = call->request->delivered;

    if (delivered == NULL
        || (delivered->n_token_ids == 0 && delivered->text.len == 0))
    {
        return plan_refused(call, "it is neither known by ids nor by text");
    }

    call->is_rendered = delivered->n_token_ids > 0;
    why = call->is_rendered ? can_ids(call) : can_text(call);

    if (why != NULL) {
        return plan_refused(call, why);
    }

    if (ask_tokens_left(call) == 0) {
        return plan_complete(call);
    }

    if (!call->is_rendered) {
        call->want &= ~(unsigned) LLMGATEWAY__WANT__WANT_IDS;
        return ask_direct(call);
    }

    return plan_resume_ids(call);
}


static dialect_do_t
plan_direct(dialect_call_t *call)
{
    const dialect_ops_t  *ops;

    ops = call->dialect->ops;
    call->is_rendered = 0;

    if (call->is_infer) {
        call->out = OUT_TEXT;

    } else if (call->is_stream) {
        call->out = call->want & LLMGATEWAY__WANT__WANT_CHUNKS ? OUT_DATA
                                                               : OUT_TEXT;

    } else if (ops->assembles && can_assemble(call)) {
        call->out = OUT_TEXT;

    } else if (ops->always_streams
               && !(call->features & LLMGATEWAY__FEATURE__FEATURE_LOGPROBS))
    {
        call->out = OUT_WHOLE;

    } else {
        return ask_whole(call);
    }

    return ask_direct(call);
}


/*
 * Sets how the stream may be resumed elsewhere.  Text is considered only if the
 * gateway keeps it, or if there are no ids.
 */
static void
plan_resume_by(dialect_call_t *call, const char *no_ids)
{
    int                   shows_ids;
    const dialect_ops_t  *ops;

    ops = call->dialect->ops;
    shows_ids = call->is_rendered
                || (call->api == LLMGATEWAY__API__API_CHAT ? ops->has_chat_ids
                                                           : ops->has_ids);
    shows_ids = shows_ids && no_ids == NULL;

    if (!(call->want & LLMGATEWAY__WANT__WANT_TEXT)
        && (shows_ids || !(call->want & LLMGATEWAY__WANT__WANT_IDS)))
    {
        return;
    }

    call->by_text = can_text(call) == NULL;

    if (!shows_ids) {
        message_without_ids(call);
    }
}


static dialect_do_t
plan_fresh(dialect_call_t *call)
{
    int                   is_chat;
    const char           *no_ids;
    const dialect_ops_t  *ops;

    ops = call->dialect->ops;
    is_chat = call->api == LLMGATEWAY__API__API_CHAT;
    no_ids = "they were not asked for";

    if (call->want & LLMGATEWAY__WANT__WANT_IDS) {
        no_ids = can_ids(call);
    }

    call->is_rendered = no_ids == NULL
                        && !(is_chat ? ops->has_chat_ids : ops->has_ids);
    plan_resume_by(call, no_ids);

    if (call->is_rendered) {
        call->out = OUT_TEXT;
        return plan_render(call);
    }

    return plan_direct(call);
}


dialect_do_t
plan_start(dialect_call_t *call)
{
    const Llmgateway__Delivered      *delivered;
    const Llmgateway__OpenaiRequest  *openai;

    openai = call->request->openai;
    delivered = call->request->delivered;

    if (openai != NULL && *openai->method != '\0') {
        return ask_bare(call);
    }

    if (openai != NULL && *openai->content_type != '\0') {
        return ask_form(call);
    }

    if (openai != NULL && !edit_is_sound(openai)) {
        return call_fail(call, LLMGW_GRPC_INVALID_ARGUMENT,
                         "the members of the body do not fit it");
    }

    if (call->api >= LLMGATEWAY__API__API_EMBEDDINGS) {
        return ask_pass(call);
    }

    if (openai != NULL) {
        if (plan_choices(call) != 0) {
            return call_fail(call, LLMGW_GRPC_INVALID_ARGUMENT,
                             "n times the number of prompts is at most %d",
                             CALL_MAX_CHOICES);
        }

        call->keeps_ids = edit_find(openai, "return_token_ids").kind
                          != LLMGW_JSON_END;
    }

    if (delivered != NULL) {
        call->base_prompt = delivered->prompt_tokens;
        call->base_hash = delivered->prompt_hash;
        call->base_cached = delivered->cached_tokens;
    }

    if (call->request->tokens_already_generated > 0) {
        call->base_tokens = (uint32_t) call->request->tokens_already_generated;
        call->goes_on = 1;
        call->begun[0] = 1;
        return plan_resume(call);
    }

    return plan_fresh(call);
}


/* Whether the text ends with U+FFFD, which stands for half a character. */
static int
plan_is_cut(llmgw_json_t text)
{
    int    is_cut;
    buf_t  buf = { NULL, 0, 0, 0 };

    buf_unescape(&buf, text);
    is_cut = buf.len >= 3 && memcmp(buf.data + buf.len - 3, "\xef\xbf\xbd",
                                    3) == 0;
    buf_free(&buf);

    return is_cut;
}


dialect_do_t
plan_pieces(dialect_call_t *call, llmgw_json_t answer)
{
    if (piece_read(call, llmgw_json_member(answer, "tokens")) != 0) {
        return plan_refused(call, "some of its ids are not known");
    }

    return plan_render(call);
}


dialect_do_t
plan_detokenized(dialect_call_t *call, llmgw_json_t answer)
{
    size_t        cut;
    llmgw_json_t  text;

    text = llmgw_json_member(answer, call->dialect->ops->detokenized);

    if (text.kind != LLMGW_JSON_STRING) {
        return call_malformed(call, "ids as no text");
    }

    if (!plan_is_cut(text)) {
        return plan_render(call);
    }

    call->nkept--;
    cut = call->request->delivered->n_token_ids - call->nkept;

    if (cut == PLAN_MAX_CUT) {
        return plan_refused(call, "its last character is not known");
    }

    /* These tokens come a second time, so a count of ids would have each of
       them twice. */
    call->resume_by = LLMGATEWAY__RESUME_BY__RESUME_NEVER;
    call->base_tokens--;

    return call->nkept == 0 ? plan_render(call) : ask_detokenize(call);
}


dialect_do_t
plan_rendered(dialect_call_t *call, llmgw_json_t answer)
{
    uint64_t      context;
    llmgw_json_t  prompt;

    if (call->dialect->ops->renders_text) {
        prompt = llmgw_json_member(answer, "prompt");

        if (prompt.kind != LLMGW_JSON_STRING) {
            return call_malformed(call, "no rendered prompt");
        }

        plan_text(call, prompt);

    } else if (plan_ids(call, llmgw_json_member(answer, "tokens")) != 0) {
        return call_malformed(call, "no list of a prompt's ids");
    }

    call->context = call->facts->context;

    if (call->dialect->ops->says_context
        && llmgw_json_uint(llmgw_json_member(answer, "max_model_len"),
                           UINT32_MAX, &context) == 0)
    {
        call->context = (uint32_t) context;
    }

    return plan_generate(call);
}


int
plan_without(dialect_call_t *call, unsigned status, dialect_do_t *next)
{
    if (status / 100 != 4 || status == 401 || status == 429) {
        return -1;
    }

    if (call->step == STEP_DETOKENIZE && (status == 404 || status == 405)) {
        *next = plan_render(call);      /* the engine has no such path: all ids
                                           are kept */
        return 0;
    }

    if (call->step != STEP_RENDER) {
        return -1;
    }

    if (call->goes_on) {
        *next = plan_refused(call, "the engine does not render its prompt");
        return 0;
    }

    /* It may be the request's fault: the answer to the request itself then
       shows that. */
    call->is_rendered = 0;
    plan_resume_by(call, "the engine does not render the prompt");
    *next = plan_direct(call);

    return 0;
}
