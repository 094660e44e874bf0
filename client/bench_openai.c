
/*
 * Streams over OpenAI's API: chat completions as server-sent events, one at a
 * time on each connection, by libcurl.
 *
 *   start -> on_data -> events: check, record ... -> [DONE] -> on_end
 *                         |                                      |
 *                         '--> wrong: counted, cut off --------->'-> idle
 *
 * Apart from the text of each token, these are checked: an answer must have the
 * same id throughout, the role once and in its first chunk, a finish reason,
 * the number of its tokens, and [DONE] at its end.
 */

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/bench_inner.h"
#include "common/http/sse.h"
#include "common/sim_token.h"


#define BENCH_CHAT_REFUSAL  1024    /* bytes kept of a refusal's body; the
                                       reason of a longer one is not read */
#define BENCH_CHAT_HEAD     512     /* room for the request around its prompt */
#define BENCH_CHAT_ID       64

struct bench_chat_s {
    CURL      *easy;
    char      *body;                /* of the request */
    sse_t      events;              /* of the answer */
    char       refusal[BENCH_CHAT_REFUSAL];
    size_t     refusal_len;
    char       id[BENCH_CHAT_ID];
    json_int_t usage;               /* tokens, as the answer reports them */
    uint64_t   rendered_hash;       /* of the prompt as a gateway renders it */
    unsigned   is_running:1;
    unsigned   has_role:1;
    unsigned   has_reason:1;
    unsigned   is_done:1;           /* [DONE] was received */
};


/* --- events */

/*
 * Checks the text of a token: NULL, or what is wrong.  An engine generates from
 * the user's text, but a replica that is only sent rendered prompts generates
 * from the gateway's rendering: the first token shows which it was.
 */
static const char *
bench_openai_text(bench_slot_t *slot, const char *text, size_t len)
{
    const char     *wrong;
    bench_token_t   token = { .text = { len, (uint8_t *) text } };

    wrong = bench_stream_check_text(slot, &token);

    if (wrong != NULL && slot->tokens == 0) {
        slot->prompt_hash = slot->chat->rendered_hash;
        wrong = bench_stream_check_text(slot, &token);
    }

    if (wrong == NULL) {
        bench_stream_record(slot, &token);
    }

    return wrong;
}


static const char *
bench_openai_delta(bench_slot_t *slot, json_t *delta)
{
    json_t        *text;
    bench_chat_t  *chat;

    chat = slot->chat;

    if (json_object_get(delta, "role") != NULL) {
        if (chat->has_role || slot->tokens > 0) {
            return "second role";
        }

        chat->has_role = 1;
    }

    text = json_object_get(delta, "content");

    if (json_string_length(text) == 0) {
        return NULL;
    }

    if (!chat->has_role) {
        return "no role";
    }

    return bench_openai_text(slot, json_string_value(text),
                             json_string_length(text));
}


static const char *
bench_openai_chunk(bench_slot_t *slot, json_t *chunk)
{
    json_t        *choice, *usage;
    const char    *id, *wrong;
    bench_chat_t  *chat;

    chat = slot->chat;
    id = json_string_value(json_object_get(chunk, "id"));

    if (json_object_get(chunk, "error") != NULL) {
        return "error in the stream";
    }

    if (id == NULL || strlen(id) >= sizeof(chat->id)
        || (chat->id[0] != '\0' && strcmp(chat->id, id) != 0))
    {
        return "another id";
    }

    strcpy(chat->id, id);
    usage = json_object_get(chunk, "usage");

    if (json_is_object(usage)) {
        chat->usage = json_integer_value(json_object_get(usage,
                                                         "completion_tokens"));
    }

    choice = json_array_get(json_object_get(chunk, "choices"), 0);

    if (choice == NULL) {
        return usage != NULL ? NULL : "no choice";
    }

    wrong = chat->has_reason ? "text behind the end"
            : bench_openai_delta(slot, json_object_get(choice, "delta"));

    chat->has_reason |= json_is_string(json_object_get(choice,
                                                       "finish_reason"));

    return wrong;
}


static const char *
bench_openai_data(bench_slot_t *slot, const char *data, size_t len)
{
    json_t      *chunk;
    const char  *wrong;

    if (slot->chat->is_done) {
        return "event behind [DONE]";
    }

    if (len == 6 && memcmp(data, "[DONE]", 6) == 0) {
        slot->chat->is_done = 1;
        return NULL;
    }

    chunk = json_loadb(data, len, 0, NULL);

    if (!json_is_object(chunk)) {
        json_decref(chunk);
        return "malformed";
    }

    wrong = bench_openai_chunk(slot, chunk);
    json_decref(chunk);

    return wrong;
}


static int
bench_openai_on_event(void *data, const char *event, size_t len, int is_error)
{
    const char  *wrong;

    wrong = is_error ? "error in the stream"
                     : bench_openai_data(data, event, len);

    if (wrong == NULL) {
        return 0;
    }

    bench_stream_fail(data, BENCH_TALLY_TOKENS, wrong, "");

    return -1;
}


/* --- libcurl's callbacks */

static int
bench_openai_is_refused(const bench_chat_t *chat)
{
    long  status;

    status = 0;
    (void) curl_easy_getinfo(chat->easy, CURLINFO_RESPONSE_CODE, &status);

    return status != 200;
}


static void
bench_openai_keep_refusal(bench_chat_t *chat, const char *data, size_t len)
{
    if (len > sizeof(chat->refusal) - chat->refusal_len) {
        len = sizeof(chat->refusal) - chat->refusal_len;
    }

    memcpy(chat->refusal + chat->refusal_len, data, len);
    chat->refusal_len += len;
}


static size_t
bench_openai_on_data(char *data, size_t size, size_t len, void *user)
{
    sse_rc_t       rc;
    bench_chat_t  *chat;
    bench_slot_t  *slot;

    slot = user;
    chat = slot->chat;

    if (bench_openai_is_refused(chat)) {
        bench_openai_keep_refusal(chat, data, len);
        return len;
    }

    rc = sse_feed(&chat->events, data, len);

    if (rc < 0) {
        bench_stream_fail(slot, BENCH_TALLY_TOKENS, rc == SSE_ELIMIT
                          ? "event too long" : "no memory", "");
    }

    return rc == SSE_DONE ? len : 0;
}


static void
bench_openai_refused(bench_slot_t *slot)
{
    char         status[32];
    long         code;
    json_t      *body;
    const char  *reason;

    (void) curl_easy_getinfo(slot->chat->easy, CURLINFO_RESPONSE_CODE, &code);
    snprintf(status, sizeof(status), "%ld", code);

    body = json_loadb(slot->chat->refusal, slot->chat->refusal_len, 0, NULL);
    reason = json_string_value(json_object_get(json_object_get(body, "error"),
                                               "code"));
    bench_stream_fail(slot, BENCH_TALLY_STATUS, status,
                      reason != NULL ? reason : "");
    json_decref(body);
}


/* What a stream that ended lacks; NULL: nothing. */
static const char *
bench_openai_missing(const bench_slot_t *slot)
{
    const bench_chat_t     *chat;
    const bench_options_t  *o;

    chat = slot->chat;
    o = &slot->conn->bench->options;

    if (slot->tokens < o->max_tokens) {
        return "lost at the end";
    }

    if (!chat->has_reason) {
        return "no finish_reason";
    }

    if (chat->usage != slot->tokens) {
        return "wrong usage";
    }

    return chat->is_done ? NULL : "no [DONE]";
}


static void
bench_openai_on_end(void *data, CURL *easy, CURLcode rc)
{
    void          *p;
    const char    *missing;
    bench_t       *bench;
    bench_slot_t  *slot;

    bench = data;
    (void) curl_easy_getinfo(easy, CURLINFO_PRIVATE, &p);
    slot = p;
    slot->chat->is_running = 0;

    if (bench->phase == BENCH_OVER) {
        bench->nrunning--;
        return;
    }

    if (rc != CURLE_OK) {
        bench_stream_fail(slot, BENCH_TALLY_TRANSPORT,
                          curl_easy_strerror(rc), "");

    } else if (bench_openai_is_refused(slot->chat)) {
        bench_openai_refused(slot);

    } else if ((missing = bench_openai_missing(slot)) != NULL) {
        bench_stream_fail(slot, BENCH_TALLY_TOKENS, missing, "");

    } else {
        bench_stream_succeed(slot);
    }

    bench_stream_idle(slot);
}


/* --- the protocol */

/*
 * Starts a request.  The prompt is put into JSON as it is, since it has no
 * character that would be escaped.
 */
static int
bench_openai_start(bench_slot_t *slot)
{
    int            n;
    size_t         len;
    bench_t       *bench;
    bench_chat_t  *chat;

    bench = slot->conn->bench;
    chat = slot->chat;
    len = bench_stream_prompt(bench);
    slot->prompt_hash = sim_token_hash((const uint8_t *) bench->prompt, len);

    n = snprintf(chat->body, BENCH_CHAT_HEAD + len, "user: %.*s\nassistant:",
                 (int) len, bench->prompt);
    chat->rendered_hash = sim_token_hash((const uint8_t *) chat->body,
                                         (size_t) n);

    n = snprintf(chat->body, BENCH_CHAT_HEAD + len,
                 "{\"model\":\"%.128s\",\"messages\":[{\"role\":\"user\","
                 "\"content\":\"%.*s\"}],\"max_tokens\":%lld,\"stream\":true,"
                 "\"stream_options\":{\"include_usage\":true}}",
                 bench->options.model, (int) len, bench->prompt,
                 (long long) bench->options.max_tokens);

    curl_easy_setopt(chat->easy, CURLOPT_POSTFIELDSIZE, (long) n);

    sse_done(&chat->events);
    sse_init(&chat->events, bench_openai_on_event, slot);
    chat->refusal_len = 0;
    chat->id[0] = '\0';
    chat->usage = -1;
    chat->has_role = 0;
    chat->has_reason = 0;
    chat->is_done = 0;
    chat->is_running = 1;

    return curl_loop_add(&bench->curl, chat->easy);
}


static int
bench_openai_slot(bench_slot_t *slot, const char *url,
    struct curl_slist *headers)
{
    bench_t       *bench;
    bench_chat_t  *chat;

    bench = slot->conn->bench;
    chat = calloc(1, sizeof(bench_chat_t));
    slot->chat = chat;

    if (chat == NULL) {
        return -1;
    }

    chat->body = malloc(BENCH_CHAT_HEAD + (size_t) bench->options.prompt_bytes);
    chat->easy = curl_easy_init();

    if (chat->body == NULL || chat->easy == NULL) {
        return -1;
    }

    curl_easy_setopt(chat->easy, CURLOPT_URL, url);
    curl_easy_setopt(chat->easy, CURLOPT_HTTPHEADER, headers);
    curl_easy_setopt(chat->easy, CURLOPT_HTTP_VERSION, CURL_HTTP_VERSION_1_1);
    curl_easy_setopt(chat->easy, CURLOPT_NOPROXY, "*");
    curl_easy_setopt(chat->easy, CURLOPT_POSTFIELDS, chat->body);
    curl_easy_setopt(chat->easy, CURLOPT_WRITEFUNCTION, bench_openai_on_data);
    curl_easy_setopt(chat->easy, CURLOPT_WRITEDATA, slot);
    curl_easy_setopt(chat->easy, CURLOPT_PRIVATE, slot);
    curl_easy_setopt(chat->easy, CURLOPT_TIMEOUT_MS,
                     (long) bench->options.timeout_ms);
    client_tls_curl(&bench->options.tls, chat->easy);

    return 0;
}


static int
bench_openai_prepare(bench_t *bench)
{
    size_t  i;
    char    url[512];

    if (curl_loop_init(&bench->curl, bench->loop, bench_openai_on_end, bench)
        != 0)
    {
        return -1;
    }

    curl_multi_setopt(bench->curl.multi, CURLMOPT_MAXCONNECTS,
                      (long) bench->nslots);
    bench->headers = client_key_headers(&bench->options.key);
    snprintf(url, sizeof(url), "http%s://%s/v1/chat/completions",
             bench->options.tls.files.ca != NULL ? "s" : "",
             bench->options.gateway);

    for (i = 0; i < bench->nslots; i++) {
        if (bench->headers == NULL
            || bench_openai_slot(&bench->slots[i], url, bench->headers) != 0)
        {
            return -1;
        }
    }

    return 0;
}


static void
bench_openai_done(bench_t *bench)
{
    size_t         i;
    bench_chat_t  *chat;

    for (i = 0; bench->slots != NULL && i < bench->nslots; i++) {
        chat = bench->slots[i].chat;

        if (chat == NULL) {
            continue;
        }

        if (chat->is_running) {
            curl_loop_remove(&bench->curl, chat->easy);
        }

        curl_easy_cleanup(chat->easy);
        free(chat->body);
        sse_done(&chat->events);
        free(chat);
    }

    if (bench->curl.multi != NULL) {
        curl_loop_done(&bench->curl);
    }

    curl_slist_free_all(bench->headers);
}


/* A connection counts as up at once: libcurl connects at the first request. */
static int
bench_openai_open(bench_conn_t *conn)
{
    bench_run_connected(conn->bench);

    return 0;
}


static void
bench_openai_close(bench_conn_t *conn)
{
}


static int
bench_openai_can_call(const bench_conn_t *conn)
{
    return 1;
}


const bench_protocol_t  bench_openai_protocol = {
    .prepare = bench_openai_prepare,
    .done = bench_openai_done,
    .open = bench_openai_open,
    .close = bench_openai_close,
    .can_call = bench_openai_can_call,
    .start = bench_openai_start
};
