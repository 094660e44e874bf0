
/* What a report may contain about a shard, and about an orchestrator. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "control/report.h"


#define WEIGHTS  "0123456789abcdef0123456789abcdef"                           \
                 "0123456789abcdef0123456789abcdef"


static json_t *
report_of_a_shard(void)
{
    return json_pack("{s:i, s:i, s:i, s:i, s:s, s:{s:s, s:s, s:s, s:i, s:i,"
                     " s:i, s:I, s:b, s:s}}",
                     "replica_start", 1, "pid", 2, "max_capacity", 64,
                     "active_requests", 0, "model_version", "v1",
                     "shard", "model", "toy", "weights", WEIGHTS,
                     "numerics", "llama-1", "first", 4, "last", 7,
                     "layers", 8, "memory", (json_int_t) 1 << 40,
                     "loaded", 1, "zone", "eu-1");
}


static void
shard_says_what_it_computes(void **state)
{
    json_t              *json;
    report_t             report;
    const char          *error;
    llmgw_shard_model_t  model;

    json = report_of_a_shard();
    assert_int_equal(report_decode(&report, json, &error), 0);

    assert_int_equal(report.shard.facts.first, 4);
    assert_int_equal(report.shard.facts.last, 7);
    assert_int_equal(report.shard.facts.layers, 8);
    assert_int_equal(report.shard.facts.memory_bytes, 1ULL << 40);
    assert_int_equal(report.shard.facts.is_loaded, 1);
    assert_string_equal(report.shard.facts.zone, "eu-1");

    assert_int_equal(llmgw_shard_model_read(&model, report.models.names,
                                            report.models.bytes), 0);
    assert_string_equal(model.name, "toy");
    assert_int_equal(model.weights_id[0], 0x01);
    assert_int_equal(model.weights_id[31], 0xef);
    assert_string_equal(model.numerics, "llama-1");

    json_object_del(json, "shard");
    assert_int_equal(report_decode(&report, json, &error), 0);
    assert_int_equal(report.shard.facts.layers, 0);
    assert_int_equal(report.models.bytes, 0);
    json_decref(json);
}


/* Decodes the report with this value of the key; NULL: without the key. */
static int
decode_with(const char *key, json_t *value, const char **error)
{
    int       rc;
    json_t   *json, *shard;
    report_t  report;

    json = report_of_a_shard();
    shard = json_object_get(json, "shard");

    if (value == NULL) {
        json_object_del(shard, key);

    } else {
        json_object_set_new(shard, key, value);
    }

    *error = "";
    rc = report_decode(&report, json, error);
    json_decref(json);

    return rc;
}


static void
expect_wrong(const char *key, json_t *value, const char *words)
{
    const char  *error;

    assert_int_equal(decode_with(key, value, &error), -1);

    if (strstr(error, words) == NULL) {
        fail_msg("\"%s\" says nothing of \"%s\"", error, words);
    }
}


static void
expect_right(const char *key, json_t *value)
{
    const char  *error;

    assert_int_equal(decode_with(key, value, &error), 0);
}


static json_t *
text_of(size_t len)
{
    char  text[512];

    memset(text, 'm', len);

    return json_stringn(text, len);
}


static void
wrong_words_are_told_apart(void **state)
{
    expect_wrong("model", NULL, "\"model\"");
    expect_wrong("model", json_string(""), "\"model\"");
    expect_wrong("model", json_string("a\nb"), "\"model\"");
    expect_wrong("model", json_stringn("a\0b", 3), "\"model\"");
    expect_right("model", text_of(126));
    expect_wrong("model", text_of(127), "\"model\"");

    expect_wrong("weights", NULL, "\"weights\"");
    expect_wrong("weights", json_string("abc"), "\"weights\"");
    expect_wrong("weights", text_of(64), "\"weights\"");

    expect_wrong("numerics", NULL, "\"numerics\"");
    expect_right("numerics", text_of(63));
    expect_wrong("numerics", text_of(64), "\"numerics\"");

    expect_right("zone", NULL);
    expect_right("zone", text_of(31));
    expect_wrong("zone", text_of(32), "\"zone\"");
    expect_wrong("zone", json_string("a/b"), "\"zone\"");

    expect_wrong("first", json_integer(8), "in order");
    expect_wrong("last", json_integer(8), "in order");
    expect_wrong("last", json_integer(65536), "\"last\"");
    expect_wrong("layers", json_integer(0), "in order");
    expect_right("layers", json_integer(4096));
    expect_wrong("layers", json_integer(4097), "in order");
    expect_wrong("memory", json_integer(-1), "\"memory\"");
    expect_wrong("loaded", json_integer(1), "\"loaded\"");
    expect_right("loaded", NULL);
}


/* A member's record has one place for a shard and each of these. */
static void
shard_is_nothing_else(void **state)
{
    size_t       i;
    json_t      *json;
    report_t     report;
    const char  *error;

    static const char *const  others[] = {
        "{\"models\": [\"toy\"]}",
        "{\"resume_group\": \"g\"}",
        "{\"group\": \"g\", \"group_state\": \"init\"}",
        "{\"shard\": []}",
        "{\"shard\": \"toy\"}",
    };

    for (i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
        json = report_of_a_shard();
        json_object_update_new(json, json_loads(others[i], 0, NULL));
        assert_int_equal(report_decode(&report, json, &error), -1);
        assert_non_null(strstr(error, "\"shard\""));
        json_decref(json);
    }
}


static void
pipelines_and_callers_are_objects_of_limited_size(void **state)
{
    char         text[REPORT_MAX_OBJECT_BYTES];
    json_t      *json;
    size_t       len;
    report_t     report;
    const char  *error;

    json = report_of_a_shard();
    json_object_del(json, "shard");
    assert_int_equal(report_decode(&report, json, &error), 0);
    assert_null(report.pipelines);

    memset(text, 'a', sizeof(text));

    for (len = sizeof(text) - 8; len <= sizeof(text) - 7; len++) {
        json_object_set_new(json, "pipelines",
                            json_pack("{s:s#}", "x", text, (int) len));
        assert_int_equal(report_decode(&report, json, &error),
                         len == sizeof(text) - 8 ? 0 : -1);
    }

    assert_non_null(strstr(error, "\"pipelines\""));

    json_object_set_new(json, "pipelines", json_array());
    assert_int_equal(report_decode(&report, json, &error), -1);

    json_object_del(json, "pipelines");
    json_object_set_new(json, "callers", json_pack("{s:{}}", "o1"));
    assert_int_equal(report_decode(&report, json, &error), 0);
    assert_ptr_equal(report.callers, json_object_get(json, "callers"));
    json_object_set_new(json, "callers", json_array());
    assert_int_equal(report_decode(&report, json, &error), -1);
    assert_non_null(strstr(error, "\"callers\""));
    json_decref(json);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(shard_says_what_it_computes),
        cmocka_unit_test(wrong_words_are_told_apart),
        cmocka_unit_test(shard_is_nothing_else),
        cmocka_unit_test(pipelines_and_callers_are_objects_of_limited_size),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
