
/*
 * llmgw-client openai.
 *
 * One request by libcurl, which blocks: there is nothing else to do meanwhile.
 * The body of the answer goes to common/http/openai_answer.h as it comes; text
 * and objects come back and are written at once.
 */

#include <curl/curl.h>
#include <jansson.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/options.h"
#include "client/client_key.h"
#include "client/client_tls.h"
#include "client/infer_output.h"
#include "client/openai.h"
#include "common/http/openai_answer.h"


#define OPENAI_CONNECT_TIMEOUT_MS  10000L
#define OPENAI_URL_BYTES           1024

typedef struct {
    const char  *url;
    const char  *model;
    const char  *system;
    int64_t      max_tokens;
    double       temperature;
    uint64_t     timeout_ms;
    int          is_whole;
    int          is_completion;
    int          is_json;
    client_tls_t tls;
    client_key_t key;
} openai_options_t;

typedef struct {
    openai_options_t    options;
    openai_answer_t     answer;
    CURL               *easy;
    struct curl_slist  *headers;
    char               *body;           /* of the request */
    char                url[OPENAI_URL_BYTES];
    int                 has_text;
} openai_t;


#define FIELD(name)  offsetof(openai_options_t, name)

static const option_t  openai_table[] = {

    { "url", OPTION_STRING, FIELD(url), "http://127.0.0.1:8080/v1", "URL",
      "where the API begins", 0, 0, 0 },

    { "model", OPTION_STRING, FIELD(model), NULL, "NAME",
      "the model, as /v1/models names it", 0, 0, 1 },

    { "system", OPTION_STRING, FIELD(system), "", "TEXT",
      "a system message before the prompt", 0, 0, 0 },

    { "max-tokens", OPTION_INT, FIELD(max_tokens), "0", NULL,
      "limit for the answer; 0: the server's own", 0, INT32_MAX, 0 },

    { "temperature", OPTION_DOUBLE, FIELD(temperature), "-1", "N",
      "0: the likeliest tokens; -1: the server's own", -1, 2, 0 },

    { "completions", OPTION_FLAG, FIELD(is_completion), NULL, NULL,
      "continue the prompt as it is: /completions", 0, 0, 0 },

    { "no-stream", OPTION_FLAG, FIELD(is_whole), NULL, NULL,
      "ask for the answer in one piece", 0, 0, 0 },

    { "json", OPTION_FLAG, FIELD(is_json), NULL, NULL,
      "print the objects of the answer, one a line", 0, 0, 0 },

    { "timeout", OPTION_DURATION, FIELD(timeout_ms), "0", NULL,
      "limit for the whole answer; 0: no limit", 0, 86400000, 0 },

    CLIENT_TLS_FILES,

    CLIENT_KEY_OPTION,

    { .name = NULL }
};

static const options_spec_t  openai_spec = {
    "llmgw-client openai",
    "--model NAME [options] PROMPT",
    "Asks a model over OpenAI's API and prints what it says as it comes.",
    "exit status: 0 the answer was complete, 1 it was not, 2 usage",
    openai_table
};


/* NULL, or what is wrong with the options. */
static const char *
openai_options_error(openai_options_t *o, char *error)
{
    if (o->tls.files.ca != NULL && strncmp(o->url, "https://", 8) != 0) {
        return "--tls-ca: needs a --url that begins with https://";
    }

    return client_tls_check(&o->tls, error) != 0
           || client_key_read(&o->key, error) != 0 ? error : NULL;
}


/* --- the request */

/* NULL: no memory, or the words are not UTF-8. */
static json_t *
openai_messages(const char *system, const char *prompt)
{
    if (*system == '\0') {
        return json_pack("[{s:s, s:s}]", "role", "user", "content", prompt);
    }

    return json_pack("[{s:s, s:s}, {s:s, s:s}]",
                     "role", "system", "content", system,
                     "role", "user", "content", prompt);
}


static char *
openai_body(const openai_options_t *o, const char *prompt)
{
    int      rc;
    char    *body;
    json_t  *request;

    request = json_pack("{s:s, s:b}", "model", o->model,
                        "stream", !o->is_whole);

    rc = o->is_completion
         ? json_object_set_new(request, "prompt", json_string(prompt))
         : json_object_set_new(request, "messages",
                               openai_messages(o->system, prompt));

    if (o->max_tokens > 0) {
        rc |= json_object_set_new(request, "max_tokens",
                                  json_integer(o->max_tokens));
    }

    if (o->temperature >= 0) {
        rc |= json_object_set_new(request, "temperature",
                                  json_real(o->temperature));
    }

    if (!o->is_whole && o->is_json) {
        rc |= json_object_set_new(request, "stream_options",
                                  json_pack("{s:b}", "include_usage", 1));
    }

    body = rc == 0 ? json_dumps(request, JSON_COMPACT) : NULL;
    json_decref(request);

    return body;
}


/* --- the answer */

static int
openai_on_text(void *data, const char *text, size_t len)
{
    openai_t  *openai;

    openai = data;

    if (openai->options.is_json) {
        return 0;
    }

    openai->has_text = 1;
    fwrite(text, 1, len, stdout);

    return fflush(stdout) == 0 ? 0 : -1;
}


static int
openai_on_object(void *data, const json_t *object)
{
    int        rc;
    openai_t  *openai;

    openai = data;

    if (!openai->options.is_json) {
        return 0;
    }

    rc = json_dumpf(object, stdout, JSON_COMPACT);
    putchar('\n');

    return rc == 0 && fflush(stdout) == 0 ? 0 : -1;
}


/* Receives a part of the body; the first one decides how the body is read. */
static size_t
openai_on_body(char *bytes, size_t size, size_t len, void *data)
{
    long        status;
    openai_t   *openai;
    const char *type;

    openai = data;
    status = 0;
    type = NULL;
    (void) curl_easy_getinfo(openai->easy, CURLINFO_CONTENT_TYPE, &type);
    (void) curl_easy_getinfo(openai->easy, CURLINFO_RESPONSE_CODE, &status);

    openai->answer.is_stream = status == 200 && type != NULL
                               && strncmp(type, "text/event-stream", 17) == 0;

    return openai_answer_feed(&openai->answer, bytes, len) == 0 ? len : 0;
}


/* --- the call */

static int
openai_prepare(openai_t *openai, const char *prompt)
{
    static const openai_answer_callbacks_t  callbacks = {
        .on_text = openai_on_text,
        .on_object = openai_on_object
    };

    const openai_options_t  *o = &openai->options;

    openai_answer_init(&openai->answer, &callbacks, openai);

    snprintf(openai->url, sizeof(openai->url), "%s/%s", o->url,
             o->is_completion ? "completions" : "chat/completions");

    openai->body = openai_body(o, prompt);
    openai->headers = client_key_headers(&o->key);
    openai->easy = curl_easy_init();

    if (openai->body == NULL || openai->headers == NULL || openai->easy == NULL)
    {
        return -1;
    }

    curl_easy_setopt(openai->easy, CURLOPT_URL, openai->url);
    curl_easy_setopt(openai->easy, CURLOPT_PROTOCOLS_STR, "http,https");
    curl_easy_setopt(openai->easy, CURLOPT_NOPROXY, "*");
    curl_easy_setopt(openai->easy, CURLOPT_HTTPHEADER, openai->headers);
    curl_easy_setopt(openai->easy, CURLOPT_POSTFIELDS, openai->body);
    curl_easy_setopt(openai->easy, CURLOPT_WRITEFUNCTION, openai_on_body);
    curl_easy_setopt(openai->easy, CURLOPT_WRITEDATA, openai);
    curl_easy_setopt(openai->easy, CURLOPT_CONNECTTIMEOUT_MS,
                     OPENAI_CONNECT_TIMEOUT_MS);
    curl_easy_setopt(openai->easy, CURLOPT_TIMEOUT_MS, (long) o->timeout_ms);
    client_tls_curl(&o->tls, openai->easy);

    return 0;
}


/*
 * Sends the request.  Returns NULL if the answer was complete, else what is
 * wrong.
 */
static const char *
openai_call(openai_t *openai)
{
    long        status;
    CURLcode    rc;

    rc = curl_easy_perform(openai->easy);

    if (rc == CURLE_WRITE_ERROR) {
        return openai->answer.error;
    }

    if (rc != CURLE_OK) {
        return curl_easy_strerror(rc);
    }

    (void) curl_easy_getinfo(openai->easy, CURLINFO_RESPONSE_CODE, &status);

    return openai_answer_end(&openai->answer, status);
}


static int
openai_run(openai_t *openai, const char *prompt)
{
    const char  *wrong;

    wrong = openai_prepare(openai, prompt) == 0
            ? openai_call(openai) : "no memory, or the prompt is not UTF-8";

    if (openai->has_text) {
        putchar('\n');
        fflush(stdout);
    }

    if (wrong != NULL) {
        fputs("llmgw-client: ", stderr);
        infer_output_clean(stderr, wrong);
        fputs("\n", stderr);

    } else if (!openai->options.is_json
               && strcmp(openai->answer.finish_reason, "stop") != 0)
    {
        fputs("llmgw-client: finish_reason ", stderr);
        infer_output_clean(stderr, openai->answer.finish_reason);
        fputs("\n", stderr);
    }

    curl_easy_cleanup(openai->easy);
    curl_slist_free_all(openai->headers);
    free(openai->body);
    openai_answer_done(&openai->answer);

    return wrong == NULL ? 0 : 1;
}


int
openai_main(int argc, char **argv)
{
    int           rc, rest;
    char          error[TLS_ERROR_BYTES];
    openai_t      openai;
    const char   *wrong;
    options_rc_t  parsed;

    memset(&openai, 0, sizeof(openai));
    parsed = options_parse(&openai_spec, &openai.options, argc, argv, 1, &rest);
    rc = parsed == OPTIONS_EUSAGE ? 2 : 0;

    if (parsed == OPTIONS_DONE) {
        wrong = argc - rest == 1 ? openai_options_error(&openai.options, error)
                : rest == argc ? "the prompt is missing, see --help"
                : "the prompt is one word: quote it, see --help";

        if (wrong != NULL) {
            fprintf(stderr, "llmgw-client openai: %s\n", wrong);
            rc = 2;

        } else {
            rc = openai_run(&openai, argv[rest]);
        }
    }

    options_done(&openai_spec, &openai.options);

    return rc;
}
