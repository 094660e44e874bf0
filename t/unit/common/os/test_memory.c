
/* How much memory a process may take; files in a directory stand in for a
   host's. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <cmocka.h>

#include "common/os/memory.h"


#define MB  (1024 * 1024ULL)

/* Where control groups of version 1 have the memory controller. */
#define V1  "sys/fs/cgroup/memory"
#define V2  "sys/fs/cgroup"


/* Writes a file, and makes the directories above it. */
static void
put(const char *root, const char *name, const char *text)
{
    char   path[PATH_MAX];
    char  *slash;
    FILE  *f;

    snprintf(path, sizeof(path), "%s/%s", root, name);

    for (slash = strchr(path + strlen(root) + 1, '/'); slash != NULL;
         slash = strchr(slash + 1, '/'))
    {
        *slash = '\0';
        (void) mkdir(path, 0700);
        *slash = '/';
    }

    f = fopen(path, "w");
    assert_non_null(f);
    fputs(text, f);
    fclose(f);
}


static void
put_v2(const char *root, const char *group, const char *max,
    const char *current, const char *stat)
{
    char  name[256];

    snprintf(name, sizeof(name), V2 "%s/memory.max", group);
    put(root, name, max);
    snprintf(name, sizeof(name), V2 "%s/memory.current", group);
    put(root, name, current);
    snprintf(name, sizeof(name), V2 "%s/memory.stat", group);
    put(root, name, stat);
}


static void
expect(const char *root, uint64_t limit_mb, uint64_t available_mb)
{
    memory_t  memory;

    memory_read(&memory, root);
    assert_int_equal(memory.limit_bytes / MB, limit_mb);
    assert_int_equal(memory.available_bytes / MB, available_mb);
}


/* 64,000 MB, of which 48,000 are available. */
static int
setup(void **state)
{
    char  *root;

    root = strdup("/tmp/llmgw-memory-XXXXXX");
    assert_non_null(mkdtemp(root));
    put(root, "proc/meminfo",
        "MemTotal:       65536000 kB\n"
        "MemFree:         1024000 kB\n"
        "MemAvailable:   49152000 kB\n");
    *state = root;

    return 0;
}


static int
teardown(void **state)
{
    char  command[128];

    snprintf(command, sizeof(command), "rm -r %s", (char *) *state);
    assert_int_equal(system(command), 0);
    free(*state);

    return 0;
}


static void
without_control_groups_it_is_the_hosts(void **state)
{
    expect(*state, 64000, 48000);
    put(*state, "proc/self/cgroup", "0::/\n");
    expect(*state, 64000, 48000);
}


static void
what_cannot_be_read_bounds_nothing(void **state)
{
    memory_t  memory;

    memory_read(&memory, "/nowhere");
    assert_true(memory.limit_bytes == UINT64_MAX);
    assert_true(memory.available_bytes == UINT64_MAX);
}


/* A container sees its own control group as the root. */
static void
a_containers_limit_bounds_it(void **state)
{
    put(*state, "proc/self/cgroup", "0::/\n");
    put_v2(*state, "", "25769803776\n", "5242880000\n", "anon 5242880000\n");
    expect(*state, 24576, 24576 - 5000);
}


/* MemoryMax of a unit, and of a slice above it. */
static void
each_group_up_to_the_root_bounds_it(void **state)
{
    put(*state, "proc/self/cgroup", "0::/llm.slice/llmgw-agent@a.service\n");
    put_v2(*state, "/llm.slice/llmgw-agent@a.service", "max\n",
           "1048576000\n", "");
    expect(*state, 64000, 48000);

    put_v2(*state, "/llm.slice", "33554432000\n", "20971520000\n", "");
    expect(*state, 32000, 12000);

    put_v2(*state, "/llm.slice/llmgw-agent@a.service", "10485760000\n",
           "1048576000\n", "");
    expect(*state, 10000, 9000);
}


static void
page_cache_of_a_group_is_still_to_be_had_and_shared_memory_is_not(
    void **state)
{
    put(*state, "proc/self/cgroup", "0::/g\n");
    put_v2(*state, "/g", "10485760000\n", "9437184000\n",
           "anon 1048576000\nfile 8388608000\nshmem 2097152000\n"
           "inactive_file 4194304000\nactive_file 2097152000\n");
    expect(*state, 10000, 7000);
}


static void
a_group_over_its_limit_has_nothing_left(void **state)
{
    put(*state, "proc/self/cgroup", "0::/g\n");
    put_v2(*state, "/g", "1048576000\n", "1153433600\n", "");
    expect(*state, 1000, 0);
}


static void
groups_of_version_1_bound_it(void **state)
{
    put(*state, "proc/self/cgroup",
        "5:cpu,cpuacct:/other\n4:memory:/docker/abc\n0::/\n");
    put(*state, V1 "/memory.limit_in_bytes", "9223372036854771712\n");
    put(*state, V1 "/docker/abc/memory.limit_in_bytes", "8388608000\n");
    put(*state, V1 "/docker/abc/memory.usage_in_bytes", "3145728000\n");
    put(*state, V1 "/docker/abc/memory.stat",
        "cache 1048576000\ninactive_file 1\n"
        "total_inactive_file 524288000\ntotal_active_file 524288000\n");
    expect(*state, 8000, 6000);
}


/* A container without its own cgroup namespace sees its path on the host,
   which is not there. */
static void
a_path_that_is_not_there_leads_to_the_groups_above(void **state)
{
    put(*state, "proc/self/cgroup", "4:memory:/docker/abc\n");
    put(*state, V1 "/memory.limit_in_bytes", "8388608000\n");
    expect(*state, 8000, 8000);

    put(*state, "proc/self/cgroup", "0::/../../abc\n");
    put_v2(*state, "", "4194304000\n", "0\n", "");
    expect(*state, 4000, 4000);
}


#define TEST(name)  cmocka_unit_test_setup_teardown(name, setup, teardown)


static void
another_process_has_its_own_groups(void **state)
{
    memory_t  memory;

    put(*state, "proc/self/cgroup", "0::/\n");
    put(*state, "proc/77/cgroup", "0::/small\n");
    put_v2(*state, "/small", "1073741824\n", "536870912\n", "");
    memory_read_process(&memory, *state, "77");
    assert_int_equal(memory.limit_bytes / MB, 1024);
    assert_int_equal(memory.available_bytes / MB, 512);
    expect(*state, 64000, 48000);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        TEST(without_control_groups_it_is_the_hosts),
        TEST(what_cannot_be_read_bounds_nothing),
        TEST(a_containers_limit_bounds_it),
        TEST(each_group_up_to_the_root_bounds_it),
        TEST(page_cache_of_a_group_is_still_to_be_had_and_shared_memory_is_not),
        TEST(a_group_over_its_limit_has_nothing_left),
        TEST(groups_of_version_1_bound_it),
        TEST(a_path_that_is_not_there_leads_to_the_groups_above),
        TEST(another_process_has_its_own_groups)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
