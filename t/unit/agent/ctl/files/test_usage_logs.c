
/* llmgwctl usage: sums of logs as table, CSV and JSON. */

#include <zlib.h>

#include "proto/usage/record.h"
#include "t/unit/agent/ctl/ctl_scene.h"


typedef struct {
    char                   paths[2][64];
    llmgw_usage_source_t   source;
    llmgw_usage_t          usage;
    ctl_t                  ctl;
} logs_t;


static int
setup(void **state)
{
    int            i, fd;
    static logs_t  logs;

    memset(&logs, 0, sizeof(logs));
    strcpy(logs.source.gateway, "gw1");
    strcpy(logs.source.birth, "0199a0000000aaaaaaaaaaaaaaaaaaaa");

    logs.usage = (llmgw_usage_t) {
        .n = 1, .ended_ms = 1795867200000ull /* 2026-11-28T12:00Z */,
        .prompt = 100, .completion = 20, .cached = 50, .reasoning = 3,
        .wasted = 1, .key = "alice", .tenant = "lab1", .model = "qwen3",
        .outcome = "ok"
    };

    for (i = 0; i < 2; i++) {
        strcpy(logs.paths[i], "/tmp/llmgw-ctl-usage-XXXXXX");
        fd = mkstemp(logs.paths[i]);
        assert_int_not_equal(fd, -1);
        (void) close(fd);
        logs.ctl.words[i] = logs.paths[i];
    }

    logs.ctl.nwords = 1;
    logs.ctl.options.by = "key";
    logs.ctl.options.format = "table";
    *state = &logs;

    return 0;
}


static int
teardown(void **state)
{
    logs_t  *logs = *state;

    return unlink(logs->paths[0]) | unlink(logs->paths[1]);
}


static void
put(logs_t *logs, int i, const char *how)
{
    char    line[LLMGW_USAGE_LINE_BYTES];
    size_t  len;
    gzFile  file;

    len = llmgw_usage_write(line, &logs->source, &logs->usage);
    file = gzopen(logs->paths[i], how);
    assert_non_null(file);
    assert_int_equal(gzwrite(file, line, (unsigned) len), len);
    assert_int_equal(gzclose(file), Z_OK);
}


/* Three keys, two models, two days, two gateways. */
static void
fill(logs_t *logs)
{
    put(logs, 0, "aT");

    logs->usage.n = 2;
    strcpy(logs->usage.model, "embed");
    put(logs, 0, "aT");

    logs->usage.n = 3;
    logs->usage.ended_ms += 24 * 3600000;
    strcpy(logs->usage.key, "bob");
    put(logs, 0, "aT");

    strcpy(logs->source.gateway, "gw2");
    logs->usage.n = 1;
    logs->usage.key[0] = '\0';
    put(logs, 1, "a");
}


static const char *
shown(logs_t *logs, int status)
{
    memset(&scene, 0, sizeof(scene));

    return scene_run(ctl_usage_logs, &logs->ctl, status);
}


static void
sums_are_by_key(void **state)
{
    logs_t  *logs = *state;

    fill(logs);
    logs->ctl.nwords = 2;
    assert_string_equal(shown(logs, CTL_DONE),
        "key      requests  prompt_tokens  completion_tokens  cached_tokens"
        "  reasoning_tokens  wasted_tokens\n"
        "-               1            100                 20             50"
        "                 3              1\n"
        "alice           2            200                 40            100"
        "                 6              2\n"
        "bob             1            100                 20             50"
        "                 3              1\n"
        "total           4            400                 80            200"
        "                12              4\n");
}


static void
spreadsheet_has_a_row_for_each_sum(void **state)
{
    logs_t  *logs = *state;

    strcpy(logs->usage.key, "al\"ice");
    fill(logs);
    logs->ctl.options.by = "day,model,key";
    logs->ctl.options.format = "csv";
    assert_string_equal(shown(logs, CTL_DONE),
        "day,model,key,requests,prompt_tokens,completion_tokens,"
        "cached_tokens,reasoning_tokens,wasted_tokens\r\n"
        "\"2026-11-28\",\"embed\",\"al\"\"ice\",1,100,20,50,3,1\r\n"
        "\"2026-11-28\",\"qwen3\",\"al\"\"ice\",1,100,20,50,3,1\r\n"
        "\"2026-11-29\",\"embed\",\"bob\",1,100,20,50,3,1\r\n");
}


static void
programs_get_json(void **state)
{
    logs_t  *logs = *state;

    fill(logs);
    logs->ctl.is_json = 1;
    logs->ctl.options.by = "gateway";
    assert_string_equal(shown(logs, CTL_DONE),
        "{\"groups\":[{\"gateway\":\"gw1\",\"requests\":3,"
        "\"prompt_tokens\":300,\"completion_tokens\":60,"
        "\"cached_tokens\":150,\"reasoning_tokens\":9,\"wasted_tokens\":3}],"
        "\"total\":{\"requests\":3,\"prompt_tokens\":300,"
        "\"completion_tokens\":60,\"cached_tokens\":150,"
        "\"reasoning_tokens\":9,\"wasted_tokens\":3},\"doubles\":0}\n");
}


static void
record_that_is_there_twice_counts_once(void **state)
{
    logs_t  *logs = *state;

    fill(logs);
    logs->ctl.words[1] = logs->paths[0];
    logs->ctl.nwords = 2;
    logs->ctl.is_json = 1;
    assert_non_null(strstr(shown(logs, CTL_DONE), "\"doubles\":3"));
    assert_non_null(strstr(scene.said, "\"total\":{\"requests\":3"));
}


static void
time_is_from_since_to_before_until(void **state)
{
    logs_t  *logs = *state;

    fill(logs);
    logs->ctl.is_json = 1;
    logs->ctl.options.since = "2026-11-28T12:00Z";
    logs->ctl.options.until = "2026-11-29T12:00Z";
    assert_non_null(strstr(shown(logs, CTL_DONE), "\"total\":{\"requests\":2"));

    logs->ctl.options.since = "2026-11-28T12:00:00.001Z";
    logs->ctl.options.until = NULL;
    assert_non_null(strstr(shown(logs, CTL_DONE), "\"total\":{\"requests\":1"));
}


static void
lines_that_are_no_records_are_told(void **state)
{
    FILE    *file;
    logs_t  *logs = *state;

    put(logs, 0, "aT");
    file = fopen(logs->paths[0], "a");
    assert_non_null(file);
    fputs("{\"time\":\"20\n\n", file);
    fclose(file);
    assert_non_null(strstr(shown(logs, CTL_DONE),
                           "1 of 3 lines are no records; the first is line 2: "
                           "it is no JSON object"));
}


static void
what_cannot_be_read_is_an_error(void **state)
{
    int      i;
    logs_t  *logs = *state;

    logs->ctl.words[0] = "/nowhere/usage.log";
    assert_non_null(strstr(shown(logs, CTL_FAILED), "No such file"));

    for (i = 0; i < 100; i++) {
        logs->usage.n++;
        put(logs, 0, "a");
    }

    assert_int_equal(truncate(logs->paths[0], 1000), 0);
    logs->ctl.words[0] = logs->paths[0];
    assert_non_null(strstr(shown(logs, CTL_FAILED), "it is cut off"));
}


static void
wrong_options_are_refused(void **state)
{
    logs_t  *logs = *state;

    logs->ctl.options.by = "key,color";
    assert_non_null(strstr(shown(logs, CTL_USAGE), "key,color"));
    logs->ctl.options.by = "key,key";
    (void) shown(logs, CTL_USAGE);
    logs->ctl.options.by = "";
    (void) shown(logs, CTL_USAGE);
    logs->ctl.options.by = "key";
    logs->ctl.options.format = "xml";
    (void) shown(logs, CTL_USAGE);
    logs->ctl.options.format = "csv";
    logs->ctl.options.since = "yesterday";
    assert_non_null(strstr(shown(logs, CTL_USAGE), "--since"));
}


#define test(name)  cmocka_unit_test_setup_teardown(name, setup, teardown)

int
main(void)
{
    const struct CMUnitTest  tests[] = {
        test(sums_are_by_key),
        test(spreadsheet_has_a_row_for_each_sum),
        test(programs_get_json),
        test(record_that_is_there_twice_counts_once),
        test(time_is_from_since_to_before_until),
        test(lines_that_are_no_records_are_told),
        test(what_cannot_be_read_is_an_error),
        test(wrong_options_are_refused)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
