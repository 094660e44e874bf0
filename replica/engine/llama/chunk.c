
/*
 * The JSON of answers with logprobs: chat has an object for each token,
 * completions have parallel arrays.
 */

#include <string.h>

#include "replica/engine/llama/chunk.h"


static json_t *
chunk_string(const char *text, size_t len)
{
    return json_stringn_nocheck(text, len);
}


/* --- logprobs */

/* A token as text, and its bytes, which may be no whole character. */
static void
chunk_name_token(const answer_t *a, json_t *object, uint32_t id)
{
    char     piece[HOLD_PIECE_BYTES], *text;
    size_t   i, n, len, size;
    json_t  *bytes;

    text = NULL;
    size = 0;
    n = a->plugin->piece(a->core, id, piece, sizeof(piece));

    if (hold_whole(&text, &size, &len, piece, n) != 0) {
        return;
    }

    json_object_set_new(object, "token", chunk_string(text, len));
    free(text);

    bytes = json_array();

    for (i = 0; i < n; i++) {
        json_array_append_new(bytes, json_integer((uint8_t) piece[i]));
    }

    json_object_set_new(object, "bytes", bytes);
}


/* {token, bytes, logprob}, as chat has it. */
static json_t *
chunk_token(const answer_t *a, uint32_t id, float logprob)
{
    json_t  *object;

    object = json_object();
    chunk_name_token(a, object, id);
    json_object_set_new(object, "logprob", json_real(logprob));

    return object;
}


static void
chunk_chat_logprobs(const answer_t *a, json_t *all)
{
    size_t               i, k;
    json_t              *object, *top;
    const hold_token_t  *token;

    for (i = 0; i < a->hold->nout; i++) {
        token = &a->hold->tokens[i];
        object = chunk_token(a, token->id, token->logprobs.logprob);
        top = json_array();

        for (k = 0; k < token->logprobs.ntop; k++) {
            json_array_append_new(top,
                chunk_token(a, token->logprobs.top[k].id,
                             token->logprobs.top[k].logprob));
        }

        json_object_set_new(object, "top_logprobs", top);
        json_array_append_new(json_object_get(all, "content"), object);
    }
}


size_t
chunk_characters(const char *text, size_t len)
{
    size_t  i, n;

    for (n = 0, i = 0; i < len; i++) {
        n += ((uint8_t) text[i] & 0xC0) != 0x80;
    }

    return n;
}


/* Completions: parallel arrays, the alternatives as an object by their text. */
static void
chunk_text_logprobs(const answer_t *a, json_t *all)
{
    size_t               i, k, offset;
    json_t              *object, *other, *top;
    const hold_token_t  *token;

    offset = a->offset;

    for (i = 0; i < a->hold->nout; i++) {
        token = &a->hold->tokens[i];
        object = chunk_token(a, token->id, 0);
        top = json_object();

        for (k = 0; k < token->logprobs.ntop; k++) {
            other = chunk_token(a, token->logprobs.top[k].id, 0);
            json_object_set_new_nocheck(top,
                json_string_value(json_object_get(other, "token")),
                json_real(token->logprobs.top[k].logprob));
            json_decref(other);
        }

        json_array_append(json_object_get(all, "tokens"),
                          json_object_get(object, "token"));
        json_array_append_new(json_object_get(all, "token_logprobs"),
                              json_real(token->logprobs.logprob));
        json_array_append_new(json_object_get(all, "top_logprobs"), top);
        json_array_append_new(json_object_get(all, "text_offset"),
                              json_integer((json_int_t) offset));
        offset += chunk_characters(
            json_string_value(json_object_get(object, "token")),
            json_string_length(json_object_get(object, "token")));
        json_decref(object);
    }
}


json_t *
chunk_no_logprobs(const answer_t *a)
{
    return a->is_chat ? json_pack("{s:[]}", "content")
                      : json_pack("{s:[], s:[], s:[], s:[]}", "tokens",
                                  "token_logprobs", "top_logprobs",
                                  "text_offset");
}


void
chunk_add_logprobs(const answer_t *a, json_t *all)
{
    if (a->is_chat) {
        chunk_chat_logprobs(a, all);

    } else {
        chunk_text_logprobs(a, all);
    }
}


/* --- JSON */

/* A chunk or an answer around its only choice, whose reference it takes. */
static json_t *
chunk_frame(const answer_t *a, const char *object, json_t *choice)
{
    return json_pack("{s:s, s:s, s:I, s:s, s:[o]}", "id", a->id, "object",
                     object, "created", (json_int_t) a->created, "model",
                     a->model, "choices", choice);
}


static json_t *
chunk_choice(json_t *logprobs, const char *reason)
{
    return json_pack("{s:i, s:o?, s:s?}", "index", 0, "logprobs", logprobs,
                     "finish_reason", reason);
}


char *
chunk_make(answer_t *a, const char *reason)
{
    char    *out;
    json_t  *logprobs, *choice, *text, *delta, *chunk;

    logprobs = NULL;

    if (a->hold->nout > 0) {
        logprobs = chunk_no_logprobs(a);
        chunk_add_logprobs(a, logprobs);
    }

    choice = chunk_choice(logprobs, reason);
    text = chunk_string(a->hold->text, a->hold->text_len);

    if (a->is_chat) {
        delta = json_object();

        if (!a->has_role) {
            json_object_set_new(delta, "role", json_string("assistant"));
        }

        if (a->hold->nout > 0 || !a->has_role) {
            json_object_set(delta, "content", text);
        }

        json_object_set_new(choice, "delta", delta);
        a->has_role = 1;

    } else {
        json_object_set(choice, "text", text);
    }

    json_decref(text);
    chunk = chunk_frame(a, a->is_chat ? "chat.completion.chunk"
                                       : "text_completion", choice);
    out = json_dumps(chunk, JSON_COMPACT);
    json_decref(chunk);

    return out;
}


char *
chunk_whole(answer_t *a, const char *reason)
{
    char    *out;
    json_t  *choice, *text, *answer;

    choice = chunk_choice(json_incref(a->logprobs), reason);
    text = chunk_string(a->text, a->text_len);

    if (a->is_chat) {
        json_object_set_new(choice, "message",
                            json_pack("{s:s, s:O}", "role", "assistant",
                                      "content", text));

    } else {
        json_object_set(choice, "text", text);
    }

    json_decref(text);
    answer = chunk_frame(a, a->is_chat ? "chat.completion"
                                        : "text_completion", choice);
    json_object_set_new(answer, "usage",
        json_pack("{s:i, s:i, s:i}", "prompt_tokens", (int) a->prompt_tokens,
                  "completion_tokens", (int) a->completion_tokens,
                  "total_tokens",
                  (int) (a->prompt_tokens + a->completion_tokens)));
    out = json_dumps(answer, JSON_COMPACT);
    json_decref(answer);

    return out;
}
