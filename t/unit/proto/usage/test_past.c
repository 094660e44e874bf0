
/* A start reads a state and the files of a log: proto/usage/past.h. */

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "proto/date.h"
#include "proto/usage/past.h"
#include "t/unit/proto/usage/usage_scene.h"


#define NOW        1795867200000ull         /* 2026-11-28T12:00Z */
#define MONTH      (NOW / 1000 - 27 * 86400 - 12 * 3600)
#define EARLIER    "0199900000000000000000000000000f"
#define LATER      "019aa0000000bbbbbbbbbbbbbbbbbbbb"

typedef struct {
    char                 folder[64];
    char                 log[80];
    char                 state[80];
    llmgw_past_files_t   files;
    llmgw_past_counts_t  counts;
    size_t               naccounts;
    uint64_t             used;              /* alice's, this month */
    uint32_t             troubles;
    char                 why[256];          /* why the last one happened */
    int                  error;
} scene_t;


static void
on_trouble(void *data, const char *path, const char *why, int error)
{
    scene_t  *scene = data;

    assert_int_equal(strncmp(path, scene->folder, strlen(scene->folder)), 0);
    scene->troubles++;
    scene->error = error;
    snprintf(scene->why, sizeof(scene->why), "%s", why);
}


static int
setup(void **state)
{
    static scene_t  scene;

    memset(&scene, 0, sizeof(scene));
    strcpy(scene.folder, "/tmp/llmgw-past-XXXXXX");
    assert_non_null(mkdtemp(scene.folder));
    snprintf(scene.log, sizeof(scene.log), "%s/usage.log", scene.folder);
    snprintf(scene.state, sizeof(scene.state), "%s/gw1.state", scene.folder);
    scene.files = (llmgw_past_files_t) {
        "gw1", NULL, scene.state, scene.log, NOW, on_trouble, &scene
    };
    *state = &scene;

    return 0;
}


static int
teardown(void **state)
{
    DIR            *dir;
    char            path[400];
    scene_t        *scene = *state;
    struct dirent  *entry;

    dir = opendir(scene->folder);
    assert_non_null(dir);

    while ((entry = readdir(dir)) != NULL) {
        snprintf(path, sizeof(path), "%s/%s", scene->folder, entry->d_name);
        (void) unlink(path);
    }

    (void) closedir(dir);

    return rmdir(scene->folder);
}


static const char *
path_of(scene_t *scene, const char *suffix)
{
    static char  path[200];

    snprintf(path, sizeof(path), "%s%s", scene->log, suffix);

    return path;
}


static void
set_time(const char *path, time_t seconds)
{
    struct timespec  times[2] = { { seconds, 0 }, { seconds, 0 } };

    assert_int_equal(utimensat(AT_FDCWD, path, times, 0), 0);
}


/* Writes records n to last, each of 100 tokens, to the log. */
static void
put(scene_t *scene, const char *suffix, const char *how, const char *birth,
    uint64_t n, uint64_t last)
{
    char                  text[LLMGW_USAGE_LINE_BYTES];
    gzFile                file;
    size_t                len;
    llmgw_usage_t         record = usage;
    llmgw_usage_source_t  from = source;

    strcpy(from.birth, birth);
    record.ended_ms = NOW - 1000;
    record.prompt = 60;
    record.completion = 40;
    file = gzopen(path_of(scene, suffix), how);
    assert_non_null(file);

    for ( ; n <= last; n++) {
        record.n = n;
        len = llmgw_usage_write(text, &from, &record);
        assert_int_equal(gzwrite(file, text, (unsigned) len), len);
    }

    assert_int_equal(gzclose(file), Z_OK);
    set_time(path_of(scene, suffix), NOW / 1000 - 1);
}


static void
put_text(const char *path, const char *text, size_t len)
{
    FILE  *file;

    file = fopen(path, "w");
    assert_non_null(file);
    assert_int_equal(fwrite(text, 1, len, file), len);
    assert_int_equal(fclose(file), 0);
    set_time(path, NOW / 1000 - 1);
}


/* Writes a state: usage of alice up to record n, and of other accounts that
   have no records. */
static void
put_state(scene_t *scene, const char *gateway, uint64_t n, uint32_t others)
{
    char                  *text, name[16];
    size_t                 len;
    uint32_t               i;
    llmgw_sums_t           sums = { { NOW / LLMGW_DAY_MS, 0 },
                                    { 100 * n, 100 * n } };
    llmgw_usage_source_t   from = source;

    sums.number[LLMGW_PERIOD_MONTH] = llmgw_period_number(LLMGW_PERIOD_MONTH,
                                                          NOW);
    strcpy(from.gateway, gateway);
    text = malloc((others + 3) * (size_t) LLMGW_STATE_LINE_BYTES);
    assert_non_null(text);

    len = llmgw_state_head(text, &from);
    len += llmgw_state_account(text + len, "alice", &sums, n);

    for (i = 0; i < others; i++) {
        snprintf(name, sizeof(name), "n%u", i);
        len += llmgw_state_account(text + len, name, &sums, n);
    }

    len += llmgw_state_end(text + len, others + 1);
    put_text(scene->state, text, len);
    free(text);
}


static int
read_past(scene_t *scene, void (*meanwhile)(scene_t *, uint32_t step))
{
    int                           rc;
    uint32_t                      step;
    size_t                        i;
    llmgw_past_t                 *past;
    const llmgw_books_account_t  *account;

    scene->troubles = 0;
    past = llmgw_past_begin(&scene->files);
    assert_non_null(past);

    for (step = 0; (rc = llmgw_past_step(past)) == 1; step++) {
        assert_in_range(step, 0, 100000);

        if (meanwhile != NULL) {
            meanwhile(scene, step);
        }
    }

    scene->used = 0;

    for (i = 0; (account = llmgw_books_at(llmgw_past_books(past), i)) != NULL;
         i++)
    {
        if (strcmp(account->name, "alice") == 0) {
            scene->used = account->sums.used[LLMGW_PERIOD_MONTH];
        }
    }

    scene->naccounts = i;
    scene->counts = *llmgw_past_counts(past);
    llmgw_past_done(past);

    return rc;
}


static void
log_and_its_rotated_files_are_read(void **state)
{
    scene_t  *scene = *state;

    assert_int_equal(read_past(scene, NULL), 0);
    assert_int_equal(scene->naccounts, 0);

    put(scene, "-20261126", "wT", BIRTH, 1, 1000);
    put(scene, ".2.gz", "w", BIRTH, 901, 2000);
    put(scene, ".1", "wT", BIRTH, 2001, 3000);
    put(scene, "", "wT", BIRTH, 3001, 4000);

    assert_int_equal(read_past(scene, NULL), 0);
    assert_int_equal(scene->used, 100 * 4000);
    assert_int_equal(scene->counts.files, 4);
    assert_int_equal(scene->counts.records, 4100);
    assert_int_equal(scene->troubles, 0);

    scene->files.log = NULL;
    assert_int_equal(read_past(scene, NULL), 0);
    assert_int_equal(scene->used, 0);
}


static void
state_counts_and_what_the_log_has_beyond_it(void **state)
{
    scene_t  *scene = *state;

    put(scene, ".1", "wT", EARLIER, 1, 500);
    put(scene, "", "wT", BIRTH, 1, 1000);
    put_state(scene, "gw1", 700, 3000);

    assert_int_equal(read_past(scene, NULL), 0);
    assert_int_equal(scene->used, 100 * 1000);
    assert_int_equal(scene->naccounts, 3001);

    put(scene, "", "aT", LATER, 1, 50);
    assert_int_equal(read_past(scene, NULL), 0);
    assert_int_equal(scene->used, 100 * 1050);

    scene->files.below = LATER;
    assert_int_equal(read_past(scene, NULL), 0);
    assert_int_equal(scene->used, 100 * 1000);
}


static void
files_that_have_nothing_are_not_read(void **state)
{
    scene_t  *scene = *state;

    put(scene, "", "wT", BIRTH, 1, 10);
    put(scene, ".1", "wT", EARLIER, 1, 10);

    /* a minute before this month */

    set_time(path_of(scene, ".1"), MONTH - 60);
    assert_int_equal(read_past(scene, NULL), 0);
    assert_int_equal(scene->counts.files, 2);

    set_time(path_of(scene, ".1"), MONTH - 61);
    assert_int_equal(read_past(scene, NULL), 0);
    assert_int_equal(scene->counts.files, 1);

    /* a minute before the state */

    put_state(scene, "gw1", 10, 0);
    set_time(path_of(scene, ".1"), NOW / 1000 - 61);
    assert_int_equal(read_past(scene, NULL), 0);
    assert_int_equal(scene->counts.files, 2);

    set_time(path_of(scene, ".1"), NOW / 1000 - 62);
    assert_int_equal(read_past(scene, NULL), 0);
    assert_int_equal(scene->counts.files, 1);
    assert_int_equal(scene->used, 1000);
}


/* If a state is refused, the log alone counts, with files that are
   older, too. */
static void
state_that_does_not_count_is_said(void **state)
{
    size_t                            i;
    scene_t                          *scene = *state;
    static const char *const          texts[] = {
        "", "?", "{}\n", "{\"llmgw_usage_state\":2,\"birth\":\"a\"}\n"
    };

    put(scene, "", "wT", BIRTH, 1, 20);
    set_time(scene->log, MONTH);

    for (i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        put_text(scene->state, texts[i], strlen(texts[i]));
        assert_int_equal(read_past(scene, NULL), 0);
        assert_int_equal(scene->counts.is_refused, 1);
        assert_int_equal(scene->troubles, 1);
        assert_int_equal(scene->used, 2000);
    }

    put_state(scene, "gw2", 10, 500);
    assert_int_equal(read_past(scene, NULL), 0);
    assert_int_equal(scene->counts.is_refused, 1);
    assert_string_equal(scene->why, "it is another gateway's");
    assert_int_equal(scene->naccounts, 1);
    assert_int_equal(scene->used, 2000);

    assert_int_equal(unlink(scene->state), 0);
    assert_int_equal(mkdir(scene->state, 0700), 0);
    assert_int_equal(read_past(scene, NULL), 0);
    assert_int_equal(scene->counts.is_refused, 1);
    assert_int_equal(rmdir(scene->state), 0);

    assert_int_equal(read_past(scene, NULL), 0);
    assert_int_equal(scene->counts.is_refused, 0);
    assert_int_equal(scene->troubles, 0);
}


static void
file_that_cannot_be_read_is_said(void **state)
{
    scene_t  *scene = *state;

    put(scene, "", "wT", BIRTH, 1, 10);
    put(scene, ".1.gz", "w", BIRTH, 11, 5000);
    assert_int_equal(truncate(path_of(scene, ".1.gz"), 5000), 0);
    set_time(path_of(scene, ".1.gz"), NOW / 1000);

    assert_int_equal(read_past(scene, NULL), 0);
    assert_int_equal(scene->troubles, 1);
    assert_string_equal(scene->why, "it cannot be read to its end");
    assert_in_range(scene->used, 1000, 100 * 4999);

    scene->files.log = "/tmp/llmgw-past-none/usage.log";
    strcpy(scene->folder + sizeof("/tmp/llmgw-past-") - 1, "");
    assert_int_equal(read_past(scene, NULL), 0);
    assert_int_equal(scene->troubles, 1);
    assert_int_equal(scene->error, ENOENT);
    snprintf(scene->folder, sizeof(scene->folder), "%.*s",
             (int) strlen(scene->log) - (int) strlen("/usage.log"), scene->log);
}


static uint32_t  rotate_at;

static void
rotate(scene_t *scene, uint32_t step)
{
    char  path[200];

    if (step != rotate_at) {
        return;
    }

    snprintf(path, sizeof(path), "%s", path_of(scene, ".2"));
    assert_int_equal(rename(path_of(scene, ".1"), path), 0);
    snprintf(path, sizeof(path), "%s", path_of(scene, ".1"));
    assert_int_equal(rename(scene->log, path), 0);
    put(scene, "", "wT", BIRTH, 601, 650);
}


static void
files_that_are_rotated_meanwhile_are_read_once(void **state)
{
    scene_t  *scene = *state;

    for (rotate_at = 0; rotate_at < 12; rotate_at++) {
        (void) unlink(path_of(scene, ".2"));
        put(scene, ".1", "wT", BIRTH, 1, 300);
        put(scene, "", "wT", BIRTH, 301, 600);

        assert_int_equal(read_past(scene, rotate), 0);
        assert_int_equal(scene->troubles, 0);
        assert_in_range(scene->used, 100 * 600, 100 * 650);
        assert_int_equal(scene->used % 100, 0);
    }
}


#define test(name)  cmocka_unit_test_setup_teardown(name, setup, teardown)

int
main(void)
{
    const struct CMUnitTest  tests[] = {
        test(log_and_its_rotated_files_are_read),
        test(state_counts_and_what_the_log_has_beyond_it),
        test(files_that_have_nothing_are_not_read),
        test(state_that_does_not_count_is_said),
        test(file_that_cannot_be_read_is_said),
        test(files_that_are_rotated_meanwhile_are_read_once),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
