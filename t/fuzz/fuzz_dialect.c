
/*
 * Bytes as what an engine sends, for each dialect: events of a stream, whole
 * answers, answers to probes; and as bodies of clients, in which members may
 * be wrong.
 *
 * The first byte chooses the dialect and what is played, the second what the
 * client asks for.  Each line is an event, or an answer.  What is made of an
 * engine's bytes as `data` is JSON, whatever the bytes; a piece that is passed
 * on has at most as many tokens as bytes.
 */

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "proto/json/check.h"
#include "proto/json/text.h"
#include "replica/engine/dialect/dialect.h"


#define MAX_STEPS    64
#define MAX_MEMBERS  16


int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);


typedef struct {
    Llmgateway__GenerateRequest  request;
    Llmgateway__OpenaiRequest    openai;
    Llmgateway__Delivered        delivered;
    Llmgateway__Member           members[MAX_MEMBERS];
    Llmgateway__Member          *list[MAX_MEMBERS];
    char                         keys[MAX_MEMBERS][32];
    dialect_facts_t              facts;
} asked_t;

static const char  body[] =
    "{\"model\":\"m\",\"messages\":[{\"role\":\"user\",\"content\":\"a\"}],"
    "\"prompt\":\"a\",\"stream\":true,\"min_tokens\":3}";

static const char *const  names[] = { "openai", "vllm", "sglang", "llamacpp" };


static void
find_members(asked_t *a, const char *text, size_t len)
{
    size_t               n;
    const uint8_t       *bytes = (const uint8_t *) text;
    llmgw_json_t         object;
    llmgw_json_item_t    item;
    llmgw_json_items_t   items;

    if (llmgw_json_check(text, len, &object) != 0) {
        return;
    }

    items = llmgw_json_members(object);

    for (n = 0; n < MAX_MEMBERS && llmgw_json_next(&items, &item); n++) {
        llmgateway__member__init(&a->members[n]);
        llmgw_json_copy(item.key, a->keys[n], sizeof(a->keys[n]));
        a->members[n].key = a->keys[n];
        a->members[n].begin = (uint32_t) (item.key.begin - bytes);
        a->members[n].value = (uint32_t) (item.value.begin - bytes);
        a->members[n].end = (uint32_t) (item.value.end - bytes);
        a->list[n] = &a->members[n];
    }

    a->openai.members = a->list;
    a->openai.n_members = n;
}


static void
ask(asked_t *a, const char *text, size_t len, unsigned how)
{
    static uint32_t  ids[] = { 1, 2 };

    memset(a, 0, sizeof(*a));
    llmgateway__generate_request__init(&a->request);
    llmgateway__openai_request__init(&a->openai);
    llmgateway__delivered__init(&a->delivered);
    dialect_facts_init(&a->facts);
    find_members(a, text, len);

    a->facts.chat_is_text = how & 1;
    a->facts.context = 1000;
    a->request.want = LLMGATEWAY__WANT__WANT_CHUNKS
                      | (how & 2 ? LLMGATEWAY__WANT__WANT_IDS : 0);
    a->request.openai = &a->openai;
    a->openai.api = how & 4 ? LLMGATEWAY__API__API_COMPLETIONS
                            : LLMGATEWAY__API__API_CHAT;
    a->openai.body.data = (uint8_t *) text;
    a->openai.body.len = len;
    a->openai.id = (char *) "id";
    a->openai.model = (char *) "alias";
    a->openai.stream = !(how & 8);
    a->openai.include_usage = (how & 16) != 0;
    a->openai.features = how & 32 ? LLMGATEWAY__FEATURE__FEATURE_TOOLS : 0;

    if (how & 64) {
        a->request.delivered = &a->delivered;
        a->request.tokens_already_generated = 2;
        a->delivered.prompt_tokens = 3;
        a->delivered.prompt_hash = 1;
        a->delivered.token_ids = ids;
        a->delivered.n_token_ids = how & 128 ? 2 : 0;
        a->delivered.text.data = (uint8_t *) "ab";
        a->delivered.text.len = 2;
    }
}


static void
take(dialect_call_t *call)
{
    llmgw_json_t                         value;
    const Llmgateway__GenerateResponse  *m;

    while ((m = dialect_take(call)) != NULL) {
        assert(m->data.len == 0
               || llmgw_json_check((const char *) m->data.data, m->data.len,
                              &value) == 0);
        assert(m->failure == NULL
               || llmgw_json_check((const char *) m->failure->body.data,
                              m->failure->body.len, &value) == 0);
        assert(m->raw_tokens <= (m->raw == NULL ? 0 : m->raw->data.len));
    }
}


static void
check_request(dialect_call_t *call)
{
    llmgw_json_t           value;
    const dialect_http_t  *http;

    http = dialect_http(call);
    assert(http->path[0] == '/');
    assert(llmgw_json_check(http->body, http->body_bytes, &value) == 0);
}


/* Feeds a copy of its own size, so that any read beyond it is noticed. */
static dialect_do_t
feed(dialect_call_t *call, int is_event, const uint8_t *data, size_t len)
{
    char          *copy;
    dialect_do_t   next;

    copy = malloc(len == 0 ? 1 : len);
    assert(copy != NULL);
    memcpy(copy, data, len);
    next = is_event ? dialect_event(call, copy, len)
                    : dialect_bytes(call, copy, len);
    take(call);
    free(copy);

    return next;
}


static void
play(const dialect_t *dialect, asked_t *a, const uint8_t *data, size_t len,
    int is_whole, int checks)
{
    size_t           line, steps;
    const uint8_t   *end;
    dialect_do_t     next;
    dialect_call_t  *call;

    call = dialect_call_create(dialect, &a->facts, &a->request);
    assert(call != NULL);
    next = dialect_start(call);
    take(call);

    for (steps = 0; next == DIALECT_ASK && steps < MAX_STEPS; steps++) {
        if (checks) {
            check_request(call);
        }

        dialect_sent(call);
        dialect_head(call, len % 7 == 6 ? 400 : 200,
                     is_whole ? NULL : "text/event-stream");
        next = DIALECT_MORE;

        while (len > 0 && next == DIALECT_MORE) {
            end = memchr(data, '\n', len);
            line = end == NULL ? len : (size_t) (end - data);
            next = feed(call, dialect_reads_events(call), data, line);
            line += end != NULL;
            data += line;
            len -= line;

            if (!dialect_reads_events(call)) {
                break;
            }
        }

        if (next == DIALECT_MORE) {
            next = dialect_end(call);
            take(call);
        }
    }

    dialect_call_destroy(call);
}


/* An answer that is passed on, in two pieces. */
static void
pass(const dialect_t *dialect, asked_t *a, const uint8_t *data, size_t len,
    unsigned how)
{
    size_t           cut;
    dialect_call_t  *call;

    a->openai.api = LLMGATEWAY__API__API_EMBEDDINGS + how % 4;
    a->openai.path = (char *) "/rerank";
    call = dialect_call_create(dialect, &a->facts, &a->request);
    assert(call != NULL);

    if (dialect_start(call) == DIALECT_ASK) {
        cut = len * (how / 8) / 32;
        dialect_head(call, 200, how & 4 ? "text/event-stream" : NULL);
        feed(call, 0, data, cut);
        feed(call, 0, data + cut, len - cut);
        dialect_end(call);
        take(call);
    }

    dialect_call_destroy(call);
}


static void
probe(const dialect_t *dialect, const uint8_t *data, size_t len)
{
    char                    group[DIALECT_GROUP_BYTES], *copy;
    size_t                  i;
    dialect_facts_t         facts;
    const dialect_probe_t  *p;

    copy = malloc(len == 0 ? 1 : len);
    assert(copy != NULL);
    memcpy(copy, data, len);
    dialect_facts_init(&facts);

    for (p = dialect->probes; p->path != NULL; p++) {
        dialect_learn(p, &facts, 200, copy, len);
        assert(facts.models_bytes <= sizeof(facts.models));
    }

    for (i = 0; dialect_auto_paths[i] != NULL; i++) {
        dialect_detect(dialect_auto_paths[i], 200, copy, len);
    }

    dialect_group(dialect, &facts, group);
    free(copy);
}


int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    char             *copy;
    asked_t           a;
    const dialect_t  *dialect;

    if (len < 2) {
        return 0;
    }

    dialect = dialect_find(names[data[0] % 4]);

    switch (data[0] / 4 % 4) {
    case 0:
        if (data[0] & 64) {
            ask(&a, body, sizeof(body) - 1, 0);
            pass(dialect, &a, data + 2, len - 2, data[1]);
            break;
        }

        /* fall through */

    case 1:
        ask(&a, body, sizeof(body) - 1, data[1]);
        play(dialect, &a, data + 2, len - 2, data[0] / 4 % 4 == 1, 1);
        break;

    case 2:
        probe(dialect, data + 2, len - 2);
        break;

    default:
        copy = malloc(len - 1);
        assert(copy != NULL);
        memcpy(copy, data + 2, len - 2);
        ask(&a, copy, len - 2, data[1]);

        if (data[0] & 64 && a.openai.n_members > 0) {
            a.members[data[0] % a.openai.n_members].end += data[0];
        }

        play(dialect, &a, data, 0, 0, 0);
        free(copy);
    }

    return 0;
}
