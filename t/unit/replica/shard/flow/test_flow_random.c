
/*
 * Random schedules: shards that die, come back, hang, lie, refuse and forget,
 * histories that are too long, and streams that pause and leave, at any time
 * and several at once.  Whatever happens, a stream gives the ids of the whole
 * model, or the first of them and a reason, which is that no shard is left to
 * ask; and in the end nothing is left.
 *
 * LLMGW_FLOW_SEEDS schedules, from LLMGW_FLOW_FIRST on.
 */

#include "t/unit/replica/shard/flow/flow_scene_streams.h"


static struct {
    uint64_t  done;
    uint64_t  lost;
    uint64_t  closed;
    uint64_t  failovers;
    uint64_t  rewinds;
    uint64_t  replays;
    uint64_t  evictions;
    uint64_t  audited;
} sums;


static uint64_t
below(uint64_t n)
{
    return rnd_below(&scene.rnd, n);
}


static uint64_t
soon(uint64_t ms)
{
    return scene.now + below(ms * 1000) * (MS / 1000);
}


static void
random_shard(uint32_t first, uint32_t last)
{
    char     id[16];
    fake_t  *shard;

    snprintf(id, sizeof(id), "s%zu", scene.nshards);
    shard = scene_shard(id, first, last);
    shard->rows_max = below(3) ? 32 : 1 + below(32);
    shard->row_ns = 1 + below(MS / 20);
    shard->step_ns = below(MS / 4);
    shard->sessions_max = below(8) == 0 ? 1 + below(4) : 0;
    shard->is_unloaded = below(8) == 0;
    shard->excluded_ms = 1 + below(2 * EXPIRED_MS);
}


/* Each cover of the layers is a pipeline; further shards lie across them. */
static void
random_shards(void)
{
    size_t    covers, extra;
    uint32_t  first, last;

    for (covers = 1 + below(3); covers > 0; covers--) {
        for (first = 0; first < LAYERS; first = last + 1) {
            last = first + below(below(2) ? LAYERS : 4);
            last = last < LAYERS ? last : LAYERS - 1;
            random_shard(first, last);
            if (scene.nshards > SHARDS_MAX / 2) {
                return;
            }
        }
    }

    for (extra = below(6); extra > 0; extra--) {
        first = below(LAYERS);
        random_shard(first, first + below(LAYERS - first));
    }
}


static void
fault_begins(void *data)
{
    fake_t  *shard = data;

    shard->fault = LIE_NAN + below(BREAKS);
    shard->fault_at = 5 + below(150);
    shard->faults = 1 + below(3);
}


static void
open_fault_begins(void *data)
{
    ((fake_t *) data)->open_fault = REFUSES_FULL
                                    + below(FAULTS - REFUSES_FULL);
}


static void
open_fault_ends(void *data)
{
    ((fake_t *) data)->open_fault = GOOD;
}


static void
slowness_begins(void *data)
{
    ((fake_t *) data)->step_ns = (500 + below(4000)) * MS;
}


static void
slowness_ends(void *data)
{
    ((fake_t *) data)->step_ns = below(MS / 4);
}


static void
doubt_begins(void *data)
{
    ((fake_t *) data)->is_doubted = 1;
}


static void
doubt_ends(void *data)
{
    ((fake_t *) data)->is_doubted = 0;
}


static void
random_fault(uint64_t ms)
{
    fake_t    *shard;
    uint64_t   at;

    shard = &scene.shards[below(scene.nshards)];
    at = soon(ms);

    switch (below(8)) {
    case 0:
        scene_at(at, fake_kill, shard);
        if (below(2)) {
            scene_at(at + below(3000) * MS, fake_unlist, shard);
        }
        break;
    case 1:
        scene_at(at, fake_restart, shard);
        break;
    case 2:
    case 3:
        scene_at(at, fault_begins, shard);
        break;
    case 4:
        scene_at(at, fake_expire, shard);
        break;
    case 5:
        scene_at(at, slowness_begins, shard);
        scene_at(at + below(3000) * MS, slowness_ends, shard);
        break;
    case 6:
        scene_at(at, doubt_begins, shard);
        scene_at(at + below(5000) * MS, doubt_ends, shard);
        break;
    default:
        scene_at(at, open_fault_begins, shard);
        scene_at(at + below(1000) * MS, open_fault_ends, shard);
        break;
    }
}


static void
stream_leaves(void *data)
{
    stream_t  *s = data;

    if (s->flow != NULL) {
        stream_end(s);
        sums.closed++;
    }
}


static void
random_stream(void *data)
{
    stream_t  *s;

    if (scene.nstreams == STREAMS_MAX) {
        return;
    }

    s = scene_stream(1 + below(200), 1 + below(60));
    s->chunk = 1 + below(32);

    if (below(6) == 0) {
        s->pause_at = s->nprompt + 1 + below(50);
        scene_at(soon(2000), stream_unpause, s);
    }

    if (below(8) == 0) {
        scene_at(soon(300), stream_leaves, s);
    }
}


/*
 * No path is left over shards that have not failed this flow; all others may
 * be asked in the end.
 */
static void
nobody_is_left(const flow_t *flow)
{
    size_t         i;
    uint64_t       keys[FLOW_EXCLUDED_MAX];
    fleet_path_t   path;
    fleet_query_t  query = { .to_layer = LAYERS - 1, .excluded = keys };

    if (flow->failovers > FLOW_FAILOVERS_MAX
        || strcmp(flow->reason, "shard_full") == 0)
    {
        return;
    }

    for (i = 0; i < flow->nexcluded; i++) {
        if (!flow->excluded[i].is_last
            && flow->excluded[i].until_ns > scene.now)
        {
            keys[query.nexcluded++] = flow->excluded[i].key;
        }
    }

    if (scene_search(&query, &path, 0) == FLEET_FOUND) {
        fail_msg("seed %llu: lost (%s: %s), but somebody is left",
                 (unsigned long long) scene.seed, flow->reason, flow->text);
    }
}


static void
a_schedule(uint64_t seed)
{
    size_t         n, i;
    flow_stats_t   stats;

    scene_begin(seed, 0);
    scene.on_lost = nobody_is_left;
    scene.is_mixed = below(4) == 0;
    scene.flows->options.history_max = below(3)
        ? 1ULL << 40 : below(300) * WIDTH * sizeof(float);
    scene.flows->options.audit_ppm = seed % 3 == 0 ? 1000000 : 0;
    scene.latency = below(MS / 5);
    scene.jitter = 1 + below(MS / 5);
    random_shards();

    for (n = 1 + below(12); n > 0; n--) {
        scene_at(soon(200), random_stream, NULL);
    }

    for (n = below(8); n > 0; n--) {
        random_fault(400);
    }

    scene_run();
    flows_stats(scene.flows, &stats);
    sums.failovers += stats.failovers;
    sums.rewinds += stats.rewinds;
    sums.replays += stats.replays;
    sums.evictions += stats.evictions;
    sums.audited += scene.flows->audit_stats.rows;

    for (i = 0; i < scene.nstreams; i++) {
        stream_check(&scene.streams[i]);
        sums.done += scene.streams[i].is_done;
        sums.lost += scene.streams[i].reason != NULL;
    }

    scene_end();
}


static uint64_t
number(const char *name, uint64_t otherwise)
{
    const char  *text;

    text = getenv(name);

    return text != NULL ? strtoull(text, NULL, 10) : otherwise;
}


static void
a_stream_says_what_the_model_says_or_why_not(void **state)
{
    uint64_t  seed, first, n;

    n = number("LLMGW_FLOW_SEEDS", 3000);
    first = number("LLMGW_FLOW_FIRST", 1);

    for (seed = first; seed < first + n; seed++) {
        if (n < 10) {
            printf("seed %llu\n", (unsigned long long) seed);
        }
        a_schedule(seed);
    }

    printf("%llu schedules: %llu streams whole, %llu lost, %llu closed;"
           " %llu failovers, %llu replays, %llu rewinds, %llu histories"
           " dropped\n", (unsigned long long) n,
           (unsigned long long) sums.done, (unsigned long long) sums.lost,
           (unsigned long long) sums.closed,
           (unsigned long long) sums.failovers,
           (unsigned long long) sums.replays,
           (unsigned long long) sums.rewinds,
           (unsigned long long) sums.evictions);

    /* the schedules are of use: all of it happened, and most streams lived */
    if (n >= 1000) {
        assert_true(sums.done > 2 * sums.lost);
        assert_true(sums.lost > 0 && sums.closed > 0 && sums.evictions > 0);
        assert_true(sums.audited > n);
        assert_true(sums.replays > n / 4 && sums.rewinds > n / 8);
    }
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(a_stream_says_what_the_model_says_or_why_not),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
