
#include <stdlib.h>
#include <string.h>

#include "control/report.h"


static int
report_integer(const json_t *json, const char *name, int64_t max,
    int64_t *value)
{
    json_t  *field;

    field = json_object_get(json, name);

    if (!json_is_integer(field) || json_integer_value(field) < 0
        || json_integer_value(field) > max)
    {
        return -1;
    }

    *value = json_integer_value(field);

    return 0;
}


/* Absent means false. */
static int
report_flag(const json_t *json, const char *name, int *value)
{
    json_t  *field;

    field = json_object_get(json, name);

    if (field != NULL && !json_is_boolean(field)) {
        return -1;
    }

    *value = json_is_true(field);

    return 0;
}


static int
report_name(const json_t *json, const char *name, char *text)
{
    size_t   len;
    json_t  *field;

    field = json_object_get(json, name);
    len = json_string_length(field);

    if (!json_is_string(field)
        || !llmgw_name_is_valid(json_string_value(field), len))
    {
        return -1;
    }

    memcpy(text, json_string_value(field), len + 1);

    return 0;
}


/* Absent means the empty one. */
static int
report_resume_group(const json_t *json, char *text)
{
    text[0] = '\0';

    return json_object_get(json, "resume_group") == NULL
           ? 0 : report_name(json, "resume_group", text);
}


/* Absent means the empty one: its engine runs. */
static int
report_detail(const json_t *json, char *text)
{
    size_t   len;
    json_t  *field;

    text[0] = '\0';
    field = json_object_get(json, "detail");

    if (field == NULL) {
        return 0;
    }

    len = json_string_length(field);

    if (!json_is_string(field) || len >= REPORT_DETAIL_BYTES
        || strlen(json_string_value(field)) != len)
    {
        return -1;
    }

    memcpy(text, json_string_value(field), len + 1);

    return 0;
}


/* Absent means READY: the replica serves as soon as it reports. */
static int
report_state(const json_t *json, llmgw_service_t *state)
{
    size_t   i;
    json_t  *field;

    static const llmgw_service_t  states[] = {
        LLMGW_SERVICE_STARTING, LLMGW_SERVICE_READY, LLMGW_SERVICE_STALLED,
        LLMGW_SERVICE_DOWN
    };

    field = json_object_get(json, "state");
    *state = LLMGW_SERVICE_READY;

    if (field == NULL) {
        return 0;
    }

    for (i = 0; json_is_string(field)
                && i < sizeof(states) / sizeof(states[0]); i++)
    {
        if (strcmp(json_string_value(field), llmgw_service_name(states[i]))
            == 0)
        {
            *state = states[i];
            return 0;
        }
    }

    return -1;
}


static int
report_group_name(const json_t *json, char *name)
{
    size_t         len;
    const json_t  *field;

    field = json_object_get(json, "group");
    len = json_string_length(field);

    if (!json_is_string(field)
        || !llmgw_group_is_valid(json_string_value(field), len))
    {
        return -1;
    }

    memcpy(name, json_string_value(field), len + 1);

    return 0;
}


static int
report_group_state(const json_t *json, llmgw_group_state_t *state)
{
    unsigned     i;
    const char  *name;

    name = json_string_value(json_object_get(json, "group_state"));

    for (i = LLMGW_GROUP_INIT; name != NULL && i <= LLMGW_GROUP_ACTIVE; i++) {
        if (strcmp(name, llmgw_group_state_name(i)) == 0) {
            *state = (llmgw_group_state_t) i;
            return 0;
        }
    }

    return -1;
}


/* Absent means 0. */
static int
report_group_lock(const json_t *json, uint64_t *lock)
{
    const char    *text;
    const json_t  *field;

    *lock = 0;
    field = json_object_get(json, "group_lock");

    if (field == NULL) {
        return 0;
    }

    text = json_string_value(field);

    if (text == NULL || json_string_length(field) != 16
        || strspn(text, "0123456789abcdef") != 16)
    {
        return -1;
    }

    *lock = strtoull(text, NULL, 16);

    return 0;
}


/* Absent means that no epoch was granted yet, so the engine is not active. */
static int
report_group_epoch(const json_t *json, report_group_t *group)
{
    int64_t  epoch;

    epoch = 0;

    if (json_object_get(json, "group_epoch") != NULL
        && report_integer(json, "group_epoch", INT64_MAX, &epoch) != 0)
    {
        return -1;
    }

    group->epoch = (uint64_t) epoch;

    return group->state == LLMGW_GROUP_ACTIVE && epoch == 0 ? -1 : 0;
}


/* A group has a name and a state; without a name, none of the five fields. */
static int
report_group(const json_t *json, report_group_t *group, const char **error)
{
    *group = (report_group_t) { .name = "" };

    if (json_object_get(json, "group") == NULL) {
        *error = "fields of a group without \"group\"";
        return json_object_get(json, "group_state") == NULL
               && json_object_get(json, "group_epoch") == NULL
               && json_object_get(json, "group_lock") == NULL
               && json_object_get(json, "group_lock_away") == NULL ? 0 : -1;
    }

    *error = "\"group\" is not 1 to 31 of letters, digits, \".\", \"_\" and "
             "\"-\" that begin with no \".\"";

    if (report_group_name(json, group->name) != 0) {
        return -1;
    }

    *error = "\"group_state\" is none of init, standby, waking, active";

    if (report_group_state(json, &group->state) != 0) {
        return -1;
    }

    *error = "\"group_lock\" is not 16 hexadecimal digits in lower case";

    if (report_group_lock(json, &group->lock) != 0) {
        return -1;
    }

    *error = "\"group_lock_away\" is not true or false";

    if (report_flag(json, "group_lock_away", &group->is_lock_away) != 0) {
        return -1;
    }

    *error = "\"group_epoch\" is wrong, or an active engine has none";

    return report_group_epoch(json, group);
}


static int
report_model_is_valid(const json_t *list, size_t i)
{
    size_t       k, len;
    const char  *name;

    name = json_string_value(json_array_get(list, i));
    len = json_string_length(json_array_get(list, i));

    if (name == NULL || len == 0 || len > REPORT_MAX_NAME_BYTES
        || len != strlen(name) || !llmgw_members_list_is_valid(name, len + 1))
    {
        return 0;
    }

    for (k = 0; k < i; k++) {
        if (strcmp(name, json_string_value(json_array_get(list, k))) == 0) {
            return 0;
        }
    }

    return 1;
}


/* Keeps the first names that fit, in their order. */
static int
report_models(const json_t *json, report_models_t *models)
{
    size_t        i, n, len;
    const char   *name;
    const json_t *list;

    *models = (report_models_t) { .bytes = 0 };
    list = json_object_get(json, "models");
    n = json_array_size(list);

    if ((list != NULL && !json_is_array(list)) || n > REPORT_MAX_MODELS) {
        return -1;
    }

    for (i = 0; i < n; i++) {
        if (!report_model_is_valid(list, i)) {
            return -1;
        }

        name = json_string_value(json_array_get(list, i));
        len = strlen(name) + 1;

        if (models->cut != 0 || len > sizeof(models->names) - models->bytes) {
            models->cut++;
            continue;
        }

        memcpy(models->names + models->bytes, name, len);
        models->bytes += len;
    }

    return 0;
}


static int
report_shard_model(const json_t *json, llmgw_shard_model_t *model,
    const char **error)
{
    size_t       len;
    const char  *name;

    *error = "\"model\" of the shard is not 1 to 126 printable ASCII "
             "characters";
    name = json_string_value(json_object_get(json, "model"));
    len = json_string_length(json_object_get(json, "model"));

    if (name == NULL || len != strlen(name)
        || len >= LLMGW_SHARD_MODEL_BYTES
        || !llmgw_members_list_is_valid(name, len + 1))
    {
        return -1;
    }

    memcpy(model->name, name, len + 1);

    *error = "\"weights\" of the shard is not 64 hexadecimal digits in lower "
             "case";
    name = json_string_value(json_object_get(json, "weights"));
    len = json_string_length(json_object_get(json, "weights"));

    if (name == NULL || llmgw_weights_id_read(model->weights_id, name, len)) {
        return -1;
    }

    *error = "\"numerics\" of the shard is no name";

    return report_name(json, "numerics", model->numerics);
}


/* Absent means the empty one. */
static int
report_zone(const json_t *json, char *zone)
{
    char  name[LLMGW_MEMBERS_NAME_BYTES];

    if (json_object_get(json, "zone") == NULL) {
        return 0;
    }

    if (report_name(json, "zone", name) != 0
        || strlen(name) >= LLMGW_ZONE_BYTES)
    {
        return -1;
    }

    strcpy(zone, name);

    return 0;
}


static int
report_shard_facts(const json_t *json, llmgw_shard_t *facts,
    const char **error)
{
    int      is_loaded;
    int64_t  first, last, layers, memory;

#define wrong(name)  (*error = "\"" name "\" of the shard is wrong", name)
    if (report_integer(json, wrong("first"), UINT16_MAX, &first)
        || report_integer(json, wrong("last"), UINT16_MAX, &last)
        || report_integer(json, wrong("layers"), UINT16_MAX, &layers)
        || report_integer(json, wrong("memory"), INT64_MAX, &memory)
        || report_flag(json, wrong("loaded"), &is_loaded))
#undef wrong
    {
        return -1;
    }

    *error = "\"zone\" of the shard is not a name of up to 31 characters";

    if (report_zone(json, facts->zone) != 0) {
        return -1;
    }

    facts->first = (uint16_t) first;
    facts->last = (uint16_t) last;
    facts->layers = (uint16_t) layers;
    facts->memory_bytes = (uint64_t) memory;
    facts->is_loaded = (uint8_t) is_loaded;

    *error = "\"first\", \"last\" and \"layers\" of the shard are not "
             "in order: 0 <= first <= last < layers <= 4096";

    return layers != 0 && llmgw_shard_is_valid(facts) ? 0 : -1;
}


/* The shard's model is kept as a list, as gossip and nginx take it. */
static int
report_shard(const json_t *json, report_t *report, const char **error)
{
    const json_t  *shard;

    report->shard = (report_shard_t) { .facts = { .zone = "" } };
    shard = json_object_get(json, "shard");

    if (shard == NULL) {
        return 0;
    }

    *error = "\"shard\" beside \"models\", \"group\" or \"resume_group\"";

    if (report->models.bytes != 0 || report->group.name[0] != '\0'
        || report->resume_group[0] != '\0')
    {
        return -1;
    }

    *error = "\"shard\" is not an object";

    if (!json_is_object(shard)
        || report_shard_model(shard, &report->shard.model, error) != 0
        || report_shard_facts(shard, &report->shard.facts, error) != 0)
    {
        return -1;
    }

    report->models.bytes = llmgw_shard_model_write(&report->shard.model,
                                                   report->models.names);

    return 0;
}


static int
report_object(const json_t *json, const char *name, json_t **object)
{
    *object = json_object_get(json, name);

    return *object == NULL
           || (json_is_object(*object)
               && json_dumpb(*object, NULL, 0, JSON_COMPACT)
                  <= REPORT_MAX_OBJECT_BYTES) ? 0 : -1;
}


/* One of the engine's figures; absent means that it is not reported. */
static int
report_figure(const json_t *json, const char *name, unsigned bit,
    int64_t max, llmgw_engine_load_t *engine, int64_t *value)
{
    *value = 0;

    if (json_object_get(json, name) == NULL) {
        return 0;
    }

    engine->reported |= bit;

    return report_integer(json, name, max, value);
}


static int
report_engine(const json_t *json, llmgw_engine_load_t *engine,
    const char **error)
{
    int64_t  running, waiting, kv_permille, free_blocks, hit_permille;

    *engine = (llmgw_engine_load_t) { 0 };

#define wrong(name)  (*error = "\"" name "\" is wrong or too great", name)
    if (report_figure(json, wrong("running"), LLMGW_ENGINE_RUNNING,
                      LLMGW_ENGINE_MAX_REQUESTS, engine, &running)
        || report_figure(json, wrong("waiting"), LLMGW_ENGINE_WAITING,
                         LLMGW_ENGINE_MAX_REQUESTS, engine, &waiting)
        || report_figure(json, wrong("kv_permille"), LLMGW_ENGINE_KV, 1000,
                         engine, &kv_permille)
        || report_figure(json, wrong("kv_free_blocks"),
                         LLMGW_ENGINE_FREE_BLOCKS, LLMGW_ENGINE_MAX_BLOCKS,
                         engine, &free_blocks)
        || report_figure(json, wrong("hit_permille"), LLMGW_ENGINE_HITS, 1000,
                         engine, &hit_permille))
#undef wrong
    {
        return -1;
    }

    engine->running = running;
    engine->waiting = waiting;
    engine->kv_permille = kv_permille;
    engine->kv_free_blocks = free_blocks;
    engine->hit_permille = hit_permille;

    return 0;
}


/* Takes the figures of the replica's engine that are given. */
static int
report_facts(const json_t *json, report_t *report, const char **error)
{
    *error = "\"resume_group\" is wrong";

    if (report_resume_group(json, report->resume_group) != 0) {
        return -1;
    }

    *error = "\"state\" is none of STARTING, READY, STALLED, DOWN";

    if (report_state(json, &report->state) != 0
        || report_group(json, &report->group, error) != 0)
    {
        return -1;
    }

    *error = "\"detail\" is not a line of up to 127 bytes";

    if (report_detail(json, report->detail) != 0) {
        return -1;
    }

    *error = "\"models\" is not a list of up to 64 different names, each of 1 "
             "to 255 printable ASCII characters";

    if (report_models(json, &report->models) != 0
        || report_shard(json, report, error) != 0
        || report_engine(json, &report->engine, error) != 0)
    {
        return -1;
    }

#define large(n) (*error = "\"" n "\" is not an object of up to 32768 bytes", n)
    return report_object(json, large("pipelines"), &report->pipelines)
           || report_object(json, large("callers"), &report->callers) ? -1 : 0;
#undef large
}


int
report_decode(report_t *report, const json_t *json, const char **error)
{
    int64_t   start_ms, pid, capacity, active;
    report_t  decoded;

#define lacks(name)  (*error = "\"" name "\" is missing or wrong", name)
    if (report_integer(json, lacks("replica_start"), INT64_MAX, &start_ms)
        || report_integer(json, lacks("pid"), INT32_MAX, &pid)
        || report_integer(json, lacks("max_capacity"), INT32_MAX, &capacity)
        || report_integer(json, lacks("active_requests"), INT32_MAX, &active)
        || report_name(json, lacks("model_version"), decoded.model_version)
        || report_flag(json, lacks("draining"), &decoded.draining)
        || report_flag(json, lacks("goodbye"), &decoded.goodbye)
        || report_facts(json, &decoded, error))
#undef lacks
    {
        return -1;
    }

    decoded.replica_start_ms = start_ms;
    decoded.pid = pid;
    decoded.max_capacity = capacity;
    decoded.active_requests = active;

    *report = decoded;

    return 0;
}
