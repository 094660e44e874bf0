
#include <stdlib.h>
#include <string.h>

#include "proto/token_message.h"
#include "proto/utf8.h"


#define TEXT_TAG         0x0a       /* field 1: bytes, with a length */
#define FINAL_TAG        0x10       /* field 2: a number */

#define LEN_BYTES_MAX    4          /* 256 MiB: more than any message has */


struct llmgw_token_block_s {
    llmgw_token_block_t  *next;
    uint8_t               bytes[] __attribute__((aligned(16)));
};


static const uint8_t  final_message[] = { FINAL_TAG, 1 };

const llmgw_token_t  llmgw_token_final = {
    final_message, sizeof(final_message), final_message, 0, 1, 0, NULL
};


/*
 * Reads a length.  NULL: it is not in its shortest form, too large, or cut off.
 */
static const uint8_t *
token_len(const uint8_t *p, const uint8_t *end, size_t *len)
{
    unsigned  i;

    *len = 0;

    for (i = 0; i < LEN_BYTES_MAX && p < end; i++) {
        *len |= (size_t) (*p & 0x7f) << (7 * i);

        if (*p++ < 0x80) {
            return p[-1] == 0 ? NULL : p;
        }
    }

    return NULL;
}


int
llmgw_token_message_read(const uint8_t *message, size_t len,
    llmgw_token_t *token)
{
    const uint8_t  *p, *end;

    p = message;
    end = message + len;

    token->message = message;
    token->len = len;
    token->text = p;
    token->text_len = 0;
    token->is_final = 0;
    token->count = 1;
    token->more = NULL;

    if (len > 0 && *p == TEXT_TAG) {
        p = token_len(p + 1, end, &token->text_len);

        if (p == NULL || token->text_len > (size_t) (end - p)) {
            return 0;
        }

        token->text = p;
        p += token->text_len;
    }

    if (end - p == 2 && p[0] == FINAL_TAG && p[1] == 1) {
        token->is_final = 1;
        token->count = token->text_len > 0;
        return 1;
    }

    return p == end;
}


static void *
arena_alloc(void *data, size_t size)
{
    uint8_t              *p;
    llmgw_token_arena_t  *arena = data;
    llmgw_token_block_t  *block;

    size = (size + 15) & ~(size_t) 15;

    if (size <= sizeof(arena->bytes) - arena->used) {
        p = arena->bytes + arena->used;
        arena->used += size;
        return p;
    }

    if (size > LLMGW_TOKEN_ARENA_MAX - arena->taken) {
        return NULL;
    }

    block = malloc(sizeof(llmgw_token_block_t) + size);
    if (block == NULL) {
        return NULL;
    }

    block->next = arena->blocks;
    arena->blocks = block;
    arena->taken += size;

    return block->bytes;
}


static void
arena_free(void *data, void *p)
{
    /* the arena is freed as a whole */
}


int
llmgw_token_is_output(const llmgw_token_t *token)
{
    const Llmgateway__GenerateResponse  *more;

    more = token->more;

    return token->is_final || token->text_len || more == NULL
           || more->data.len || more->n_token_ids || more->n_finish
           || more->raw;
}


void
llmgw_token_arena_done(llmgw_token_arena_t *arena)
{
    llmgw_token_block_t  *block;

    while (arena->blocks) {
        block = arena->blocks;
        arena->blocks = block->next;
        free(block);
    }
}


/* A line of an event stream: text, and no byte that would end the line. */
static int
is_line(const ProtobufCBinaryData *bytes)
{
    if (bytes->len == 0) {
        return 1;
    }

    return memchr(bytes->data, '\n', bytes->len) == NULL
           && memchr(bytes->data, '\r', bytes->len) == NULL
           && llmgw_utf8_is_valid(bytes->data, bytes->len);
}


/* Characters valid in a header field. */
static int
is_word(const char *word)
{
    size_t  i;

    for (i = 0; word[i]; i++) {
        if (word[i] < ' ' || word[i] > '~' || i == LLMGW_TOKEN_WORD_MAX) {
            return 0;
        }
    }

    return 1;
}


static int
is_text(const ProtobufCBinaryData *bytes)
{
    return bytes->len <= LLMGW_TOKEN_PIECE_MAX
           && llmgw_utf8_is_valid(bytes->data, bytes->len);
}


static int
failure_is_valid(const Llmgateway__Failure *failure)
{
    return failure->status >= 400 && failure->status <= 499
           && is_text(&failure->body);
}


/*
 * A line end in JSON is a space between two of its tokens, but would end a line
 * of an event stream.
 */
static void
make_line(ProtobufCBinaryData *json)
{
    size_t  i;

    for (i = 0; i < json->len; i++) {
        if (json->data[i] == '\n' || json->data[i] == '\r') {
            json->data[i] = ' ';
        }
    }
}


/*
 * Bytes after an answer whose status has no body would be taken for the next
 * answer of the connection (RFC 9112, section 6.3).
 */
static int
status_has_body(uint32_t status)
{
    return (status >= 200 && status <= 299 && status != 204 && status != 205)
           || (status >= 400 && status <= 599);
}


static int
raw_is_valid(const Llmgateway__Raw *raw)
{
    return (raw->status == 0 || status_has_body(raw->status))
           && raw->data.len <= LLMGW_TOKEN_PIECE_MAX
           && is_word(raw->content_type);
}


static int
extra_is_valid(const Llmgateway__Extra *extra)
{
    return is_text(&extra->answer) && is_text(&extra->choice)
           && is_text(&extra->usage);
}


static int
more_is_valid(const Llmgateway__GenerateResponse *more)
{
    size_t  i;

    for (i = 0; i < more->n_finish; i++) {
        if (!is_word(more->finish[i]->reason)) {
            return 0;
        }
    }

    return is_line(&more->data)
           && more->raw_tokens <= (more->raw ? more->raw->data.len : 0)
           && (more->failure == NULL || failure_is_valid(more->failure))
           && (more->raw == NULL || raw_is_valid(more->raw))
           && (more->extra == NULL || extra_is_valid(more->extra))
           && (more->shards == NULL || is_word(more->shards->last))
           && is_word(more->response_id);
}


static int
has_more(const Llmgateway__GenerateResponse *response)
{
    return response->data.len || response->n_token_ids || response->n_finish
           || response->usage || response->progress || response->failure
           || response->raw || response->prompt || response->resume_by
           || response->extra || response->shards;
}


int
llmgw_token_message_decode(const uint8_t *message, size_t len, int has_data,
    llmgw_token_arena_t *arena, llmgw_token_t *token)
{
    size_t                         plain_len;
    uint8_t                       *p;
    Llmgateway__GenerateResponse   plain, *response;

    arena->allocator.alloc = arena_alloc;
    arena->allocator.free = arena_free;
    arena->allocator.allocator_data = arena;
    arena->blocks = NULL;
    arena->used = 0;
    arena->taken = 0;

    response = llmgateway__generate_response__unpack(&arena->allocator, len,
                                                     message);
    if (response == NULL) {
        return 0;
    }

    if (!has_data) {
        response->data.len = 0;
    }

    if (!more_is_valid(response)) {
        return 0;
    }

    if (response->failure) {
        make_line(&response->failure->body);
    }

    llmgateway__generate_response__init(&plain);
    plain.token = response->token;
    plain.is_final = response->is_final;

    plain_len = llmgateway__generate_response__get_packed_size(&plain);

    p = arena_alloc(arena, plain_len);
    if (p == NULL) {
        return 0;
    }

    llmgateway__generate_response__pack(&plain, p);
    (void) llmgw_token_message_read(p, plain_len, token);

    if (has_more(response)) {
        token->more = response;
        token->count = response->n_token_ids ? response->n_token_ids
                       : token->text_len ? 1 : response->raw_tokens;
    }

    return 1;
}
