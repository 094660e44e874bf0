
/*
 * Accounts against a model of them, over random requests: what is admitted, why
 * others are not, and what each account has paid.  Workers die with requests in
 * flight, the disk is full for a while, and clocks jump.
 */

#include "common/rnd.h"
#include "t/unit/core/accounts/accounts_scene.h"


#define NAMES     5
#define SLOTS     64
#define WORKERS   3
#define STEPS     40000
#define RECORDS   (STEPS + 1)

typedef struct {
    uint32_t  is_used;
    uint32_t  account;
    uint32_t  worker;
    uint64_t  reserved;
    uint64_t  delivered;
} request_t;

/* What the model knows of an account, in doubles and plain sums. */
typedef struct {
    llmgw_limits_t  limits;
    double          requests;           /* left in the bucket */
    double          tokens;
    uint64_t        at_ms;
    uint64_t        day;                /* used */
    uint32_t        day_number;
    uint64_t        completion;
    uint64_t        paid;
} model_t;

typedef struct {
    scene_t    scene;
    rnd_t      rnd;
    uint64_t   started[WORKERS];
    model_t    models[NAMES];
    request_t  requests[SLOTS];         /* by slot */
    uint32_t   written[RECORDS];        /* by record number */
    uint64_t   charged[RECORDS];
    int        is_disk_full;
    uint32_t   seen[LLMGW_ACCOUNTS_FULL + 1];   /* of all seeds */
} world_t;

static world_t  world_of_seed;

static const char *const  names[NAMES] = { "a", "b", "c", "d", "e" };


static uint32_t
below(world_t *world, uint32_t n)
{
    return (uint32_t) rnd_below(&world->rnd, n);
}


static void
model_fill(model_t *model, const llmgw_moment_t *now)
{
    double    minutes;
    uint32_t  day;

    minutes = (double) (now->ms - model->at_ms) / 60000;
    model->at_ms = now->ms;
    model->requests += minutes * (double) model->limits.rpm;
    model->tokens += minutes * (double) model->limits.tpm;

    if (model->requests > (double) model->limits.rpm) {
        model->requests = (double) model->limits.rpm;
    }

    if (model->tokens > (double) model->limits.tpm) {
        model->tokens = (double) model->limits.tpm;
    }

    day = (uint32_t) (now->unix_ms / LLMGW_DAY_MS);

    if (day > model->day_number) {
        model->day_number = day;
        model->day = 0;
    }
}


/*
 * Whether the model admits a request of so many tokens; *is_near is set near a
 * bound, where either answer is right.
 */
static int
model_admits(world_t *world, uint32_t i, uint64_t tokens, int *is_near)
{
    double          wanted;
    uint32_t        k, running;
    uint64_t        reserved;
    const model_t  *model = &world->models[i];

    for (k = running = reserved = 0; k < SLOTS; k++) {
        if (world->requests[k].is_used && world->requests[k].account == i) {
            running++;
            reserved += world->requests[k].reserved;
        }
    }

    wanted = tokens < model->limits.tpm ? (double) tokens
                                        : (double) model->limits.tpm;
    *is_near = (model->requests > 0.999 && model->requests < 1.001)
               || (model->tokens - wanted > -0.001
                   && model->tokens - wanted < 0.001);

    return model->requests >= 1 && model->tokens >= wanted
           && running < model->limits.streams
           && model->day + reserved < model->limits.budget;
}


static void
ask(world_t *world)
{
    int           is_near, is_admitted;
    model_t      *model;
    uint32_t      i, slot, worker;
    uint64_t      tokens;
    request_t    *request;

    i = below(world, NAMES);
    worker = below(world, WORKERS);
    model = &world->models[i];

    world->scene.ask.name = text(names[i]);
    world->scene.ask.limits = model->limits;
    world->scene.ask.owner.pid = (pid_t) worker;
    world->scene.ask.owner.started = world->started[worker];
    world->scene.ask.bytes = 4 * below(world, 200);
    world->scene.ask.max_tokens = 1 + below(world, 50);

    tokens = world->scene.ask.bytes / 4 + world->scene.ask.max_tokens;
    model_fill(model, &world->scene.now);
    is_admitted = model_admits(world, i, tokens, &is_near);

    (void) take(&world->scene);
    world->seen[world->scene.answer.admittance]++;

    if (world->scene.answer.admittance == LLMGW_ACCOUNTS_FULL) {
        assert_int_equal(world->scene.accounts->words.running, SLOTS);
        return;
    }

    if (!is_near) {
        assert_int_equal(world->scene.answer.admittance == LLMGW_ADMITTED,
                         is_admitted);
    }

    if (world->scene.answer.admittance != LLMGW_ADMITTED) {
        assert_true(world->scene.answer.retry_ms >= 1);
        return;
    }

    slot = world->scene.answer.slot;
    request = &world->requests[slot];
    assert_false(request->is_used);
    *request = (request_t) { 1, i, worker, tokens, 0 };
    llmgw_usage_replica(&world->scene.accounts->slots[slot].usage, "r", 1);
    model->requests -= 1;
    model->tokens -= (double) tokens;
}


static void
is_settled(world_t *world, uint32_t slot)
{
    model_t              *model;
    request_t            *request = &world->requests[slot];
    const llmgw_usage_t  *record = &world->scene.record;

    model = &world->models[request->account];
    model_fill(model, &world->scene.now);

    model->tokens += (double) request->reserved
                     - (double) (record->prompt + record->completion);
    model->tokens = model->tokens > (double) model->limits.tpm
                    ? (double) model->limits.tpm : model->tokens;
    model->day += record->prompt + record->completion;
    model->completion += record->completion;
    model->paid += record->prompt + record->completion;
    request->is_used = 0;

    assert_string_equal(record->key, names[request->account]);
    assert_in_range(record->n, 1, STEPS);
    assert_int_equal(world->charged[record->n], 0);
    world->charged[record->n] = 1 + record->prompt + record->completion;
}


static void
is_written(world_t *world, uint32_t slot)
{
    const llmgw_usage_t  *record = &world->scene.record;

    assert_int_equal(world->charged[record->n],
                     1 + record->prompt + record->completion);
    world->written[record->n]++;
    llmgw_accounts_written(world->scene.accounts, slot, record->n);
}


static void
end(world_t *world)
{
    uint32_t   slot;

    slot = below(world, SLOTS);

    if (!world->requests[slot].is_used) {
        return;
    }

    settle(&world->scene, slot, below(world, 300), below(world, 100));
    is_settled(world, slot);

    if (!world->is_disk_full) {
        is_written(world, slot);
    }
}


static void
deliver(world_t *world)
{
    uint32_t  slot;

    slot = below(world, SLOTS);

    if (world->requests[slot].is_used) {
        world->requests[slot].delivered++;
        llmgw_usage_slot_delivered(&world->scene.accounts->slots[slot],
                                   world->requests[slot].delivered);
    }
}


/* A worker dies: all of its slots are settled by the sweep. */
static void
die(world_t *world)
{
    uint32_t              slot, worker;
    scene_t              *scene = &world->scene;
    llmgw_process_t       owner;
    llmgw_usage_state_t   state;

    worker = below(world, WORKERS);

    for (slot = 0; (slot = llmgw_accounts_next_slot(scene->accounts, slot,
                        &state, &owner)) != UINT32_MAX; slot++)
    {
        if (owner.pid != (pid_t) worker) {
            continue;
        }

        assert_int_equal(owner.started, world->started[worker]);
        assert_true(llmgw_accounts_settle_dead(scene->accounts, slot,
                                               owner, &scene->now,
                                               &scene->record));

        if (state == LLMGW_USAGE_RUNNING) {
            assert_int_equal(scene->record.completion,
                             world->requests[slot].delivered);
            is_settled(world, slot);
        }

        is_written(world, slot);
    }

    world->started[worker]++;
}


/* The disk has room again: what waits is written. */
static void
write_all(world_t *world)
{
    uint32_t              slot;
    scene_t              *scene = &world->scene;
    llmgw_process_t       owner;
    llmgw_usage_state_t   state;

    world->is_disk_full = 0;

    for (slot = 0; (slot = llmgw_accounts_next_slot(scene->accounts, slot,
                        &state, &owner)) != UINT32_MAX; slot++)
    {
        if (llmgw_accounts_unwritten(scene->accounts, slot, owner,
                                     &scene->record))
        {
            assert_int_equal(state, LLMGW_USAGE_SETTLED);
            is_written(world, slot);
        }
    }
}


static void
step(world_t *world)
{
    uint32_t  what;

    what = below(world, 1000);
    world->scene.now.ms += below(world, 40);
    world->scene.now.unix_ms += below(world, 40);

    if (what < 400) {
        ask(world);

    } else if (what < 700) {
        end(world);

    } else if (what < 980) {
        deliver(world);

    } else if (what < 984) {
        die(world);

    } else if (what < 990) {
        world->is_disk_full = 1;

    } else if (what < 993) {
        write_all(world);

    } else if (what < 994) {
        world->scene.now.unix_ms += LLMGW_DAY_MS / 2;

    } else if (what < 996) {
        world->scene.now.unix_ms -= LLMGW_DAY_MS / 3;
    }
}


/* What accounts have paid is the sum of the records and of the lost ones. */
static void
assert_paid(world_t *world)
{
    int                    rc;
    uint32_t               i, k;
    uint64_t               n, unwritten;
    llmgw_account_look_t   account;

    for (i = 0; (rc = llmgw_accounts_look(world->scene.accounts, i,
                          &world->scene.now, &account)) != -1; i++)
    {
        assert_int_equal(rc, 1);
        k = (uint32_t) (account.name[0] - 'a');
        model_fill(&world->models[k], &world->scene.now);
        assert_int_equal(account.sums.used[LLMGW_PERIOD_DAY],
                         world->models[k].day);
        assert_int_equal(account.totals.completion,
                         world->models[k].completion);
        assert_int_equal(account.totals.prompt + account.totals.completion,
                         world->models[k].paid);
    }

    for (n = 1, unwritten = 0; n < world->scene.accounts->words.next_n; n++) {
        assert_int_not_equal(world->charged[n], 0);
        assert_in_range(world->written[n], 0, 1);
        unwritten += !world->written[n];
    }

    assert_int_equal(unwritten, world->scene.accounts->words.lost
                                + world->scene.accounts->words.settled);
}


static void
books_balance(world_t *world, uint64_t seed)
{
    uint32_t  i;

    memset(world, 0, offsetof(world_t, seen));
    scene_init(&world->scene, SLOTS);
    world->rnd.state = seed;

    for (i = 0; i < NAMES; i++) {
        world->models[i].limits = (llmgw_limits_t) {
            .rpm = 1 + below(world, 3000), .tpm = 400 + below(world, 200000),
            .streams = 1 + below(world, 20),
            .budget = 1000 + below(world, 200000) };
        world->models[i].requests = (double) world->models[i].limits.rpm;
        world->models[i].tokens = (double) world->models[i].limits.tpm;
        world->models[i].at_ms = world->scene.now.ms;
    }

    for (i = 0; i < STEPS; i++) {
        step(world);

        if (i % 64 == 0) {
            assert_balanced(world->scene.accounts);
        }
    }

    assert_paid(world);
    scene_done(&world->scene);
}


static void
books_balance_over_random_requests(void **state)
{
    uint32_t  i;
    uint64_t  seed;

    for (seed = 1; seed <= 20; seed++) {
        books_balance(&world_of_seed, seed);
    }

    for (i = 0; i <= LLMGW_ACCOUNTS_FULL; i++) {
        assert_true(world_of_seed.seen[i] >= 100);
    }
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(books_balance_over_random_requests)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
