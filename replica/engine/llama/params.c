
/*
 * How to choose tokens, and when to stop.
 *
 * Without a seed the answer's id is the seed: it is another one for each
 * request, and the same for each replica that continues it.
 */

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "replica/engine/llama/ask_inner.h"


/* Refuses what this engine cannot do. */
static int
params_check_abilities(ask_t *r)
{
    json_t      *format;
    int64_t      choices;
    size_t       i;
    const char  *choice, *type;

    static const char *const  numbers[] = { "n", "best_of" };
    static const char *const  never[] = {
        "guided_json", "guided_regex", "guided_choice", "guided_grammar",
        "structured_outputs", "grammar", "json_schema", "suffix",
        "prompt_logprobs"
    };

    choice = json_string_value(ask_get(r, "tool_choice"));

    if ((json_array_size(ask_get(r, "tools")) > 0
         || json_array_size(ask_get(r, "functions")) > 0)
        && (choice == NULL || strcmp(choice, "none") != 0))
    {
        return ask_refuse(r, "tools", "this engine does not call tools");
    }

    format = ask_get(r, "response_format");
    type = json_string_value(json_object_get(format, "type"));

    if (format != NULL && (type == NULL || strcmp(type, "text") != 0)) {
        return ask_refuse(r, "response_format", "this engine writes text "
                          "only");
    }

    for (i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
        choices = 1;

        if (ask_integer(r, numbers[i], 1, 1, &choices) != 0) {
            return ask_refuse(r, numbers[i], "this engine gives one choice");
        }
    }

    for (i = 0; i < sizeof(never) / sizeof(never[0]); i++) {
        if (ask_get(r, never[i]) != NULL) {
            return ask_refuse(r, never[i], "this engine does not know '%s'",
                              never[i]);
        }
    }

    if (json_is_true(ask_get(r, "echo"))) {
        return ask_refuse(r, "echo", "this engine does not echo");
    }

    return 0;
}


static int
params_add_stop(ask_t *r, const json_t *value)
{
    hold_t  *h;

    h = r->hold;

    if (!json_is_string(value) || json_string_length(value) == 0
        || json_string_length(value) > HOLD_STOP_BYTES
        || h->nstops == HOLD_STOPS_MAX)
    {
        return ask_refuse(r, "stop", "'stop' is up to %d strings of 1 to %d "
                          "bytes", HOLD_STOPS_MAX, HOLD_STOP_BYTES);
    }

    h->stops[h->nstops] = ask_string(value);

    if (h->stops[h->nstops] == NULL) {
        return ask_refuse(r, "stop", "this engine reads text without NUL");
    }

    h->nstops++;

    return 0;
}


static int
params_read_stops(ask_t *r)
{
    json_t  *stop, *value;
    size_t   i;

    stop = ask_get(r, "stop");

    if (stop == NULL) {
        return 0;
    }

    if (!json_is_array(stop)) {
        return params_add_stop(r, stop);
    }

    json_array_foreach(stop, i, value) {
        if (params_add_stop(r, value) != 0) {
            return -1;
        }
    }

    return 0;
}


static int
params_read_bias(ask_t *r)
{
    char             *end;
    json_t           *biases, *value;
    const char       *key;
    sample_params_t  *s;
    unsigned long     id;

    s = &r->job->sample;
    biases = ask_get(r, "logit_bias");

    if (biases == NULL) {
        return 0;
    }

    if (!json_is_object(biases)
        || json_object_size(biases) > SAMPLE_BIAS_MAX)
    {
        return ask_refuse(r, "logit_bias", "'logit_bias' is an object of at "
                          "most %d token ids", SAMPLE_BIAS_MAX);
    }

    s->bias = calloc(json_object_size(biases) + 1, sizeof(sample_bias_t));

    if (s->bias == NULL) {
        return -1;
    }

    json_object_foreach(biases, key, value) {
        id = strtoul(key, &end, 10);

        if (*key < '0' || *key > '9' || *end != '\0' || id > INT32_MAX
            || !json_is_number(value)
            || fabs(json_number_value(value)) > 100)
        {
            return ask_refuse(r, "logit_bias", "'logit_bias' gives token ids "
                              "numbers from -100 to 100");
        }

        s->bias[s->nbias].id = (uint32_t) id;
        s->bias[s->nbias].bias = (float) json_number_value(value);
        s->nbias++;
    }

    return 0;
}


/* In a chat: a boolean, and a number in another key.  In completions: the
   number. */
static int
params_read_logprobs(ask_t *r)
{
    int64_t           top;
    sample_params_t  *s;

    s = &r->job->sample;
    top = 0;

    if (r->request->openai->api == LLMGATEWAY__API__API_CHAT) {
        s->is_logprobs = json_is_true(ask_get(r, "logprobs"));

        if (ask_integer(r, "top_logprobs", 0, SAMPLE_TOP_MAX, &top) != 0) {
            return -1;
        }

    } else {
        s->is_logprobs = (ask_get(r, "logprobs") != NULL);

        if (ask_integer(r, "logprobs", 0, SAMPLE_TOP_MAX, &top) != 0) {
            return -1;
        }
    }

    s->top = s->is_logprobs ? (uint32_t) top : 0;

    return 0;
}


static int
params_read_sampling(ask_t *r)
{
    int64_t           top_k, seed;
    sample_params_t  *s;
    const char       *id;

    s = &r->job->sample;
    id = r->request->openai->id;
    s->temperature = 1;
    top_k = 0;
    seed = (int64_t) XXH3_64bits(id, strlen(id));

    if (ask_number(r, "temperature", 0, 100, &s->temperature) != 0
        || ask_number(r, "top_p", 0, 1, &s->top_p) != 0
        || ask_number(r, "min_p", 0, 1, &s->min_p) != 0
        || ask_integer(r, "top_k", -1, INT32_MAX, &top_k) != 0
        || ask_integer(r, "seed", INT64_MIN, INT64_MAX, &seed) != 0
        || ask_number(r, "frequency_penalty", -2, 2, &s->frequency_penalty)
           != 0
        || ask_number(r, "presence_penalty", -2, 2, &s->presence_penalty)
           != 0
        || ask_number(r, "repeat_penalty", .01, 100, &s->repeat_penalty) != 0
        || ask_number(r, "repetition_penalty", .01, 100, &s->repeat_penalty)
           != 0)
    {
        return -1;
    }

    s->top_k = top_k > 0 ? (uint32_t) top_k : 0;
    s->seed = (uint64_t) seed;

    return params_read_bias(r);
}


static int
params_read_lengths(ask_t *r)
{
    int64_t  least;

    least = 0;

    if (ask_integer(r, "min_tokens", 0, INT32_MAX, &least) != 0) {
        return -1;
    }

    r->job->min_tokens = (uint32_t) least;
    r->job->is_endless = json_is_true(ask_get(r, "ignore_eos"));

    if (r->request->openai->max_tokens > 0) {
        r->job->max_tokens = (uint32_t) r->request->openai->max_tokens;
    }

    return 0;
}


int
params_read(ask_t *r)
{
    if (params_check_abilities(r) != 0 || params_read_lengths(r) != 0
        || params_read_sampling(r) != 0 || params_read_stops(r) != 0)
    {
        return -1;
    }

    return params_read_logprobs(r);
}
