
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "proto/members/members.h"
#include "replica/engine/dialect/dialect_inner.h"
#include "replica/engine/dialect/facts.h"


static const dialect_t *const  facts_dialects[] = {
    &dialect_openai, &dialect_vllm, &dialect_sglang, &dialect_llamacpp
};

/* /props is llama.cpp's alone; /version is that of others, too. */
const char *const  dialect_auto_paths[] = {
    "/v1/models", "/props", "/version", NULL
};


void
dialect_facts_init(dialect_facts_t *facts)
{
    memset(facts, 0, sizeof(dialect_facts_t));
    facts->state = DIALECT_DOWN;
    facts->capacity = -1;
    dialect_facts_forget(facts);
}


void
dialect_facts_forget(dialect_facts_t *facts)
{
    facts->running = -1;
    facts->waiting = -1;
    facts->kv_permille = -1;
    facts->kv_free_blocks = -1;
    facts->hits = -1;
    facts->looked_up = -1;
    facts->hit_permille = -1;
    facts->progress = -1;
}


const dialect_t *
dialect_find(const char *name)
{
    size_t  i;

    for (i = 0; i < sizeof(facts_dialects) / sizeof(facts_dialects[0]); i++) {
        if (strcmp(facts_dialects[i]->name, name) == 0) {
            return facts_dialects[i];
        }
    }

    return NULL;
}


static const dialect_t *
facts_owner(llmgw_json_t models)
{
    size_t        i;
    llmgw_json_t  owner;

    owner = llmgw_json_member(
                llmgw_json_first(llmgw_json_member(models, "data")),
                "owned_by");

    for (i = 0; i < sizeof(facts_dialects) / sizeof(facts_dialects[0]); i++) {
        if (facts_dialects[i] != &dialect_openai
            && llmgw_json_is(owner, facts_dialects[i]->name))
        {
            return facts_dialects[i];
        }
    }

    return NULL;
}


const dialect_t *
dialect_detect(const char *path, unsigned status, const char *body, size_t len)
{
    llmgw_json_t  object;

    if (facts_object(status, body, len, &object) != 0) {
        return NULL;
    }

    if (strcmp(path, "/v1/models") == 0) {
        return facts_owner(object);
    }

    if (strcmp(path, "/props") == 0
        && (llmgw_json_member(object, "total_slots").kind
            || llmgw_json_member(object, "default_generation_settings").kind))
    {
        return &dialect_llamacpp;
    }

    if (strcmp(path, "/version") == 0
        && llmgw_json_member(object, "version").kind == LLMGW_JSON_STRING)
    {
        return &dialect_vllm;
    }

    return NULL;
}


int
dialect_learn(const dialect_probe_t *probe, dialect_facts_t *facts,
    unsigned status, const char *body, size_t len)
{
    return probe->learn(facts, status, body, len);
}


void
dialect_group(const dialect_t *dialect, const dialect_facts_t *facts,
    char group[DIALECT_GROUP_BYTES])
{
    XXH3_state_t  state;

    group[0] = '\0';

    if (facts->nmodels == 0) {
        return;
    }

    XXH3_64bits_reset(&state);
    XXH3_64bits_update(&state, facts->models, strlen(facts->models) + 1);
    XXH3_64bits_update(&state, facts->version, strlen(facts->version) + 1);
    XXH3_64bits_update(&state, facts->numerics, sizeof(facts->numerics));

    snprintf(group, DIALECT_GROUP_BYTES, "%s-%016" PRIx64, dialect->name,
             (uint64_t) XXH3_64bits_digest(&state));
}


int
facts_object(unsigned status, const char *body, size_t len,
    llmgw_json_t *object)
{
    return status == 200 && llmgw_json_check(body, len, object) == 0
           && object->kind == LLMGW_JSON_OBJECT ? 0 : -1;
}


int
facts_health(dialect_facts_t *facts, unsigned status, dialect_state_t ill)
{
    if (status / 100 == 5) {
        facts->state = ill;
        return 0;
    }

    if (status != 200) {
        return -1;
    }

    facts->state = DIALECT_READY;

    return 0;
}


static int64_t
facts_whole(int64_t permille)
{
    return permille < 0 ? -1 : permille / 1000;
}


static int32_t
facts_share(int64_t permille)
{
    return (int32_t) (permille > 1000 ? 1000 : permille);
}


/* Free blocks by the share in use, so exact to a thousandth of the cache. */
static int64_t
facts_free_blocks(int64_t blocks, int32_t kv_permille)
{
    return blocks < 0 || blocks > LLMGW_ENGINE_MAX_BLOCKS || kv_permille < 0
           ? -1 : blocks - blocks * kv_permille / 1000;
}


int
facts_metrics(dialect_facts_t *facts, unsigned status, const char *body,
    size_t len, const prom_name_t *names)
{
    int64_t  values[FACTS_NMETRICS];

    if (status != 200
        || prom_read(body, len, names, values, FACTS_NMETRICS) != 0)
    {
        return -1;
    }

    facts->running = facts_whole(values[FACTS_RUNNING]);
    facts->waiting = facts_whole(values[FACTS_WAITING]);
    facts->kv_permille = facts_share(values[FACTS_KV]);
    facts->kv_free_blocks = facts_free_blocks(facts_whole(values[FACTS_BLOCKS]),
                                              facts->kv_permille);
    facts->hits = facts_whole(values[FACTS_HITS]);
    facts->looked_up = facts_whole(values[FACTS_LOOKED_UP]);
    facts->hit_permille = facts_share(values[FACTS_HIT_SHARE]);
    facts->progress = facts_whole(values[FACTS_PROGRESS]);

    return 0;
}


void
facts_mix(uint64_t *numerics, const char *name, llmgw_json_t value)
{
    XXH3_state_t  state;

    if (llmgw_json_is_null(value)) {
        return;
    }

    XXH3_64bits_reset(&state);
    XXH3_64bits_update(&state, name, strlen(name) + 1);
    XXH3_64bits_update(&state, value.begin, llmgw_json_bytes(value));
    *numerics ^= XXH3_64bits_digest(&state);
}


void
facts_mix_all(uint64_t *numerics, const char *const *names, llmgw_json_t object)
{
    for ( /* void */ ; *names != NULL; names++) {
        facts_mix(numerics, *names, llmgw_json_member(object, *names));
    }
}


/* Adds a name, if others can print and split it.  0: it was added or is no such
   name. */
static int
facts_add_model(dialect_facts_t *facts, llmgw_json_t id)
{
    char    name[DIALECT_MODEL_BYTES];
    size_t  len;

    llmgw_json_copy(id, name, sizeof(name));
    len = strlen(name) + 1;

    if (len == 1 || llmgw_json_bytes(id) > sizeof(name)) {
        return 0;
    }

    if (facts->nmodels == DIALECT_MAX_MODELS
        || len > sizeof(facts->models) - facts->models_bytes)
    {
        return -1;
    }

    memcpy(facts->models + facts->models_bytes, name, len);
    facts->models_bytes += (uint32_t) len;
    facts->nmodels++;

    return 0;
}


/* The base models come first: an adapter names its parent. */
static void
facts_add_models(dialect_facts_t *facts, llmgw_json_t data, int is_adapter)
{
    llmgw_json_t        parent;
    llmgw_json_item_t   item;
    llmgw_json_items_t  items;

    for (items = llmgw_json_elements(data); llmgw_json_next(&items, &item); ) {
        parent = llmgw_json_member(item.value, "parent");

        if (llmgw_json_is_empty(parent) != is_adapter
            && facts_add_model(facts, llmgw_json_member(item.value, "id")) != 0)
        {
            return;
        }
    }
}


static void
facts_read_model(dialect_facts_t *facts, llmgw_json_t model)
{
    uint64_t                  context;

    static const char *const  mixed[] = {
        "vocab_type", "n_vocab", "n_ctx_train", "n_embd", "n_params", "size",
        NULL
    };

    if (llmgw_json_uint(llmgw_json_member(model, "max_model_len"),
                        CALL_MAX_TOKENS, &context) == 0)
    {
        facts->context = (uint32_t) context;
    }

    facts->numerics[FACTS_OF_MODELS] = 0;
    facts_mix(&facts->numerics[FACTS_OF_MODELS], "root",
              llmgw_json_member(model, "root"));
    facts_mix_all(&facts->numerics[FACTS_OF_MODELS], mixed,
                  llmgw_json_member(model, "meta"));
}


int
facts_models(dialect_facts_t *facts, unsigned status, const char *body,
    size_t len)
{
    llmgw_json_t     object, data;
    dialect_facts_t  read;

    if (facts_object(status, body, len, &object) != 0) {
        return -1;
    }

    data = llmgw_json_member(object, "data");
    read = *facts;
    read.nmodels = 0;
    read.models_bytes = 0;
    facts_add_models(&read, data, 0);
    facts_add_models(&read, data, 1);

    if (read.nmodels == 0) {
        return -1;
    }

    facts_read_model(&read, llmgw_json_first(data));
    *facts = read;

    return 0;
}
