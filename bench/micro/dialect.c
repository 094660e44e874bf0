
/*
 * What one event of an engine costs its adapter, from its bytes to the message
 * for the gateway: vLLM's chunk of a chat with ids, and llama.cpp's own.
 */

#include <string.h>

#include "bench/micro/micro.h"
#include "replica/engine/dialect/dialect.h"


#define EVENTS  200000


typedef struct {
    const char      *name;
    const char      *first;     /* precedes the measured event; or NULL */
    const char      *event;
    dialect_call_t  *call;
} stream_t;

static char  body[] = "{\"messages\":[{\"role\":\"user\",\"content\":\"a\"}]}";

static stream_t  streams[] = {
    { "vllm", NULL,
      "{\"id\":\"chatcmpl-2f1c7a5b0e9d4c3a8b6f5e4d3c2b1a09\","
      "\"object\":\"chat.completion.chunk\",\"created\":1700000000,"
      "\"model\":\"Qwen/Qwen3-8B\",\"choices\":[{\"index\":0,\"delta\":"
      "{\"content\":\" token\"},\"logprobs\":null,\"finish_reason\":null,"
      "\"token_ids\":[4037]}]}", NULL },
    { "llamacpp", "{\"prompt\":\"a\"}",
      "{\"index\":0,\"content\":\" token\",\"tokens\":[4037],\"stop\":false,"
      "\"id_slot\":-1,\"tokens_predicted\":0,\"tokens_evaluated\":11}", NULL }
};


static uint64_t
events(void *data, size_t n)
{
    size_t                               len;
    uint64_t                             sum;
    stream_t                            *s;
    const Llmgateway__GenerateResponse  *m;

    s = data;
    len = strlen(s->event);

    for (sum = 0; n > 0; n--) {
        if (dialect_event(s->call, s->event, len) != DIALECT_MORE) {
            exit(1);
        }

        while ((m = dialect_take(s->call)) != NULL) {
            sum += m->n_token_ids;
        }
    }

    return sum;
}


static void
begin(stream_t *s, dialect_facts_t *facts,
    const Llmgateway__GenerateRequest *request)
{
    s->call = micro_must(dialect_call_create(dialect_find(s->name), facts,
                                             request));
    dialect_start(s->call);

    if (s->first != NULL) {
        dialect_head(s->call, 200, "application/json");
        dialect_bytes(s->call, s->first, strlen(s->first));
        dialect_end(s->call);
    }

    dialect_head(s->call, 200, "text/event-stream");
}


int
main(void)
{
    char                         what[64];
    size_t                       i;
    dialect_facts_t              facts;
    Llmgateway__Member           member = LLMGATEWAY__MEMBER__INIT;
    Llmgateway__Member          *members[] = { &member };
    Llmgateway__OpenaiRequest    openai = LLMGATEWAY__OPENAI_REQUEST__INIT;
    Llmgateway__GenerateRequest  request = LLMGATEWAY__GENERATE_REQUEST__INIT;

    dialect_facts_init(&facts);
    facts.chat_is_text = 1;
    member.key = (char *) "messages";
    member.begin = 1;
    member.value = 12;
    member.end = sizeof(body) - 2;
    openai.body.data = (uint8_t *) body;
    openai.body.len = sizeof(body) - 1;
    openai.members = members;
    openai.n_members = 1;
    openai.stream = 1;
    openai.id = (char *) "chatcmpl-1";
    openai.model = (char *) "m";
    request.openai = &openai;
    request.want = LLMGATEWAY__WANT__WANT_IDS | LLMGATEWAY__WANT__WANT_CHUNKS;

    for (i = 0; i < sizeof(streams) / sizeof(streams[0]); i++) {
        begin(&streams[i], &facts, &request);
        snprintf(what, sizeof(what), "an event of %s", streams[i].name);
        micro_measure(what, events, &streams[i], EVENTS);
        dialect_call_destroy(streams[i].call);
    }

    return 0;
}
