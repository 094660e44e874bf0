
/*
 * The JSON that the front writes of a replica's text: chunks, and one whole
 * answer.  Both begin with the same head, made once for a stream.
 *
 * A whole answer is written as its text comes, into the output that is held
 * until the end: head, text, and at last what is known only then.
 */

#include "front/clients.h"
#include "front/openai/openai_inner.h"
#include "front/output.h"
#include "proto/json/write.h"


/* The head without id and model; all JSON without head and text. */
#define NGX_HTTP_LLMGW_OPENAI_HEAD_BYTES   160
#define NGX_HTTP_LLMGW_OPENAI_FRAME_BYTES  448


static ngx_uint_t ngx_http_llmgw_openai_join_text(
    ngx_http_llmgw_stream_t *stream, const llmgw_token_t *token);
static ngx_int_t ngx_http_llmgw_openai_append(ngx_http_llmgw_stream_t *stream,
    const void *data, size_t len);
static void ngx_http_llmgw_openai_join(u_char *p, u_char *end, u_char eol);
static char *ngx_http_llmgw_openai_choice(ngx_http_llmgw_openai_t *o,
    char *p);
static char *ngx_http_llmgw_openai_reason(ngx_http_llmgw_openai_t *o, char *p,
    const char *reason, size_t len);
static char *ngx_http_llmgw_openai_usage(ngx_http_llmgw_openai_t *o, char *p);
static ngx_uint_t ngx_http_llmgw_openai_is_chat(ngx_http_llmgw_openai_t *o);


/*
 * Writes the beginning of all JSON of this stream, up to the choices, into the
 * output; and, for a whole answer, that of its only choice.
 */

ngx_int_t
ngx_http_llmgw_openai_head(ngx_http_llmgw_stream_t *stream)
{
    char                       *p;
    size_t                      size;
    ngx_http_llmgw_openai_t    *o = stream->data;
    Llmgateway__OpenaiRequest  *request;

    request = &o->request;

    size = NGX_HTTP_LLMGW_OPENAI_HEAD_BYTES
           + LLMGW_JSON_STRING_BYTES(ngx_strlen(request->id))
           + llmgw_json_string_bytes(request->model, o->usage.model.len);

    p = ngx_pnalloc(stream->request->pool, size);
    if (p == NULL) {
        return NGX_ERROR;
    }

    o->head.data = (u_char *) p;

    if (request->stream) {
        p = llmgw_json_literal(p, "data: ");
    }

    p = llmgw_json_literal(p, "{\"id\":");
    p = llmgw_json_string(p, request->id, ngx_strlen(request->id));
    p = llmgw_json_literal(p, ",\"object\":");
    p = !ngx_http_llmgw_openai_is_chat(o)
        ? llmgw_json_literal(p, "\"text_completion\"")
        : request->stream ? llmgw_json_literal(p, "\"chat.completion.chunk\"")
                          : llmgw_json_literal(p, "\"chat.completion\"");
    p = llmgw_json_literal(p, ",\"created\":");
    p = llmgw_json_number(p, request->created);
    p = llmgw_json_literal(p, ",\"model\":");
    p = llmgw_json_string(p, request->model, o->usage.model.len);
    p = llmgw_json_literal(p, ",\"choices\":[");

    o->head.len = (u_char *) p - o->head.data;

    return NGX_OK;
}


static ngx_uint_t
ngx_http_llmgw_openai_is_chat(ngx_http_llmgw_openai_t *o)
{
    return o->request.api == LLMGATEWAY__API__API_CHAT;
}


/* An event is one line: a line break within JSON is white space. */

ngx_int_t
ngx_http_llmgw_openai_chunk_data(ngx_http_llmgw_stream_t *stream,
    const ProtobufCBinaryData *data)
{
    u_char     *p, *end;
    ngx_buf_t  *b;

    b = ngx_http_llmgw_openai_room(stream, data->len
                                           + sizeof("data: \n\n") - 1);
    if (b == NULL) {
        return NGX_ERROR;
    }

    p = ngx_cpymem(b->last, "data: ", sizeof("data: ") - 1);
    end = ngx_cpymem(p, data->data, data->len);

    ngx_http_llmgw_openai_join(p, end, '\n');
    ngx_http_llmgw_openai_join(p, end, '\r');

    *end++ = '\n';
    *end++ = '\n';
    b->last = end;

    return NGX_OK;
}


static void
ngx_http_llmgw_openai_join(u_char *p, u_char *end, u_char eol)
{
    while ((p = memchr(p, eol, end - p)) != NULL) {
        *p = ' ';
    }
}


ngx_int_t
ngx_http_llmgw_openai_chunk_choice(ngx_http_llmgw_stream_t *stream,
    const llmgw_token_t *token)
{
    char                     *p;
    size_t                    size;
    ngx_buf_t                *b;
    ngx_uint_t                has_content;
    ngx_http_llmgw_openai_t  *o = stream->data;

    if (token && ngx_http_llmgw_openai_join_text(stream, token)) {
        return NGX_OK;
    }

    size = o->head.len + NGX_HTTP_LLMGW_OPENAI_FRAME_BYTES;

    if (token) {
        size += llmgw_json_escape_bytes(token->text, token->text_len);
        o->has_text = 1;
    }

    b = ngx_http_llmgw_openai_room(stream, size);
    if (b == NULL) {
        return NGX_ERROR;
    }

    p = ngx_http_llmgw_openai_choice(o, (char *) b->last);
    has_content = (token || !o->has_role);

    if (!ngx_http_llmgw_openai_is_chat(o)) {
        p = llmgw_json_literal(p, "\"text\":\"");

    } else if (!o->has_role) {
        p = llmgw_json_literal(p, "\"delta\":{\"role\":\"assistant\","
                                  "\"content\":\"");
    } else {
        p = has_content ? llmgw_json_literal(p, "\"delta\":{\"content\":\"")
                        : llmgw_json_literal(p, "\"delta\":{");
    }

    if (token) {
        p = llmgw_json_escape(p, token->text, token->text_len);
        o->text_end = (u_char *) p;
    }

    p = !ngx_http_llmgw_openai_is_chat(o) ? llmgw_json_literal(p, "\"")
        : has_content ? llmgw_json_literal(p, "\"}")
                      : llmgw_json_literal(p, "}");

    o->has_role = 1;
    p = token ? ngx_http_llmgw_openai_reason(o, p, NULL, 0)
              : ngx_http_llmgw_openai_reason(o, p, (char *) o->usage.finish,
                                             o->usage.finish_len);

    /* a client that wants usage gets null if there is none */

    if (o->request.include_usage) {
        p = llmgw_json_literal(p, ",\"usage\":null");
    }

    b->last = (u_char *) llmgw_json_literal(p, "}\n\n");

    return NGX_OK;
}


/*
 * An event is some thirty times its token.  So if enough output waits for a
 * slow client, text is appended to the last event.
 */

static ngx_uint_t
ngx_http_llmgw_openai_join_text(ngx_http_llmgw_stream_t *stream,
    const llmgw_token_t *token)
{
    size_t                    size;
    u_char                   *p;
    ngx_buf_t                *b;
    ngx_http_llmgw_openai_t  *o = stream->data;

    if (stream->out == NULL || o->text_end == NULL
        || ngx_http_llmgw_output_bytes(stream) < NGX_HTTP_LLMGW_OUT_MAX)
    {
        return 0;
    }

    b = stream->last->buf;
    p = o->text_end;
    size = llmgw_json_escape_bytes(token->text, token->text_len);

    if (size > (size_t) (b->end - b->last)) {
        return 0;
    }

    ngx_memmove(p + size, p, b->last - p);
    (void) llmgw_json_escape((char *) p, token->text, token->text_len);

    b->last += size;
    o->text_end = p + size;

    return 1;
}


/* The head, and the beginning of the only choice. */

static char *
ngx_http_llmgw_openai_choice(ngx_http_llmgw_openai_t *o, char *p)
{
    p = llmgw_json_raw(p, o->head.data, o->head.len);

    return llmgw_json_literal(p, "{\"index\":0,");
}


static char *
ngx_http_llmgw_openai_reason(ngx_http_llmgw_openai_t *o, char *p,
    const char *reason, size_t len)
{
    p = o->has_extra
        ? llmgw_json_raw(p, o->extra_choice.data, o->extra_choice.len)
        : llmgw_json_literal(p, ",\"logprobs\":null");
    p = llmgw_json_literal(p, ",\"finish_reason\":");
    p = len ? llmgw_json_string(p, reason, len)
            : llmgw_json_literal(p, "null");

    return llmgw_json_literal(p, "}]");
}


ngx_int_t
ngx_http_llmgw_openai_chunk_usage(ngx_http_llmgw_stream_t *stream)
{
    char                     *p;
    ngx_buf_t                *b;
    ngx_http_llmgw_openai_t  *o = stream->data;

    b = ngx_http_llmgw_openai_room(stream, o->head.len
                                     + NGX_HTTP_LLMGW_OPENAI_FRAME_BYTES);
    if (b == NULL) {
        return NGX_ERROR;
    }

    p = llmgw_json_raw((char *) b->last, o->head.data, o->head.len);
    p = llmgw_json_literal(p, "]");
    p = ngx_http_llmgw_openai_usage(o, p);
    b->last = (u_char *) llmgw_json_literal(p, "}\n\n");

    return NGX_OK;
}


/*
 * An engine may be lost between its last token and its usage.  What plain
 * replicas send is counted by messages, as it always is.
 */

ngx_uint_t
ngx_http_llmgw_openai_knows_usage(ngx_http_llmgw_stream_t *stream)
{
    ngx_http_llmgw_openai_t  *o = stream->data;

    return o->has_usage || !o->has_more
           || (!o->lacks_ids && o->usage.prompt_tokens
               && stream->ask.choices == 1);
}


static char *
ngx_http_llmgw_openai_usage(ngx_http_llmgw_openai_t *o, char *p)
{
    p = llmgw_json_literal(p, ",\"usage\":");

    if (o->extra_usage.len) {
        return llmgw_json_raw(p, o->extra_usage.data, o->extra_usage.len);
    }

    p = llmgw_json_literal(p, "{\"prompt_tokens\":");
    p = llmgw_json_number(p, o->usage.prompt_tokens);
    p = llmgw_json_literal(p, ",\"completion_tokens\":");
    p = llmgw_json_number(p, o->usage.completion_tokens);
    p = llmgw_json_literal(p, ",\"total_tokens\":");
    p = llmgw_json_number(p, o->usage.prompt_tokens
                             + o->usage.completion_tokens);
    p = llmgw_json_literal(p, ",\"prompt_tokens_details\":"
                              "{\"cached_tokens\":");
    p = llmgw_json_number(p, o->usage.cached_tokens);

    return llmgw_json_literal(p, "}}");
}


ngx_int_t
ngx_http_llmgw_openai_chunk_done(ngx_http_llmgw_stream_t *stream)
{
    return ngx_http_llmgw_openai_append(stream, "data: [DONE]\n\n",
                                        sizeof("data: [DONE]\n\n") - 1);
}


/*
 * What was passed on may end within an event; and clients of Anthropic's API
 * and of Responses look at an event's name.
 */

ngx_int_t
ngx_http_llmgw_openai_chunk_error(ngx_http_llmgw_stream_t *stream,
    const ngx_str_t *json)
{
    ngx_http_llmgw_openai_t  *o = stream->data;
    static const char         event[] = "\n\nevent: error\ndata: ";

    if (o->raw_status ? ngx_http_llmgw_openai_append(stream, event,
                                                     sizeof(event) - 1)
                      : ngx_http_llmgw_openai_append(stream, "data: ", 6))
    {
        return NGX_ERROR;
    }

    return ngx_http_llmgw_openai_append(stream, json->data, json->len)
           == NGX_OK
           && ngx_http_llmgw_openai_append(stream, "\n\n", 2) == NGX_OK
           ? NGX_OK : NGX_ERROR;
}


static ngx_int_t
ngx_http_llmgw_openai_append(ngx_http_llmgw_stream_t *stream,
    const void *data, size_t len)
{
    ngx_buf_t  *b;

    b = ngx_http_llmgw_openai_room(stream, len);
    if (b == NULL) {
        return NGX_ERROR;
    }

    b->last = ngx_cpymem(b->last, data, len);

    return NGX_OK;
}


/* A piece of a whole answer's text; the first piece has the head before it. */

ngx_int_t
ngx_http_llmgw_openai_whole_text(ngx_http_llmgw_stream_t *stream,
    const llmgw_token_t *token)
{
    char                     *p;
    size_t                    size;
    ngx_buf_t                *b;
    ngx_http_llmgw_openai_t  *o = stream->data;

    size = llmgw_json_escape_bytes(token->text, token->text_len);

    if (!o->has_text) {
        size += o->head.len + NGX_HTTP_LLMGW_OPENAI_FRAME_BYTES;
    }

    b = ngx_http_llmgw_openai_room(stream, size);
    if (b == NULL) {
        return NGX_ERROR;
    }

    p = (char *) b->last;

    if (!o->has_text) {
        o->has_text = 1;
        p = ngx_http_llmgw_openai_choice(o, p);
        p = ngx_http_llmgw_openai_is_chat(o)
            ? llmgw_json_literal(p, "\"message\":{\"role\":\"assistant\","
                                    "\"content\":\"")
            : llmgw_json_literal(p, "\"text\":\"");
    }

    b->last = (u_char *) llmgw_json_escape(p, token->text, token->text_len);

    return NGX_OK;
}


/* Kept for the answer's end, before which it is written. */

ngx_int_t
ngx_http_llmgw_openai_whole_extra(ngx_http_llmgw_stream_t *stream,
    const Llmgateway__Extra *extra)
{
    u_char                   *p;
    ngx_http_llmgw_openai_t  *o = stream->data;

    o->extra_answer.len = extra->answer.len;
    o->extra_choice.len = extra->choice.len;
    o->extra_usage.len = extra->usage.len;

    p = ngx_pnalloc(stream->request->pool, extra->answer.len
                                           + extra->choice.len
                                           + extra->usage.len + 1);
    if (p == NULL) {
        return NGX_ERROR;
    }

    o->extra_answer.data = p;
    p = ngx_cpymem(p, extra->answer.data, extra->answer.len);

    o->extra_choice.data = p;
    p = ngx_cpymem(p, extra->choice.data, extra->choice.len);

    o->extra_usage.data = p;
    ngx_memcpy(p, extra->usage.data, extra->usage.len);
    o->has_extra = 1;

    return NGX_OK;
}


ngx_int_t
ngx_http_llmgw_openai_whole_end(ngx_http_llmgw_stream_t *stream)
{
    char                     *p;
    ngx_buf_t                *b;
    ngx_http_llmgw_openai_t  *o = stream->data;

    b = ngx_http_llmgw_openai_room(stream, NGX_HTTP_LLMGW_OPENAI_FRAME_BYTES
                                           + o->extra_answer.len
                                           + o->extra_choice.len
                                           + o->extra_usage.len);
    if (b == NULL) {
        return NGX_ERROR;
    }

    p = (char *) b->last;
    p = ngx_http_llmgw_openai_is_chat(o) ? llmgw_json_literal(p, "\"}")
                                         : llmgw_json_literal(p, "\"");
    p = ngx_http_llmgw_openai_reason(o, p, (char *) o->usage.finish,
                                     o->usage.finish_len);

    if (ngx_http_llmgw_openai_knows_usage(stream)) {
        p = ngx_http_llmgw_openai_usage(o, p);
    }

    p = llmgw_json_raw(p, o->extra_answer.data, o->extra_answer.len);
    b->last = (u_char *) llmgw_json_literal(p, "}");

    return NGX_OK;
}
