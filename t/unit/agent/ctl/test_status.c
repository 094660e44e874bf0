
/* llmgwctl status, metrics, weights, lock: figures, once or again and again. */

#include "t/unit/agent/ctl/ctl_scene.h"


static const ctl_t  plain;


static void
figures_are_one_a_line_and_inner_ones_indented(void **state)
{
    assert_string_equal(
        scene_show(ctl_status, &plain,
            "{'role':'gateway','joined':true,'isolated':false,'age':null,"
            "'counters':{'dropped':{'malformed':2}},'empty':{},"
            "'update':{'steps':[{'id':'r1','step':'drain'},'r2',{}]}}"),
        "role                    gateway\n"
        "joined                  yes\n"
        "isolated                no\n"
        "age                     -\n"
        "counters\n"
        "  dropped\n"
        "    malformed           2\n"
        "empty                   -\n"
        "update\n"
        "  steps\n"
        "    r1                  drain\n"
        "    r2\n");
}


/* Runs llmgwctl status --watch, with SIGTERM in the first pause. */
static const char *
watch(ctl_t ctl, const char *answer)
{
    sigset_t  ends;

    memset(&scene, 0, sizeof(scene));
    ctl.options.is_watched = 1;
    scene.is_last = 1;
    scene.lines[0] = answer;
    scene_run(ctl_status, &ctl, CTL_DONE);

    sigemptyset(&ends);
    sigaddset(&ends, SIGINT);
    sigaddset(&ends, SIGTERM);
    sigprocmask(SIG_UNBLOCK, &ends, NULL);

    return scene.said;
}


static void
watched_answers_follow_each_other_in_a_pipe(void **state)
{
    const char  *answer = "{'role':'x'}";

    assert_string_equal(watch(plain, answer),
                        "role                    x\n\n");
    assert_string_equal(watch((ctl_t) { .is_json = 1 }, answer),
                        "{\"role\":\"x\"}\n");
    assert_string_equal(watch((ctl_t) { .is_json = 1, .is_terminal = 1 },
                              answer), "{\"role\":\"x\"}\n");
}


/* A terminal that does not tell its size has 24 rows; one is kept
   for errors. */
static void
watched_answer_is_drawn_in_place_and_cut(void **state)
{
    int     i;
    char    answer[1024];
    size_t  len;

    const ctl_t  ctl = { .is_terminal = 1 };

    assert_string_equal(watch(ctl, "{'role':'x','n':1}"),
                        "\033[2J\033[?7l\033[H"
                        "role                    x\033[K\n"
                        "n                       1\033[K\n"
                        "\033[J\033[?7h\0337");

    len = (size_t) sprintf(answer, "{'role':'x'");

    for (i = 2; i <= 30; i++) {
        len += (size_t) sprintf(answer + len, ",'n%02d':%d", i, i);
    }

    strcpy(answer + len, "}");
    assert_non_null(strstr(watch(ctl, answer), "n22  "));
    assert_null(strstr(scene.said, "n23  "));
    assert_non_null(strstr(scene.said, "\n... 8 more\033[K\n\033[J"));
}


static void
metrics_are_the_figures_of_the_status(void **state)
{
    scene_show(ctl_metrics, &plain,
        "{'id':'a1','role':'gateway','cluster':'c','version':'9',"
        "'uptime_ms':1500,'joined':true,'members':{'ALIVE':2,'DEAD':1},"
        "'counters':{'datagrams_sent':7,'dropped':{'malformed':3}}}");
    assert_string_equal(scene.asked, "{\"cmd\":\"status\"}");
    assert_non_null(strstr(scene.said,
        "\nllmgw_agent_info{agent=\"a1\",role=\"gateway\",cluster=\"c\","
        "version=\"9\"} 1\n"));
    assert_non_null(strstr(scene.said,
        "\nllmgw_agent_uptime_seconds{agent=\"a1\"} 1.500\n"));
    assert_non_null(strstr(scene.said,
        "# TYPE llmgw_agent_joined gauge\n"
        "llmgw_agent_joined{agent=\"a1\"} 1\n"));
    assert_null(strstr(scene.said, "llmgw_agent_isolated"));
    assert_non_null(strstr(scene.said,
        "llmgw_agent_members{agent=\"a1\",state=\"ALIVE\"} 2\n"
        "llmgw_agent_members{agent=\"a1\",state=\"DEAD\"} 1\n"));
    assert_non_null(strstr(scene.said,
        "# TYPE llmgw_agent_datagrams_sent_total counter\n"
        "llmgw_agent_datagrams_sent_total{agent=\"a1\"} 7\n"));
    assert_non_null(strstr(scene.said,
        "llmgw_agent_dropped_total{agent=\"a1\",reason=\"malformed\"} 3\n"));
    assert_null(strstr(scene.said, "pipeline"));
}


static void
pipelines_are_told_as_far_as_they_can_be(void **state)
{
    scene_show(ctl_metrics, &plain,
        "{'id':'a1','role':'replica','pipelines':{'ready':true,"
        "'streams':'many','tokens':12,'constructs':4,"
        "'construct_us':{'p50':2500,'sum':10000},"
        "'failovers':{'lost':2,'odd':null},'shards':[{'id':'s\\\\1\\n',"
        "'steps':3,'latency_us':{'p95':1000000,'sum':1},"
        "'excluded_ms':2500},{'sessions':1}]}}");
    assert_non_null(strstr(scene.said,
        "\nllmgw_pipeline_ready{agent=\"a1\"} 1\n"));
    assert_null(strstr(scene.said, "llmgw_pipeline_streams{"));
    assert_non_null(strstr(scene.said,
        "\nllmgw_pipeline_tokens_total{agent=\"a1\"} 12\n"));
    assert_non_null(strstr(scene.said,
        "llmgw_pipeline_construct_seconds{agent=\"a1\",quantile=\"0.5\"} "
        "0.002500\n"
        "llmgw_pipeline_construct_seconds_sum{agent=\"a1\"} 0.010000\n"
        "llmgw_pipeline_construct_seconds_count{agent=\"a1\"} 4\n"));
    assert_non_null(strstr(scene.said,
        "llmgw_pipeline_failovers_total{agent=\"a1\",reason=\"lost\"} 2\n"));
    assert_null(strstr(scene.said, "odd"));
    assert_non_null(strstr(scene.said,
        "llmgw_shard_latency_seconds{agent=\"a1\",shard=\"s\\\\1 \","
        "quantile=\"0.95\"} 1.000000\n"));
    assert_non_null(strstr(scene.said,
        "llmgw_shard_excluded_seconds{agent=\"a1\",shard=\"s\\\\1 \"} "
        "2.5\n"));
    assert_null(strstr(scene.said, "llmgw_shard_sessions{"));
}


/* What a shard reports may be anything: long names, many of them. */
static void
callers_are_bounded_series(void **state)
{
    int     i;
    char    id[601], status[4096];
    size_t  len;

    scene_show(ctl_metrics, &plain,
        "{'id':'s1','role':'shard','callers':{'o1':{'sessions':2,'opened':5,"
        "'rows':70,'refused':{'shard_full':3,'odd':'x'}},"
        "'(others)':{'sessions':0,'opened':'many','refused':7},'bad':1}}");
    assert_non_null(strstr(scene.said,
        "# TYPE llmgw_shard_caller_sessions gauge\n"
        "llmgw_shard_caller_sessions{agent=\"s1\",caller=\"o1\"} 2\n"
        "llmgw_shard_caller_sessions{agent=\"s1\",caller=\"(others)\"} "
        "0\n"));
    assert_non_null(strstr(scene.said,
        "# TYPE llmgw_shard_caller_opened_total counter\n"
        "llmgw_shard_caller_opened_total{agent=\"s1\",caller=\"o1\"} 5\n"
        "# HELP"));
    assert_non_null(strstr(scene.said,
        "llmgw_shard_caller_rows_total{agent=\"s1\",caller=\"o1\"} 70\n"));
    assert_non_null(strstr(scene.said,
        "llmgw_shard_caller_refusals_total{agent=\"s1\",caller=\"o1\","
        "reason=\"shard_full\"} 3\n"));
    assert_null(strstr(scene.said, "odd"));
    assert_null(strstr(scene.said, "bad"));

    memset(id, 'a', sizeof(id) - 1);
    id[sizeof(id) - 1] = '\0';
    len = (size_t) snprintf(status, sizeof(status), "{'id':'s1',"
                            "'role':'shard','callers':{"
                            "'%s':{'sessions':1,'refused':{'x':1}}", id);

    for (i = 1; i < 40; i++) {
        len += (size_t) snprintf(status + len, sizeof(status) - len,
                                 ",'n%02d':{'sessions':1}", i);
    }

    strcpy(status + len, "}}");
    scene_show(ctl_metrics, &plain, status);
    assert_non_null(strstr(scene.said, "aaa\",reason=\"x\"} 1\n"));
    assert_non_null(strstr(scene.said, "caller=\"n31\"} 1\n"));
    assert_null(strstr(scene.said, "caller=\"n32\""));
}


static void
weights_are_told_with_their_clients(void **state)
{
    const ctl_t  ctl = { .words = { "status" }, .nwords = 1 };

    assert_string_equal(
        scene_show(ctl_weights, &ctl,
            "{'device':1,'state':'writing','bytes':200,'hashed_bytes':84,"
            "'window_left_ms':1500,'clients':[{'engine':'e1',"
            "'role':'writes','pid':7},{'engine':'e2','role':'waits',"
            "'mode':'ro','left_ms':58000,'pid':8}]}"),
        "device    1\n"
        "state     writing\n"
        "name      -\n"
        "bytes     200, 42% hashed\n"
        "id        -\n"
        "window    1.5 s in which no engine may write\n"
        "e1        writes (pid 7)\n"
        "e2        waits for ro, 58.0 s left (pid 8)\n");
}


static void
locks_are_told_by_group(void **state)
{
    const ctl_t  ctl = { .words = { "status" }, .nwords = 1 };

    assert_string_equal(
        scene_show(ctl_lock, &ctl,
            "{'groups':[{'group':'g1','state':'held','fault':null,"
            "'holder':'r1','pid':7,'processes':3,'epoch':9,"
            "'waiters':[{'engine':'r2','state':'waiting'},"
            "{'engine':'r3','state':'silent'}],'fence':'pid',"
            "'last':{'gone_ms':12,'grant_ms':15}},"
            "{'group':'g2','state':'window','fault':'stuck',"
            "'window_left_ms':500,'holder':null,'waiters':[]}]}"),
        "g1\n"
        "  state     held\n"
        "  holder    r1 (pid 7, 3 processes), epoch 9\n"
        "  waiters   r2 waiting, r3 silent\n"
        "  fence     pid\n"
        "  takeover  gone after 12 ms, granted after 15 ms\n"
        "g2\n"
        "  state     window, stuck, 0.5 s left\n"
        "  holder    -\n"
        "  waiters   -\n"
        "  fence     -\n");
    assert_string_equal(scene_show(ctl_lock, &ctl, "{'groups':[]}"),
                        "no group yet\n");
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(figures_are_one_a_line_and_inner_ones_indented),
        cmocka_unit_test(watched_answers_follow_each_other_in_a_pipe),
        cmocka_unit_test(watched_answer_is_drawn_in_place_and_cut),
        cmocka_unit_test(metrics_are_the_figures_of_the_status),
        cmocka_unit_test(pipelines_are_told_as_far_as_they_can_be),
        cmocka_unit_test(callers_are_bounded_series),
        cmocka_unit_test(weights_are_told_with_their_clients),
        cmocka_unit_test(locks_are_told_by_group)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
