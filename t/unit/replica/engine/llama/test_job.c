
/* What a request asks of the model, and what it may not ask. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "replica/engine/llama/job.h"


#define HI  "\"messages\":[{\"role\":\"user\",\"content\":\"hi\"}]"

typedef struct {
    Llmgateway__GenerateRequest  request;
    Llmgateway__OpenaiRequest    openai;
    hold_t                       hold;
    job_error_t                  error;
} scene_t;


static core_job_t *
read_body(scene_t *s, Llmgateway__Api api, const char *body)
{
    memset(&s->hold, 0, sizeof(s->hold));
    llmgateway__generate_request__init(&s->request);
    llmgateway__openai_request__init(&s->openai);
    s->request.openai = &s->openai;
    s->openai.api = api;
    s->openai.id = "chatcmpl-1";
    s->openai.body.data = (uint8_t *) body;
    s->openai.body.len = strlen(body);

    return llama_job_create(&s->request, &s->hold, &s->error);
}


static core_job_t *
chat(scene_t *s, const char *body)
{
    return read_body(s, LLMGATEWAY__API__API_CHAT, body);
}


static core_job_t *
completion(scene_t *s, const char *body)
{
    return read_body(s, LLMGATEWAY__API__API_COMPLETIONS, body);
}


static void
done(scene_t *s, core_job_t *job)
{
    assert_non_null(job);
    job->free(job);
    hold_done(&s->hold);
}


static void
refused(scene_t *s, core_job_t *job, const char *param)
{
    assert_null(job);
    assert_int_equal(s->error.status, 400);
    assert_string_equal(s->error.param != NULL ? s->error.param : "", param);
    assert_true(s->error.message[0] != '\0');
    hold_done(&s->hold);
}


static void
test_messages_become_text(void **state)
{
    scene_t      s;
    core_job_t  *job;

    job = chat(&s, "{\"messages\":["
               "{\"role\":\"developer\",\"content\":\"be brief\"},"
               "{\"role\":\"user\",\"content\":["
               "{\"type\":\"text\",\"text\":\"a\"},"
               "{\"type\":\"text\",\"text\":\"b\\u00e4\"}]},"
               "{\"role\":\"assistant\",\"content\":null}]}");
    assert_non_null(job);
    assert_int_equal(job->nmessages, 3);
    assert_string_equal(job->messages[0].role, "system");
    assert_string_equal(job->messages[1].text, "ab\xc3\xa4");
    assert_string_equal(job->messages[2].text, "");
    done(&s, job);
}


static void
test_defaults_are_openai_s(void **state)
{
    scene_t      s;
    uint64_t     seed;
    core_job_t  *job;

    job = chat(&s, "{" HI ",\"stop\":null,\"temperature\":null}");
    assert_non_null(job);
    assert_float_equal(job->sample.temperature, 1, 0);
    assert_float_equal(job->sample.top_p, 1, 0);
    assert_float_equal(job->sample.repeat_penalty, 1, 0);
    assert_int_equal(job->max_tokens, 0);
    assert_false(job->sample.is_logprobs);
    seed = job->sample.seed;
    done(&s, job);

    /* The seed follows from the answer's id: another id has another seed. */

    job = chat(&s, "{" HI "}");
    assert_true(job->sample.seed == seed);
    done(&s, job);

    s.openai.id = "chatcmpl-2";
    job = llama_job_create(&s.request, &s.hold, &s.error);
    assert_true(job->sample.seed != seed);
    done(&s, job);
}


static void
test_all_parameters_arrive(void **state)
{
    scene_t      s;
    core_job_t  *job;

    job = chat(&s, "{" HI ",\"temperature\":0.5,\"top_p\":0.25,\"top_k\":7,"
               "\"min_p\":0.125,\"seed\":-3,\"frequency_penalty\":-1,"
               "\"presence_penalty\":2,\"repeat_penalty\":1.5,"
               "\"logit_bias\":{\"12\":-100},\"stop\":[\"a\",\"b\"],"
               "\"logprobs\":true,\"top_logprobs\":20,\"min_tokens\":4.0,"
               "\"ignore_eos\":true,\"surprise\":1}");
    assert_non_null(job);
    assert_float_equal(job->sample.temperature, .5, 0);
    assert_float_equal(job->sample.top_p, .25, 0);
    assert_int_equal(job->sample.top_k, 7);
    assert_float_equal(job->sample.min_p, .125, 0);
    assert_true(job->sample.seed == (uint64_t) -3);
    assert_float_equal(job->sample.frequency_penalty, -1, 0);
    assert_float_equal(job->sample.presence_penalty, 2, 0);
    assert_float_equal(job->sample.repeat_penalty, 1.5, 0);
    assert_int_equal(job->sample.nbias, 1);
    assert_int_equal(job->sample.bias[0].id, 12);
    assert_int_equal(job->sample.top, 20);
    assert_true(job->sample.is_logprobs);
    assert_int_equal(job->min_tokens, 4);
    assert_true(job->is_endless);
    assert_int_equal(s.hold.nstops, 2);
    assert_string_equal(s.hold.stops[1], "b");
    done(&s, job);
}


static void
test_prompts_are_text_or_ids(void **state)
{
    scene_t      s;
    core_job_t  *job;

    job = completion(&s, "{\"prompt\":\"a\\u0000b\",\"logprobs\":5}");
    assert_non_null(job);
    assert_int_equal(job->text_len, 3);
    assert_int_equal(job->sample.top, 5);
    done(&s, job);

    job = completion(&s, "{\"prompt\":[3,4]}");
    assert_int_equal(job->nids, 2);
    assert_int_equal(job->ids[1], 4);
    done(&s, job);

    job = completion(&s, "{\"prompt\":[[3,4]]}");
    assert_int_equal(job->nids, 2);
    done(&s, job);

    job = completion(&s, "{\"prompt\":[\"one\"]}");
    assert_string_equal(job->text, "one");
    done(&s, job);

    refused(&s, completion(&s, "{\"prompt\":[\"one\",\"two\"]}"), "prompt");
    refused(&s, completion(&s, "{\"prompt\":[-1]}"), "prompt");
    refused(&s, completion(&s, "{\"prompt\":[1.5]}"), "prompt");
    refused(&s, completion(&s, "{\"prompt\":[]}"), "prompt");
    refused(&s, completion(&s, "{}"), "prompt");
}


static void
test_what_it_cannot_do_is_refused(void **state)
{
    scene_t  s;

    refused(&s, chat(&s, "{" HI ",\"tools\":[{}]}"), "tools");
    done(&s, chat(&s, "{" HI ",\"tools\":[{}],\"tool_choice\":\"none\"}"));
    done(&s, chat(&s, "{" HI ",\"tools\":[]}"));
    refused(&s, chat(&s, "{" HI ",\"n\":2}"), "n");
    refused(&s, chat(&s, "{" HI ",\"n\":2.0}"), "n");
    done(&s, chat(&s, "{" HI ",\"n\":1}"));
    refused(&s, chat(&s, "{" HI ",\"response_format\":"
                     "{\"type\":\"json_object\"}}"), "response_format");
    done(&s, chat(&s, "{" HI ",\"response_format\":{\"type\":\"text\"}}"));
    refused(&s, chat(&s, "{" HI ",\"guided_json\":{}}"), "guided_json");
    refused(&s, completion(&s, "{\"prompt\":\"a\",\"echo\":true}"), "echo");
    refused(&s, completion(&s, "{\"prompt\":\"a\",\"suffix\":\"b\"}"),
            "suffix");
    refused(&s, chat(&s, "{\"messages\":[{\"role\":\"user\",\"content\":["
                     "{\"type\":\"image_url\",\"image_url\":{}}]}]}"),
            "messages");
    refused(&s, chat(&s, "{\"messages\":[{\"role\":\"user\",\"content\":"
                     "\"a\\u0000b\"}]}"), "messages");

    assert_null(read_body(&s, LLMGATEWAY__API__API_EMBEDDINGS, "{}"));
    assert_int_equal(s.error.status, 404);
}


static void
test_bad_values_are_refused(void **state)
{
    scene_t  s;

    refused(&s, chat(&s, "{"), "");
    refused(&s, chat(&s, "[]"), "");
    refused(&s, chat(&s, "{}"), "messages");
    refused(&s, chat(&s, "{\"messages\":[]}"), "messages");
    refused(&s, chat(&s, "{\"messages\":[{\"content\":\"a\"}]}"), "messages");
    refused(&s, chat(&s, "{\"messages\":[{\"role\":\"user\",\"content\":7}]}"),
            "messages");
    refused(&s, chat(&s, "{" HI ",\"temperature\":\"hot\"}"), "temperature");
    refused(&s, chat(&s, "{" HI ",\"temperature\":-1}"), "temperature");
    refused(&s, chat(&s, "{" HI ",\"top_p\":1.5}"), "top_p");
    refused(&s, chat(&s, "{" HI ",\"seed\":1.5}"), "seed");
    refused(&s, chat(&s, "{" HI ",\"seed\":1e300}"), "seed");
    refused(&s, chat(&s, "{" HI ",\"logprobs\":true,\"top_logprobs\":21}"),
            "top_logprobs");
    refused(&s, chat(&s, "{" HI ",\"stop\":\"\"}"), "stop");
    refused(&s, chat(&s, "{" HI ",\"stop\":[1]}"), "stop");
    refused(&s, chat(&s, "{" HI ",\"logit_bias\":{\"a\":1}}"), "logit_bias");
    refused(&s, chat(&s, "{" HI ",\"logit_bias\":{\"1\":101}}"),
            "logit_bias");
}


static void
test_limits_hold(void **state)
{
    char        *body;
    size_t       i;
    scene_t      s;
    core_job_t  *job;

    body = calloc(1, JOB_BODY_BYTES + 2);
    memset(body, ' ', JOB_BODY_BYTES);
    memcpy(body, "{" HI "}", strlen("{" HI "}"));
    done(&s, chat(&s, body));
    body[JOB_BODY_BYTES] = ' ';
    assert_null(chat(&s, body));
    assert_int_equal(s.error.status, 413);

    strcpy(body, "{" HI ",\"stop\":[\"a\"");

    for (i = 1; i < HOLD_STOPS_MAX; i++) {
        strcat(body, ",\"a\"");
    }

    strcat(body, "]}");
    job = chat(&s, body);
    assert_int_equal(s.hold.nstops, HOLD_STOPS_MAX);
    done(&s, job);

    strcpy(strrchr(body, ']'), ",\"a\"]}");
    refused(&s, chat(&s, body), "stop");
    free(body);
}


static void
test_infer_is_greedy_and_continues(void **state)
{
    scene_t                s;
    uint32_t               ids[] = { 5, 6 };
    core_job_t            *job;
    Llmgateway__Delivered  delivered;

    memset(&s.hold, 0, sizeof(s.hold));
    llmgateway__generate_request__init(&s.request);
    llmgateway__delivered__init(&delivered);
    s.request.prompt.data = (uint8_t *) "ab";
    s.request.prompt.len = 2;
    s.request.max_tokens = 9;
    s.request.delivered = &delivered;
    delivered.token_ids = ids;
    delivered.n_token_ids = 2;
    delivered.prompt_tokens = 3;
    delivered.prompt_hash = 77;

    job = llama_job_create(&s.request, &s.hold, &s.error);
    assert_non_null(job);
    assert_float_equal(job->sample.temperature, 0, 0);
    assert_string_equal(job->text, "ab");
    assert_int_equal(job->max_tokens, 9);
    assert_int_equal(job->ndelivered, 2);
    assert_int_equal(job->delivered[1], 6);
    assert_int_equal(job->prompt_tokens, 3);
    assert_int_equal(job->prompt_hash, 77);
    done(&s, job);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(test_messages_become_text),
        cmocka_unit_test(test_defaults_are_openai_s),
        cmocka_unit_test(test_all_parameters_arrive),
        cmocka_unit_test(test_prompts_are_text_or_ids),
        cmocka_unit_test(test_what_it_cannot_do_is_refused),
        cmocka_unit_test(test_bad_values_are_refused),
        cmocka_unit_test(test_limits_hold),
        cmocka_unit_test(test_infer_is_greedy_and_continues),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
