
/* The state file: whole, torn at each byte, and owned by another process. */

#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "lock/lock_state.h"


static char  dir[] = "/tmp/llmgw-state-XXXXXX";
static char  path[64];


static void
fill(lock_state_t *state, size_t nholders)
{
    size_t            i;
    machine_claim_t  *h;

    memset(state, 0, sizeof(lock_state_t));
    state->epoch = 1763650000300001ULL;
    strcpy(state->boot_id, "3757d805-9ca6-4f7d-98ac-00bc4f65efd4");
    state->nholders = nholders;

    for (i = 0; i < nholders; i++) {
        h = &state->holders[i];
        memset(h->group, 'g', sizeof(h->group) - 1);
        memset(h->engine, 'e', sizeof(h->engine) - 1);
        snprintf(h->nonce, sizeof(h->nonce), "%016zx", i);
        h->pid = 4000000 + (pid_t) i;
        h->start_ticks = 1ULL << 50;
        h->epoch = state->epoch - i;
    }
}


static void
what_was_written_is_read(void **state)
{
    char    error[LOCK_STATE_ERROR_BYTES];
    size_t  i;
    lock_state_t  written, found;

    static const size_t  numbers[] = { 0, 1, MACHINE_GROUPS_MAX };

    for (i = 0; i < 3; i++) {
        fill(&written, numbers[i]);
        assert_int_equal(lock_state_write(path, &written), 0);
        assert_int_equal(lock_state_read(path, &found, error), LOCK_STATE_OK);
        assert_memory_equal(&found, &written, sizeof(lock_state_t));
    }
}


static size_t
slurp(char *text, size_t capacity)
{
    FILE    *file;
    size_t   len;

    file = fopen(path, "r");
    len = fread(text, 1, capacity, file);
    fclose(file);

    return len;
}


static void
spit(const char *text, size_t len)
{
    FILE  *file;

    file = fopen(path, "w");
    assert_int_equal(fwrite(text, 1, len, file), len);
    fclose(file);
}


static void
check_torn(void)
{
    char    error[LOCK_STATE_ERROR_BYTES] = "";
    lock_state_t  found;

    assert_int_equal(lock_state_read(path, &found, error), LOCK_STATE_TORN);
    assert_int_equal(found.epoch, 0);
    assert_int_equal(found.nholders, 0);
    assert_true(error[0] != '\0');
}


static void
a_file_that_is_torn_anywhere_is_not_used(void **state)
{
    char    text[4096];
    size_t  i, len;
    lock_state_t  written;

    fill(&written, 2);
    assert_int_equal(lock_state_write(path, &written), 0);
    len = slurp(text, sizeof(text));

    for (i = 0; i < len; i++) {
        spit(text, i);
        check_torn();
    }

    for (i = 0; i < len - 1; i++) {
        text[i] ^= 1;
        spit(text, len);
        check_torn();
        text[i] ^= 1;
    }

    text[len] = 'x';
    spit(text, len + 1);
    check_torn();
}


/* The checksum is right, but the contents are not what the service writes. */
static void
a_file_of_somebody_else_is_not_used(void **state)
{
    size_t                    i;
    char                      text[512];
    static const char *const  lines[] = {
        "", "{}", "[]", "{\"epoch\":1,\"boot_id\":\"b\"}",
        "{\"epoch\":\"1\",\"boot_id\":\"b\",\"holders\":[]}",
        "{\"epoch\":1,\"boot_id\":\"b\",\"holders\":[{}]}",
        "{\"epoch\":1,\"boot_id\":\"b\",\"holders\":[{\"group\":"
            "\"a-name-that-is-far-too-long-for-a-group\",\"engine\":\"e\","
            "\"nonce\":\"n\",\"pid\":1,\"start\":1,\"epoch\":1}]}"
    };

    for (i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
        snprintf(text, sizeof(text), "%s\n%016" PRIx64 "\n", lines[i],
                 (uint64_t) XXH64(lines[i], strlen(lines[i]), 0));
        spit(text, strlen(text));
        check_torn();
    }

    assert_int_equal(unlink(path), 0);
    assert_int_equal(mkdir(path, 0700), 0);
    check_torn();
    assert_int_equal(rmdir(path), 0);
}


static void
a_file_that_is_missing_is_told_from_one_that_is_torn(void **state)
{
    char    error[LOCK_STATE_ERROR_BYTES];
    lock_state_t  found;

    unlink(path);
    assert_int_equal(lock_state_read(path, &found, error), LOCK_STATE_MISSING);
}


static void
a_directory_that_is_missing_is_an_error(void **state)
{
    lock_state_t  written;

    fill(&written, 1);
    assert_int_equal(lock_state_write("/nonexistent/lock.state", &written), -1);
}


static int
setup(void **state)
{
    if (mkdtemp(dir) == NULL) {
        return -1;
    }

    snprintf(path, sizeof(path), "%s/lock.state", dir);

    return 0;
}


static int
teardown(void **state)
{
    unlink(path);

    return rmdir(dir);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(what_was_written_is_read),
        cmocka_unit_test(a_file_that_is_torn_anywhere_is_not_used),
        cmocka_unit_test(a_file_of_somebody_else_is_not_used),
        cmocka_unit_test(a_file_that_is_missing_is_told_from_one_that_is_torn),
        cmocka_unit_test(a_directory_that_is_missing_is_an_error),
    };

    return cmocka_run_group_tests(tests, setup, teardown);
}
