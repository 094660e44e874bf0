
/*
 * Asks a server over OpenAI's API: completions or chat, as events or in one
 * piece, by libcurl.  Connections are kept and used again.
 */

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "common/http/curl_loop.h"
#include "common/http/openai_answer.h"
#include "sim/live/drive.h"

#define URL_BYTES     1024
#define HEADER_BYTES  1200

typedef struct {
    curl_loop_t  curl;
    char         url[URL_BYTES];
} openai_t;

typedef struct {
    CURL               *easy;
    struct curl_slist  *headers;
    char               *body;
    openai_answer_t     answer;
} exchange_t;


static int
on_text(void *data, const char *text, size_t len)
{
    if (len > 0) {
        live_ask_text(data);
    }

    return 0;
}


/* Reads the server's token counts from the last object, or the only one. */
static int
on_object(void *data, const json_t *object)
{
    json_t      *usage, *tokens;
    live_ask_t  *ask;

    ask = data;
    usage = json_object_get(object, "usage");
    tokens = json_object_get(usage, "prompt_tokens");

    if (json_is_integer(tokens)) {
        ask->prompt_tokens = json_integer_value(tokens);
    }

    tokens = json_object_get(usage, "completion_tokens");

    if (json_is_integer(tokens)) {
        ask->answer_tokens = json_integer_value(tokens);
    }

    return 0;
}


static const openai_answer_callbacks_t  callbacks = {
    .on_text = on_text,
    .on_object = on_object
};


static void
exchange_done(exchange_t *e)
{
    if (e->easy != NULL) {
        curl_easy_cleanup(e->easy);
    }

    curl_slist_free_all(e->headers);
    openai_answer_done(&e->answer);
    free(e->body);
    free(e);
}


static size_t
on_data(char *data, size_t size, size_t len, void *user)
{
    long         status;
    live_ask_t  *ask;
    exchange_t  *e;

    ask = user;
    e = ask->own;

    if (!e->answer.is_stream) {
        status = 0;
        (void) curl_easy_getinfo(e->easy, CURLINFO_RESPONSE_CODE, &status);
        e->answer.is_stream = status == 200 && !ask->driver->options->is_whole;
    }

    return openai_answer_feed(&e->answer, data, len) == 0 ? len : 0;
}


static void
on_end(void *data, CURL *easy, CURLcode rc)
{
    void        *p;
    long         status;
    char         message[LIVE_ERROR_BYTES];
    live_ask_t  *ask;
    exchange_t  *e;
    const char  *wrong;

    (void) curl_easy_getinfo(easy, CURLINFO_PRIVATE, &p);
    status = 0;
    (void) curl_easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &status);
    ask = p;
    e = ask->own;

    wrong = rc == CURLE_OK ? openai_answer_end(&e->answer, status)
            : e->answer.error[0] != '\0' ? e->answer.error
            : curl_easy_strerror(rc);
    snprintf(message, sizeof(message), "%.*s", LIVE_ERROR_BYTES - 1,
             wrong != NULL ? wrong : "");
    snprintf(ask->finish_reason, sizeof(ask->finish_reason), "%s",
             e->answer.finish_reason);
    exchange_done(e);
    ask->own = NULL;

    live_ask_end(ask, wrong == NULL ? "ok"
                 : rc == CURLE_OPERATION_TIMEDOUT || status == 504
                 ? "timeout" : "error", message);
}


/* The request's body as JSON; NULL: no memory. */
static char *
make_body(const live_ask_t *ask)
{
    int                     rc;
    char                   *prompt, *body;
    size_t                  len;
    json_t                 *json;
    const live_options_t   *o;
    const work_request_t   *r;

    o = ask->driver->options;
    r = ask->request;
    prompt = live_prompt(ask, &len);

    if (prompt == NULL) {
        return NULL;
    }

    json = json_pack("{s:s, s:b}", "model",
                     r->model->len > 0 ? r->model->text : o->model, "stream",
                     !o->is_whole);
    rc = o->is_chat
         ? json_object_set_new(json, "messages", json_pack("[{s:s, s:s}]",
                               "role", "user", "content", prompt))
         : json_object_set_new(json, "prompt", json_string(prompt));
    free(prompt);

    if (!o->is_unbounded) {
        rc |= json_object_set_new(json, "max_tokens",
                                  json_integer(r->output_tokens > 0
                                               ? r->output_tokens : 1));
    }

    if (!o->is_whole) {
        rc |= json_object_set_new(json, "stream_options",
                                  json_pack("{s:b}", "include_usage", 1));
    }

    body = rc == 0 ? json_dumps(json, JSON_COMPACT) : NULL;
    json_decref(json);

    return body;
}


static int
add_header(exchange_t *e, const char *name, const char *value)
{
    char                line[HEADER_BYTES];
    struct curl_slist  *list;

    snprintf(line, sizeof(line), "%s: %.1000s", name, value);
    list = curl_slist_append(e->headers, line);

    if (list == NULL) {
        return -1;
    }

    e->headers = list;

    return 0;
}


static int
make_headers(const live_ask_t *ask, exchange_t *e)
{
    int                    rc;
    char                   text[HEADER_BYTES];
    const work_request_t  *r;

    r = ask->request;
    rc = add_header(e, "Content-Type", "application/json");
    rc |= add_header(e, "x-request-id", ask->id);

    if (ask->driver->options->api_key != NULL) {
        snprintf(text, sizeof(text), "Bearer %.900s",
                 ask->driver->options->api_key);
        rc |= add_header(e, "Authorization", text);
    }

    if (r->slo_class->len > 0) {
        rc |= add_header(e, "x-gateway-inference-objective",
                         r->slo_class->text);
    }

    if (r->tenant->len > 0) {
        rc |= add_header(e, "x-gateway-inference-fairness-id",
                         r->tenant->text);
    }

    if (r->slo_target_us > 0) {
        snprintf(text, sizeof(text), "%lld",
                 (long long) ((r->slo_target_us + 999) / 1000));
        rc |= add_header(e, "x-slo-ttft-ms", text);
    }

    return rc;
}


static int
start(live_ask_t *ask)
{
    openai_t    *o;
    exchange_t  *e;

    o = ask->driver->own;
    e = calloc(1, sizeof(*e));

    if (e == NULL) {
        return -1;
    }

    openai_answer_init(&e->answer, &callbacks, ask);
    e->easy = curl_easy_init();
    e->body = make_body(ask);

    if (e->easy == NULL || e->body == NULL || make_headers(ask, e) != 0) {
        exchange_done(e);
        return -1;
    }

    ask->own = e;
    curl_easy_setopt(e->easy, CURLOPT_URL, o->url);
    curl_easy_setopt(e->easy, CURLOPT_HTTPHEADER, e->headers);
    curl_easy_setopt(e->easy, CURLOPT_HTTP_VERSION, CURL_HTTP_VERSION_1_1);
    curl_easy_setopt(e->easy, CURLOPT_NOPROXY, "*");
    curl_easy_setopt(e->easy, CURLOPT_POSTFIELDS, e->body);
    curl_easy_setopt(e->easy, CURLOPT_POSTFIELDSIZE_LARGE,
                     (curl_off_t) strlen(e->body));
    curl_easy_setopt(e->easy, CURLOPT_WRITEFUNCTION, on_data);
    curl_easy_setopt(e->easy, CURLOPT_WRITEDATA, ask);
    curl_easy_setopt(e->easy, CURLOPT_PRIVATE, ask);

    if (curl_loop_add(&o->curl, e->easy) != 0) {
        exchange_done(e);
        ask->own = NULL;
        return -1;
    }

    return 0;
}


static void
cancel(live_ask_t *ask)
{
    openai_t    *o;
    exchange_t  *e;

    o = ask->driver->own;
    e = ask->own;
    curl_loop_remove(&o->curl, e->easy);
    exchange_done(e);
    ask->own = NULL;
}


static int
openai_open(live_driver_t *driver, work_error_t *error)
{
    size_t       len;
    openai_t    *o;
    const char  *target;

    target = driver->options->target;
    len = strlen(target);

    while (len > 0 && target[len - 1] == '/') {
        len--;
    }

    o = calloc(1, sizeof(*o));

    if (o == NULL || len > URL_BYTES - 40
        || curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK
        || curl_loop_init(&o->curl, driver->loop, on_end, driver) != 0)
    {
        free(o);
        return work_fail(error, "--server-url", 0, "too long, or no memory");
    }

    snprintf(o->url, sizeof(o->url), "%.*s%s%s", (int) len, target,
             len >= 3 && strncmp(target + len - 3, "/v1", 3) == 0 ? ""
             : "/v1", driver->options->is_chat ? "/chat/completions"
                                               : "/completions");
    (void) curl_multi_setopt(o->curl.multi, CURLMOPT_MAXCONNECTS,
                             (long) driver->options->max_in_flight);
    driver->own = o;

    return 0;
}


static void
openai_close(live_driver_t *driver)
{
    openai_t  *o;

    o = driver->own;
    curl_loop_done(&o->curl);
    curl_global_cleanup();
    free(o);
}


const live_protocol_t  live_openai = {
    .open = openai_open,
    .start = start,
    .cancel = cancel,
    .close = openai_close
};
