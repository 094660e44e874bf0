
/* Traces: which are read, which are refused and where, and equal blocks. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "sim/work/trace/trace.h"

#define COLUMNS                                                              \
    "request_id,client_id,tenant_id,slo_class,session_id,round_index,"       \
    "prefix_group,prefix_length,streaming,input_tokens,output_tokens,"       \
    "text_tokens,image_tokens,audio_tokens,video_tokens,reason_ratio,model," \
    "deadline_us,server_input_tokens,arrival_time_us,send_time_us,"          \
    "first_chunk_time_us,last_chunk_time_us,num_chunks,status,"              \
    "error_message,finish_reason\n"

#define ROW(id, group, prefix, input, server, arrival, send)                 \
    id ",c,t,batch,,0," group "," prefix ",false," input ",9,0,0,0,0,0,,0,"  \
    server "," arrival "," send ",0,0,0,ok,,\n"


static int
read_data(work_trace_t *trace, const char *text, work_error_t *error)
{
    int    rc;
    char  *bytes;

    work_trace_init(trace);
    bytes = strdup(text);
    bytes = realloc(bytes, strlen(text) + 1);
    rc = work_trace_read_data(trace, "t.csv", bytes, strlen(text), error);
    free(bytes);

    return rc;
}


static int
read_header(work_trace_t *trace, const char *text, work_error_t *error)
{
    work_trace_init(trace);

    return work_trace_read_header(trace, "t.yaml", text, strlen(text), error);
}


static void
make_work(work_t *work, const char *text)
{
    work_trace_t           trace;
    work_error_t           error;
    work_replay_options_t  options;

    memset(&options, 0, sizeof(options));
    error.text[0] = '\0';

    if (read_data(&trace, text, &error) != 0) {
        fail_msg("%s", error.text);
    }

    work_init(work);
    assert_int_equal(work_from_trace(work, &trace, &options, &error), 0);
    work_trace_done(&trace);
}


static void
a_row_becomes_a_request(void **state)
{
    work_t           work;
    work_request_t  *r;

    make_work(&work, COLUMNS ROW("7", "g", "100", "30", "0", "5", "8")
                     ROW("9", "", "0", "30", "44", "6", "0"));
    assert_int_equal(work.n, 2);

    r = work_at(&work, 0);
    assert_string_equal(r->id, "request_7");
    assert_string_equal(r->client->text, "c");
    assert_string_equal(r->tenant->text, "t");
    assert_string_equal(r->slo_class->text, "batch");
    assert_int_equal(r->input_tokens, 130);
    assert_int_equal(r->output_tokens, 9);
    assert_int_equal(r->max_output_tokens, 9);
    assert_int_equal(r->arrival_us, 8);
    assert_int_equal(r->session->id, 0);

    r = work_at(&work, 1);
    assert_int_equal(r->index, 1);
    assert_int_equal(r->input_tokens, 44);
    assert_int_equal(r->arrival_us, 6);
    work_done(&work);
}


static void
the_first_length_is_the_groups(void **state)
{
    work_t  work;

    make_work(&work, COLUMNS ROW("0", "g", "0", "10", "0", "1", "1")
                     ROW("1", "g", "48", "10", "99", "1", "1")
                     ROW("2", "g", "16", "10", "0", "1", "1"));
    assert_int_equal(work_at(&work, 0)->input_tokens, 58);
    assert_int_equal(work_at(&work, 1)->input_tokens, 58);
    assert_int_equal(work_at(&work, 2)->input_tokens, 58);
    assert_int_equal(work_at(&work, 2)->prefix_length, 16);
    work_done(&work);
}


static void
blocks_are_equal_as_far_as_the_prefix_goes(void **state)
{
    size_t    n;
    work_t    work;
    uint64_t  a[16], b[16], other[16];

    make_work(&work, COLUMNS ROW("0", "g", "40", "60", "0", "1", "1")
                     ROW("1", "g", "40", "60", "0", "2", "2")
                     ROW("2", "h", "40", "60", "0", "3", "3"));
    n = work_block_hashes(work_at(&work, 0), 16, a, 16);
    assert_int_equal(n, 6);
    assert_int_equal(work_block_hashes(work_at(&work, 1), 16, b, 16), 6);
    assert_int_equal(work_block_hashes(work_at(&work, 2), 16, other, 4), 4);

    assert_true(a[0] == b[0] && a[1] == b[1]);
    assert_true(a[2] != b[2] && a[3] != b[3]);
    assert_true(a[0] != a[1] && a[2] != a[3]);
    assert_true(a[0] != other[0] && a[3] != other[3]);
    assert_true(work_block_hash(work_at(&work, 0), 16, 6) != a[5]);
    work_done(&work);
}


static void
optional_columns_are_found_by_name(void **state)
{
    work_trace_t  trace;

    static const char  text[] =
        "think_time_us,slo_class,vllm_priority,request_id,client_id,"
        "tenant_id,session_id,round_index,prefix_group,prefix_length,"
        "streaming,input_tokens,output_tokens,text_tokens,image_tokens,"
        "audio_tokens,video_tokens,reason_ratio,model,deadline_us,"
        "slo_target_us,server_input_tokens,arrival_time_us,send_time_us,"
        "first_chunk_time_us,last_chunk_time_us,num_chunks,status,"
        "error_message,finish_reason,adapter\r\n"
        "77,batch,6,3,c,t,s,1,,0,true,1,2,1,0,0,0,0.5,\"a \"\"b\"\", c\","
        "900,200000,0,4,5,6,7,8,error,\"two\nlines \",stop,lora\r\n";

    assert_int_equal(read_data(&trace, text, NULL), 0);
    assert_int_equal(trace.n, 1);
    assert_int_equal(trace.records[0].think_time_us, 77);
    assert_int_equal(trace.records[0].vllm_priority, 6);
    assert_int_equal(trace.records[0].slo_target_us, 200000);
    assert_int_equal(trace.records[0].deadline_us, 900);
    assert_int_equal(trace.records[0].streaming, 1);
    assert_int_equal(trace.records[0].last_chunk_us, 7);
    assert_true(trace.records[0].reason_ratio == 0.5);
    assert_string_equal(trace.records[0].model->text, "a \"b\", c");
    assert_string_equal(trace.records[0].error_message, "two\nlines");
    assert_string_equal(trace.records[0].adapter->text, "lora");
    work_trace_done(&trace);
}


static void
bad_rows_are_refused_with_their_line(void **state)
{
    size_t        i;
    work_trace_t  trace;
    work_error_t  error;

    static const struct {
        const char  *text;
        const char  *error;
    } cases[] = {
        { "", "t.csv:1: empty: a row of columns is needed" },
        { "request_id,client_id\n", "t.csv:1: no column \"tenant_id\"" },
        { "request_id,request_id\n", "t.csv:1: doubled column \"request_id\"" },
        { "request_id,nice\n", "t.csv:1: unknown column \"nice\"" },
        { COLUMNS "0,c,t,,,0,,0,fal",
          "t.csv:2: 9 columns where the first row has 27" },
        { COLUMNS ROW("0", "", "0", "1", "0", "1", "1,1"),
          "t.csv:2: 28 columns where the first row has 27" },
        { COLUMNS "\n" ROW("0", "", "0", "NaN", "0", "1", "1"),
          "t.csv:3: \"input_tokens\" is \"NaN\", which is no whole number" },
        { COLUMNS ROW("0", "", "0", "", "0", "1", "1"),
          "t.csv:2: \"input_tokens\" is \"\", which is no whole number" },
        { COLUMNS ROW("0", "", "0", "1", "0", "1", "1")
          ROW("1", "", "0", "1", "0", "-4", "1"),
          "t.csv:3: \"arrival_time_us\" is \"-4\", which is negative" },
        { COLUMNS ROW("0", "", "0", "1", "0", "1", "1e300"),
          "t.csv:2: \"send_time_us\" is \"1e300\", which is no whole number" },
        { COLUMNS ROW("0", "", "0", "99999999999", "0", "1", "1"),
          "t.csv:2: \"input_tokens\" is \"99999999999\", which is too "
          "large" },
        { COLUMNS "0,c,t,,,0,,0,maybe,1,9,0,0,0,0,0,,0,0,1,1,0,0,0,ok,,\n",
          "t.csv:2: \"streaming\" is \"maybe\", neither true nor false" },
        { COLUMNS "0,c,t,,,0,,0,true,1,9,0,0,0,0,nan,,0,0,1,1,0,0,0,ok,,\n",
          "t.csv:2: \"reason_ratio\" is \"nan\", which is no finite "
          "number" },
        { COLUMNS "0,c,t,,,0,,0,true,1,9,0,0,0,0,0,,7,0,9,9,0,0,0,ok,,\n",
          "t.csv:2: \"deadline_us\" is before \"arrival_time_us\"" },
        { COLUMNS "0,\"c", "t.csv:2: a quoted field has no end" },
        { COLUMNS "0,c\"d\",t", "t.csv:2: column 2 has a quote out of place" },
        { COLUMNS "\"0\"1,c,t", "t.csv:2: column 1 has a quote out of place" },
    };

    for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        error.text[0] = '\0';
        assert_int_equal(read_data(&trace, cases[i].text, &error), -1);
        assert_string_equal(error.text, cases[i].error);
        work_trace_done(&trace);
    }
}


static void
binary_data_is_refused(void **state)
{
    char          bytes[64];
    work_trace_t  trace;
    work_error_t  error;

    work_trace_init(&trace);
    memcpy(bytes, "request_id,\0\x01\x02", 14);
    assert_int_equal(work_trace_read_data(&trace, "t.csv", bytes, 14, &error),
                     -1);
    assert_string_equal(error.text, "t.csv:1: binary data: a NUL");
    work_trace_done(&trace);
}


static void
a_header_is_read(void **state)
{
    work_slo_t    *slo;
    work_trace_t   trace;

    assert_int_equal(read_header(&trace,
        "trace_version: 3\ntime_unit: microseconds\nmode: real\n"
        "warm_up_requests: 5\nworkload_seed: -3\nserver:\n  type: vllm\n"
        "network:\n  measured_rtt_ms: 1.5\ngoodput_slo_targets:\n"
        "  critical: {ttft_ms: 30, e2e_ms: 1e3}\n", NULL), 0);
    assert_int_equal(trace.header.version, 3);
    assert_int_equal(trace.header.warm_up_requests, 5);
    assert_int_equal(trace.header.workload_seed, -3);
    assert_true(trace.header.has_seed);
    assert_string_equal(trace.header.mode, "real");
    assert_string_equal(trace.header.server->type, "vllm");
    assert_true(trace.header.network->measured_rtt_ms == 1.5);
    assert_int_equal(trace.header.slos.n, 1);

    slo = trace.header.slos.items;
    assert_string_equal(slo->of.name, "critical");
    assert_true(slo->e2e_ms == 1000 && slo->itl_ms == 0);
    work_trace_done(&trace);
}


static void
bad_headers_are_refused_with_their_line(void **state)
{
    size_t        i;
    work_trace_t  trace;
    work_error_t  error;

    static const struct {
        const char  *text;
        const char  *error;
    } cases[] = {
        { "", "t.yaml:1: empty: keys and values are needed" },
        { "- 1\n", "t.yaml:1: this needs keys and values" },
        { "mode: real\nwarmup: 3\n", "t.yaml:2: unknown key \"warmup\"" },
        { "server:\n  kind: x\n", "t.yaml:2: unknown key \"kind\"" },
        { "mode: real\nmode: real\n",
          "t.yaml:2: the key \"mode\" is given twice" },
        { "mode: unreal\n", "t.yaml:1: \"mode\" is \"unreal\", not \"real\", "
          "\"generated\" or \"replayed\"" },
        { "time_unit: s\n",
          "t.yaml:1: \"time_unit\" is \"s\", not \"microseconds\"" },
        { "network: {measured_rtt_ms: .nan}\n", "t.yaml:1: "
          "\"measured_rtt_ms\" is .nan, which is no finite number" },
        { "network: {measured_rtt_ms: -1}\n",
          "t.yaml:1: \"measured_rtt_ms\" is -1, not 0 to 1000000000" },
        { "warm_up_requests: 1.5\n", "t.yaml:1: \"warm_up_requests\" is 1.5, "
          "which is no whole number" },
        { "warm_up_requests: x\n",
          "t.yaml:1: \"warm_up_requests\" needs a whole number" },
        { "warm_up_requests: 1000000000\n", "t.yaml:1: \"warm_up_requests\" "
          "is 1000000000, not 0 to 10000000" },
        { "mode: [a]\n", "t.yaml:1: \"mode\" needs a text" },
        { "mode: \"a\n", "t.yaml:2: no YAML: found unexpected end of stream" },
        { "a: b: c\n", "t.yaml:1: no YAML: mapping values are not allowed in "
          "this context" },
    };

    for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        error.text[0] = '\0';
        assert_int_equal(read_header(&trace, cases[i].text, &error), -1);
        assert_string_equal(error.text, cases[i].error);
        work_trace_done(&trace);
    }
}


static void
what_is_written_is_read_again(void **state)
{
    char           path[2][64];
    work_t         work;
    work_trace_t   made, got;
    work_error_t   error;

    make_work(&work, COLUMNS ROW("7", "g", "100", "30", "0", "5", "8")
                     ROW("9", "\"a, \"\"b\"\"\"", "0", "30", "44", "6", "0"));
    work_at(&work, 1)->slo_target_us = 77;
    work_trace_init(&made);
    made.header.mode = "replayed";
    made.header.workload_spec = "a: \"b\"";
    made.header.has_seed = 1;
    made.header.workload_seed = -9;
    work_trace_add_request(&made, work_at(&work, 0), "ok", 20, 30);
    work_trace_add_request(&made, work_at(&work, 1), "timeout", 0, 0);

    snprintf(path[0], sizeof(path[0]), "/tmp/test_trace.%d.yaml", getpid());
    snprintf(path[1], sizeof(path[1]), "/tmp/test_trace.%d.csv", getpid());
    assert_int_equal(work_trace_write(&made, path[0], path[1], &error), 0);
    work_trace_init(&got);
    assert_int_equal(work_trace_read(&got, path[0], path[1], &error), 0);
    unlink(path[0]);
    unlink(path[1]);

    assert_string_equal(got.header.mode, "replayed");
    assert_string_equal(got.header.workload_spec, "a: \"b\"");
    assert_int_equal(got.header.workload_seed, -9);
    assert_int_equal(got.n, 2);
    assert_int_equal(got.records[0].request_id, 0);
    assert_int_equal(got.records[0].prefix_length, 100);
    assert_int_equal(got.records[0].input_tokens, 30);
    assert_int_equal(got.records[0].send_us, 8);
    assert_int_equal(got.records[0].last_chunk_us, 30);
    assert_int_equal(got.records[1].slo_target_us, 77);
    assert_string_equal(got.records[1].prefix_group->text, "a, \"b\"");
    assert_string_equal(got.records[1].status->text, "timeout");

    work_trace_done(&made);
    work_trace_done(&got);
    work_done(&work);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(a_row_becomes_a_request),
        cmocka_unit_test(the_first_length_is_the_groups),
        cmocka_unit_test(blocks_are_equal_as_far_as_the_prefix_goes),
        cmocka_unit_test(optional_columns_are_found_by_name),
        cmocka_unit_test(bad_rows_are_refused_with_their_line),
        cmocka_unit_test(binary_data_is_refused),
        cmocka_unit_test(what_is_written_is_read_again),
        cmocka_unit_test(a_header_is_read),
        cmocka_unit_test(bad_headers_are_refused_with_their_line),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
