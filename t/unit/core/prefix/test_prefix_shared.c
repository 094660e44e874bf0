
/*
 * Several processes at one index: writers that are killed again and again, and
 * readers without a lock.
 *
 * All prompts have the same number of blocks, and a replica keeps a few whole
 * ones.  A reader that sees a replica in the middle of a record would see a
 * part of a prompt, which must never happen.
 *
 * LLMGW_PREFIX_SECONDS says for how long (1).
 */

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "t/unit/core/prefix/prefix_model.h"

#include "core/prefix/index_inner.h"
#include "core/prefix/shared_index.h"


#define REPLICAS  6
#define LENGTH    12            /* of a prompt, in blocks */
#define KEPT      3             /* prompts of a replica */
#define PROMPTS   8             /* for each replica: most are not in it */
#define WRITERS   2
#define READERS   2

typedef struct {
    pthread_mutex_t         mutex;
    uint32_t                stop;
    uint32_t                mended;
    uint32_t                parts;          /* parts of prompts: must be 0 */
    uint32_t                whole;
    llmgw_prefix_shared_t  *shared;
    llmgw_prefix_size_t     size;
} table_t;


static table_t *
table_create(void)
{
    size_t                bytes;
    table_t              *table;
    pthread_mutexattr_t   attr;
    llmgw_prefix_size_t   size = { REPLICAS, KEPT * LENGTH, 0, 99 };

    bytes = llmgw_prefix_shared_bytes(&size);
    table = mmap(NULL, sizeof(table_t) + bytes, PROT_READ|PROT_WRITE,
                 MAP_SHARED|MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(table, MAP_FAILED);

    pthread_mutexattr_init(&attr);
    pthread_mutexattr_setpshared(&attr, PTHREAD_PROCESS_SHARED);
    pthread_mutexattr_setrobust(&attr, PTHREAD_MUTEX_ROBUST);
    assert_int_equal(pthread_mutex_init(&table->mutex, &attr), 0);

    table->size = size;
    table->shared = llmgw_prefix_shared_init(table + 1, &size);
    assert_non_null(table->shared);

    return table;
}


static void
table_destroy(table_t *table)
{
    munmap(table, sizeof(table_t) + llmgw_prefix_shared_bytes(&table->size));
}


static uint32_t
counted(uint32_t *counter, uint32_t n)
{
    return __atomic_add_fetch(counter, n, __ATOMIC_RELAXED);
}


static int
stopped(table_t *table)
{
    return __atomic_load_n(&table->stop, __ATOMIC_RELAXED) != 0;
}


/* Locks, and mends after a dead process, as nginx's workers do. */
static void
lock(table_t *table)
{
    if (pthread_mutex_lock(&table->mutex) == EOWNERDEAD) {
        (void) pthread_mutex_consistent(&table->mutex);
    }

    if (llmgw_prefix_is_torn(table->shared)) {
        llmgw_prefix_shared_mend(table->shared);
        (void) counted(&table->mended, 1);
    }
}


static void
prompt(uint64_t *blocks, uint32_t replica, uint32_t which)
{
    uint32_t  b;

    /* half of them are the same at all replicas */

    for (b = 0; b < LENGTH; b++) {
        blocks[b] = (uint64_t) (which % 2 ? replica : 99) * 100000
                    + which * 1000 + b;
    }
}


static void
write_one(table_t *table, uint64_t *seed)
{
    uint32_t  replica;
    uint64_t  owner, blocks[LENGTH];

    replica = model_draw(seed, REPLICAS);
    owner = model_draw(seed, 50) == 0 ? 2 : 1;
    prompt(blocks, replica, model_draw(seed, PROMPTS));

    lock(table);
    (void) llmgw_prefix_shared_record(table->shared, replica, owner, blocks,
                                      LENGTH);
    (void) pthread_mutex_unlock(&table->mutex);
}


static void
read_one(table_t *table, uint64_t *seed)
{
    uint32_t  r, matched[REPLICAS];
    uint64_t  blocks[LENGTH], scratch[2];

    r = model_draw(seed, REPLICAS);
    prompt(blocks, r, model_draw(seed, PROMPTS));

    if (!llmgw_prefix_shared_match(table->shared, blocks, LENGTH, matched,
                                   scratch))
    {
        (void) sched_yield();
        return;
    }

    for (r = 0; r < REPLICAS; r++) {
        if (matched[r] == LENGTH) {
            (void) counted(&table->whole, 1);

        } else if (matched[r] != 0) {
            (void) counted(&table->parts, 1);
        }
    }
}


static void
run(table_t *table, uint64_t seed, int writes)
{
    while (!stopped(table)) {
        if (writes) {
            write_one(table, &seed);

        } else {
            read_one(table, &seed);
        }
    }
}


static pid_t
start(table_t *table, uint64_t seed, int writes)
{
    pid_t  pid;

    pid = fork();
    assert_int_not_equal(pid, -1);

    if (pid == 0) {
        run(table, seed, writes);
        _exit(0);
    }

    return pid;
}


static uint64_t
now_us(void)
{
    struct timespec  ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);

    return (uint64_t) ts.tv_sec * 1000000 + (uint64_t) ts.tv_nsec / 1000;
}


static uint64_t
seconds(void)
{
    const char  *text;

    text = getenv("LLMGW_PREFIX_SECONDS");

    return text == NULL ? 1 : strtoull(text, NULL, 10);
}


/* Each replica has whole prompts, and as many as fit can be written again. */
static void
assert_is_usable(table_t *table)
{
    uint32_t  r, which;
    uint64_t  blocks[LENGTH];

    for (r = 0; r < REPLICAS; r++) {
        lock(table);
        assert_int_equal(prefix_list(
            llmgw_prefix_shared_index(table->shared), r)->n % LENGTH, 0);

        for (which = 0; which < KEPT; which++) {
            prompt(blocks, r, which);
            (void) llmgw_prefix_shared_record(table->shared, r, 3, blocks,
                                              LENGTH);
        }

        for (which = 0; which < KEPT; which++) {
            prompt(blocks, r, which);
            assert_int_equal(llmgw_prefix_shared_record(table->shared, r, 3,
                                                        blocks, LENGTH),
                             LENGTH);
        }

        (void) pthread_mutex_unlock(&table->mutex);
    }
}


/*
 * Whether readers have found whole prompts, and writers have died within a
 * record.
 */
static int
seen(table_t *table)
{
    return counted(&table->whole, 0) >= 100 && counted(&table->mended, 0) > 0;
}


static void
readers_see_no_part_of_a_record(void **state)
{
    int        status;
    pid_t      pids[WRITERS + READERS];
    table_t   *table;
    uint32_t   i, killed;
    uint64_t   seed, end;

    seed = seconds() == 1 ? 1 : now_us();
    print_message("seed %llu\n", (unsigned long long) seed);
    table = table_create();
    killed = 0;

    for (i = 0; i < WRITERS + READERS; i++) {
        pids[i] = start(table, seed + i, i < WRITERS);
    }

    end = now_us() + seconds() * 1000000;

    for ( /* void */ ; now_us() < end || !seen(table); killed++) {
        assert_true(now_us() < end + 30000000);
        i = killed % WRITERS;
        (void) usleep(1000 + model_draw(&seed, 4000));
        assert_int_equal(kill(pids[i], SIGKILL), 0);
        assert_int_equal(waitpid(pids[i], &status, 0), pids[i]);
        pids[i] = start(table, seed, 1);
    }

    __atomic_store_n(&table->stop, 1, __ATOMIC_RELAXED);

    for (i = 0; i < WRITERS + READERS; i++) {
        assert_int_equal(waitpid(pids[i], &status, 0), pids[i]);
        assert_int_equal(status, 0);
    }

    print_message("%u killed, %u left it torn, %u whole\n", killed,
                  table->mended, table->whole);
    assert_int_equal(table->parts, 0);
    assert_is_usable(table);
    table_destroy(table);
}


typedef struct {
    table_t   *table;
    uint64_t   seed;
} actor_t;


static void *
writer(void *data)
{
    uint32_t   i;
    actor_t   *actor = data;

    for (i = 0; i < 20000; i++) {
        write_one(actor->table, &actor->seed);
    }

    return NULL;
}


/* Reads until the test has stopped, and a whole prompt was found. */
static void *
reader(void *data)
{
    actor_t  *actor = data;

    do {
        read_one(actor->table, &actor->seed);
    } while (!stopped(actor->table) || counted(&actor->table->whole, 0) == 0);

    return NULL;
}


/* The same within one process, which a sanitizer of threads can watch. */
static void
threads_race_for_nothing(void **state)
{
    uint32_t    i;
    actor_t     actors[WRITERS + READERS];
    table_t    *table;
    pthread_t   threads[WRITERS + READERS];

    table = table_create();

    for (i = 0; i < WRITERS + READERS; i++) {
        actors[i] = (actor_t) { table, i };
        assert_int_equal(pthread_create(&threads[i], NULL,
                                        i < WRITERS ? writer : reader,
                                        &actors[i]),
                         0);
    }

    for (i = 0; i < WRITERS + READERS; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);

        if (i == WRITERS - 1) {
            __atomic_store_n(&table->stop, 1, __ATOMIC_RELAXED);
        }
    }

    assert_int_equal(table->parts, 0);
    assert_is_usable(table);
    table_destroy(table);
}


/* A record for another owner begins anew; a match knows whose it is. */
static void
another_owner_has_nothing(void **state)
{
    table_t   *table;
    uint64_t   blocks[LENGTH];

    table = table_create();
    prompt(blocks, 2, 1);

    assert_int_equal(llmgw_prefix_owner(table->shared, 2), 0);
    assert_int_equal(llmgw_prefix_shared_record(table->shared, 2, 7, blocks,
                                                LENGTH), 0);
    assert_int_equal(llmgw_prefix_shared_record(table->shared, 2, 7, blocks,
                                                LENGTH), LENGTH);
    assert_int_equal(llmgw_prefix_owner(table->shared, 2), 7);
    assert_int_equal(llmgw_prefix_shared_record(table->shared, 2, 8, blocks,
                                                5), 0);
    assert_int_equal(llmgw_prefix_owner(table->shared, 2), 8);
    assert_int_equal(llmgw_prefix_shared_record(table->shared, 2, 8, blocks,
                                                LENGTH), 5);
    table_destroy(table);
}


static void
memory_is_used_to_the_last_node_that_fits(void **state)
{
    size_t               bytes;
    llmgw_prefix_size_t  size, more;

    for (bytes = 1000; bytes < 10000000; bytes = bytes * 5 / 3) {
        size = (llmgw_prefix_size_t) { .replicas = 100, .blocks = 2000 };

        if (llmgw_prefix_shared_fit(&size, bytes) == 0) {
            size.total = 1;
            assert_true(llmgw_prefix_shared_bytes(&size) > bytes);
            continue;
        }

        assert_true(llmgw_prefix_shared_bytes(&size) <= bytes);
        more = size;
        more.total++;
        assert_true(size.total == 200000
                    || llmgw_prefix_shared_bytes(&more) > bytes);
    }

    assert_int_equal(size.total, 200000);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(readers_see_no_part_of_a_record),
        cmocka_unit_test(threads_race_for_nothing),
        cmocka_unit_test(another_owner_has_nothing),
        cmocka_unit_test(memory_is_used_to_the_last_node_that_fits)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
