
/* Logs of records, plain and compressed, whole and not: proto/usage/log.h. */

#include <unistd.h>
#include <zlib.h>

#include "proto/usage/log.h"
#include "t/unit/proto/usage/usage_scene.h"


typedef struct {
    char      path[64];
    uint64_t  n;                        /* records */
    uint64_t  sum;                      /* the sum of their n */
    uint64_t  most;                     /* take() ends after so many */
} scene_t;


static int
setup(void **state)
{
    int             fd;
    static scene_t  scene;

    scene = (scene_t) { .path = "/tmp/llmgw-usage-XXXXXX", .most = 1000000 };
    fd = mkstemp(scene.path);
    assert_int_not_equal(fd, -1);
    (void) close(fd);
    *state = &scene;

    return 0;
}


static int
teardown(void **state)
{
    scene_t  *scene = *state;

    return unlink(scene->path);
}


static void
put(scene_t *scene, const char *how, const char *text, size_t len)
{
    gzFile  file;

    file = gzopen(scene->path, how);
    assert_non_null(file);

    if (len > 0) {
        assert_int_equal(gzwrite(file, text, (unsigned) len), len);
    }

    assert_int_equal(gzclose(file), Z_OK);
}


static int
take(void *data, const llmgw_usage_source_t *from, const llmgw_usage_t *got)
{
    scene_t  *scene = data;

    scene->n++;
    scene->sum += got->n;

    return scene->n == scene->most;
}


/* Reads the log to its end; returns the last step's result, *counts is the
   total. */
static int
read_all(scene_t *scene, uint32_t lines, llmgw_usage_log_counts_t *counts)
{
    int                 rc;
    llmgw_usage_log_t  *log;

    scene->n = scene->sum = 0;
    log = llmgw_usage_log_open(scene->path);
    assert_non_null(log);

    do {
        rc = llmgw_usage_log_step(log, lines, take, scene);
    } while (rc == 1);

    *counts = *llmgw_usage_log_counts(log);
    llmgw_usage_log_close(log);

    return rc;
}


/* The lines of records 1 to many. */
static char *
records(uint32_t many, size_t *len)
{
    char           *text, *p;
    uint32_t        i;
    llmgw_usage_t   record = usage;

    p = text = malloc((size_t) many * LLMGW_USAGE_LINE_BYTES);
    assert_non_null(text);

    for (i = 1; i <= many; i++) {
        record.n = i;
        p += llmgw_usage_write(p, &source, &record);
    }

    *len = (size_t) (p - text);

    return text;
}


static void
log_is_read_plain_and_compressed(void **state)
{
    char                      *text;
    size_t                     i, len;
    scene_t                   *scene = *state;
    llmgw_usage_log_counts_t   counts;

    text = records(2000, &len);

    for (i = 0; i < 4; i++) {
        put(scene, i < 2 ? "wT" : "w", text, len);
        assert_int_equal(read_all(scene, i % 2 ? 1 : 1000, &counts), 0);
        assert_int_equal(scene->n, 2000);
        assert_int_equal(scene->sum, 2000 * 2001 / 2);
        assert_int_equal(counts.lines, 2000);
        assert_int_equal(counts.records, 2000);
        assert_int_equal(counts.wrong, 0);
    }

    put(scene, "wT", "", 0);
    assert_int_equal(read_all(scene, 1, &counts), 0);
    assert_int_equal(counts.lines, 0);
    free(text);
}


static void
record_that_was_cut_off_is_there_once_more(void **state)
{
    char                      *text, two[3 * LLMGW_USAGE_LINE_BYTES];
    size_t                     len, cut;
    scene_t                   *scene = *state;
    llmgw_usage_log_counts_t   counts;

    text = records(1, &len);

    for (cut = 0; cut < len; cut++) {
        memcpy(two, text, cut);
        two[cut] = '\n';
        memcpy(two + cut + 1, text, len);
        put(scene, "wT", two, cut + 1 + len);
        assert_int_equal(read_all(scene, 10, &counts), 0);
        assert_int_equal(counts.records, cut == len - 1 ? 2 : 1);
        assert_int_equal(counts.wrong, cut > 0 && cut < len - 1);
    }

    free(text);
}


/* A process was killed within its line; another process wrote behind that. */
static void
record_behind_one_that_was_cut_off_counts(void **state)
{
    char                      *text, two[6 * LLMGW_USAGE_LINE_BYTES];
    size_t                     len, cut, i;
    scene_t                   *scene = *state;
    llmgw_usage_t              record = usage;
    llmgw_usage_log_counts_t   counts;

    /* the longest that there is, and texts that look like its beginning */

    for (i = 0; i < sizeof(record.replicas) - 1; i++) {
        record.replicas[i] = "{\"time\":\""[i % 9];
    }

    text = malloc(LLMGW_USAGE_LINE_BYTES);
    assert_non_null(text);
    len = llmgw_usage_write(text, &source, &record);

    for (cut = 1; cut < len - 1; cut++) {
        memcpy(two, text, cut);
        memcpy(two + cut, text, cut);
        memcpy(two + 2 * cut, text, len);
        put(scene, "wT", two, 2 * cut + len);
        assert_int_equal(read_all(scene, 10, &counts), 0);
        assert_int_equal(counts.records, 1);
        assert_int_equal(scene->sum, record.n);
        assert_int_equal(counts.wrong, 1);
    }

    free(text);
}


static void
what_is_being_written_is_not_read(void **state)
{
    char                      *text;
    size_t                     len;
    scene_t                   *scene = *state;
    llmgw_usage_log_counts_t   counts;

    text = records(3, &len);
    put(scene, "wT", text, len - 1);
    assert_int_equal(read_all(scene, 10, &counts), 0);
    assert_int_equal(counts.records, 2);
    assert_int_equal(counts.wrong, 0);
    free(text);
}


static void
line_that_is_too_long_is_passed_over(void **state)
{
    char                      *text, *all;
    size_t                     len, i, before;
    scene_t                   *scene = *state;
    llmgw_usage_log_counts_t   counts;
    static const size_t        longs[] = { 4095, 4096, 65535, 65536, 65537,
                                           200000 };

    text = records(2, &len);
    all = malloc(2 * len + 200001 + 2);
    assert_non_null(all);

    for (i = 0; i < sizeof(longs) / sizeof(longs[0]); i++) {
        before = len;
        memcpy(all, text, before);
        memset(all + before, 'x', longs[i]);
        all[before + longs[i]] = '\n';
        memcpy(all + before + longs[i] + 1, text, len);
        memcpy(all + before + longs[i] + 1 + len, "?\n", 2);
        put(scene, "wT", all, before + longs[i] + 1 + len + 2);

        assert_int_equal(read_all(scene, 10, &counts), 0);
        assert_int_equal(counts.records, 4);
        assert_int_equal(counts.wrong, 2);
        assert_int_equal(counts.wrong_line, 3);
        assert_non_null(counts.wrong_why);
    }

    free(all);
    free(text);
}


static void
compressed_log_that_is_cut_off_is_an_error(void **state)
{
    char                      *text;
    size_t                     len;
    scene_t                   *scene = *state;
    llmgw_usage_log_counts_t   counts;

    text = records(5000, &len);
    put(scene, "w", text, len);
    assert_int_equal(truncate(scene->path, 10000), 0);
    assert_int_equal(read_all(scene, 100, &counts), -1);
    assert_in_range(counts.records, 1, 4999);
    free(text);
}


static void
reader_may_end_it(void **state)
{
    char                      *text;
    size_t                     len;
    scene_t                   *scene = *state;
    llmgw_usage_log_counts_t   counts;

    text = records(5, &len);
    put(scene, "wT", text, len);
    scene->most = 3;
    assert_int_equal(read_all(scene, 100, &counts), -1);
    assert_int_equal(scene->n, 3);
    free(text);
}


#define test(name)  cmocka_unit_test_setup_teardown(name, setup, teardown)

int
main(void)
{
    const struct CMUnitTest  tests[] = {
        test(log_is_read_plain_and_compressed),
        test(record_that_was_cut_off_is_there_once_more),
        test(record_behind_one_that_was_cut_off_counts),
        test(what_is_being_written_is_not_read),
        test(line_that_is_too_long_is_passed_over),
        test(compressed_log_that_is_cut_off_is_an_error),
        test(reader_may_end_it)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
