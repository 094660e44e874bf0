
/*
 * A gateway that is stopped at any moment knows afterwards what each account
 * has used.  The state is written account by account while requests go on; it
 * and the log, whose records may come twice and out of order, give the sums of
 * all records (proto/usage/books.h).
 */

#include "common/rnd.h"
#include "proto/usage/books.h"
#include "t/unit/core/accounts/accounts_scene.h"


#define NAMES    6
#define RECORDS  4000
#define STATE    (16 * LLMGW_STATE_LINE_BYTES)

typedef struct {
    scene_t                scene;
    llmgw_usage_source_t   source;
    rnd_t                  rnd;
    uint64_t               paid[NAMES];         /* really used this month */
    uint32_t               nlog;
    llmgw_usage_t          log[RECORDS];
    llmgw_usage_source_t   logged_by[RECORDS];
    char                   state[STATE];        /* the last whole one */
    size_t                 state_len;
    char                   next[STATE];         /* being written */
    size_t                 next_len;
    uint32_t               at;                  /* account */
    uint32_t               lines;
} world_t;

static const char *const  names[NAMES] = {
    "a", "b", "c\"d", "\xc3\xa9", "e", "f"
};


/* Reads a state line by line. */
static int
take_state(llmgw_books_t *books, const char *text_of, size_t len,
    const char **why)
{
    int     rc;
    size_t  at = 0;

    do {
        rc = llmgw_books_state(books, text_of, len, &at, 1, why);
    } while (rc == 1);

    return rc;
}


static void
start(world_t *world, uint64_t unix_ms)
{
    size_t                        i;
    uint8_t                       chance[LLMGW_USAGE_CHANCE_BYTES] = { 1 };
    const char                   *why;
    llmgw_books_t                *books;
    const llmgw_books_account_t  *account;

    books = llmgw_books_create("gw1", NULL);
    assert_non_null(books);

    if (world->state_len > 0) {
        assert_int_equal(take_state(books, world->state, world->state_len,
                                    &why), 0);
    }

    /* in a drawn order: from some record on, and around */

    for (i = 0; i < world->nlog; i++) {
        size_t  k = (i + world->rnd.state) % world->nlog;

        assert_int_equal(llmgw_books_record(books, &world->logged_by[k],
                                            &world->log[k]), 0);
    }

    scene_init(&world->scene, 16);
    world->scene.now.unix_ms = unix_ms;
    world->scene.ask.bytes = 0;
    llmgw_usage_birth(world->source.birth, unix_ms, chance,
                      world->source.birth);
    strcpy(world->source.gateway, "gw1");

    for (i = 0; (account = llmgw_books_at(books, i)) != NULL; i++) {
        assert_int_equal(llmgw_accounts_base(world->scene.accounts,
                                             text(account->name),
                                             &account->sums,
                                             &world->scene.now), 0);
    }

    llmgw_books_destroy(books);
    world->next_len = world->at = world->lines = 0;
}


static void
check(world_t *world)
{
    uint32_t              i;
    llmgw_account_look_t  account;

    for (i = 0; i < NAMES; i++) {
        if (world->paid[i] > 0) {
            account = look_at(&world->scene, names[i]);
            assert_int_equal(account.sums.used[LLMGW_PERIOD_MONTH],
                             world->paid[i]);
        }
    }
}


static void
serve(world_t *world)
{
    uint32_t  i;

    i = (uint32_t) rnd_below(&world->rnd, NAMES);
    world->scene.ask.name = text(names[i]);
    assert_int_equal(take(&world->scene), LLMGW_ADMITTED);
    settle_and_write(&world->scene, world->scene.answer.slot,
                     rnd_below(&world->rnd, 100),
                     rnd_below(&world->rnd, 100));
    world->paid[i] += world->scene.record.prompt
                      + world->scene.record.completion;

    world->log[world->nlog] = world->scene.record;
    world->logged_by[world->nlog++] = world->source;

    if (rnd_below(&world->rnd, 4) == 0) {       /* a duplicate */
        world->log[world->nlog] = world->scene.record;
        world->logged_by[world->nlog++] = world->source;
    }
}


/* Writes one more line of the next state; its last line replaces the state. */
static void
save(world_t *world)
{
    int                    rc;
    llmgw_account_look_t   account;

    if (world->next_len == 0) {
        world->next_len = llmgw_state_head(world->next, &world->source);
        return;
    }

    rc = llmgw_accounts_look(world->scene.accounts, world->at++,
                             &world->scene.now, &account);

    if (rc == 1) {
        world->next_len += llmgw_state_account(world->next + world->next_len,
                               account.name, &account.sums, account.n);
        world->lines++;
    }

    if (rc == -1) {
        world->next_len += llmgw_state_end(world->next + world->next_len,
                                           world->lines);
        memcpy(world->state, world->next, world->next_len);
        world->state_len = world->next_len;
        world->next_len = world->at = world->lines = 0;
    }
}


static void
nothing_is_lost_or_counted_twice(void **state)
{
    uint64_t         seed, unix_ms;
    static world_t   world;

    for (seed = 1; seed <= 30; seed++) {
        memset(&world, 0, sizeof(world));
        world.rnd.state = seed;
        unix_ms = NOON;
        start(&world, unix_ms);

        while (world.nlog < RECORDS - 2) {

            switch (rnd_below(&world.rnd, 100)) {
            case 0:                             /* all processes die */
                scene_done(&world.scene);
                /* it may be the same ms */
                unix_ms += rnd_below(&world.rnd, 5);
                start(&world, unix_ms);
                check(&world);
                break;
            default:
                serve(&world);
                break;
            }

            if (rnd_below(&world.rnd, 2)) {
                save(&world);
            }
        }

        check(&world);
        scene_done(&world.scene);
    }
}


/* A binary upgrade: two zones serve, and the newer one takes over. */
static void
takeover_adds_what_the_older_zone_did(void **state)
{
    size_t                        i;
    const char                   *why;
    world_t                      *world, *older;
    llmgw_books_t                *books;
    const llmgw_books_account_t  *account;

    older = calloc(1, sizeof(*older));
    world = calloc(1, sizeof(*world));
    assert_true(older != NULL && world != NULL);
    older->rnd.state = 5;
    start(older, NOON);

    for (i = 0; i < 300; i++) {
        serve(older);
        save(older);
    }

    memcpy(world, older, sizeof(*world));
    start(world, NOON + 1);
    check(world);

    for (i = 0; i < 300; i++) {
        serve(older);
        serve(world);
    }

    while (older->next_len > 0) {
        save(older);
    }

    books = llmgw_books_create("gw1", world->source.birth);
    assert_int_equal(take_state(books, older->state, older->state_len, &why),
                     0);

    for (i = 0; i < older->nlog; i++) {
        assert_int_equal(llmgw_books_record(books, &older->logged_by[i],
                                            &older->log[i]), 0);
    }

    for (i = 0; i < world->nlog; i++) {
        assert_int_equal(llmgw_books_record(books, &world->logged_by[i],
                                            &world->log[i]), 0);
    }

    for (i = 0; (account = llmgw_books_at(books, i)) != NULL; i++) {
        assert_int_equal(llmgw_accounts_base(world->scene.accounts,
                                             text(account->name),
                                             &account->sums,
                                             &world->scene.now), 0);
    }

    /* both have counted what was before the upgrade */

    for (i = 0; i < NAMES; i++) {
        world->paid[i] += older->paid[i];
    }

    for (i = 0; i < older->nlog; i++) {
        const llmgw_usage_t  *record = &older->log[i];
        uint32_t              k;

        if ((i > 0 && record->n == older->log[i - 1].n) || record->n > 300) {
            continue;
        }

        for (k = 0; strcmp(names[k], record->key) != 0; k++) {
            /* void */
        }

        world->paid[k] -= record->prompt + record->completion;
    }

    check(world);
    llmgw_books_destroy(books);
    scene_done(&older->scene);
    scene_done(&world->scene);
    free(older);
    free(world);
}


static void
state_says_each_account_once_and_then_ends(void **state)
{
    char                   text_of[STATE];
    size_t                 len, one;
    const char            *why;
    llmgw_sums_t           sums = { { 20785, 24322 }, { 5, 6 } };
    llmgw_books_t         *books = llmgw_books_create("gw1", NULL);
    llmgw_usage_source_t   source = { "gw1", "ab" };

    one = llmgw_state_head(text_of, &source);
    one += llmgw_state_account(text_of + one, "alice", &sums, 7);
    len = one + llmgw_state_account(text_of + one, "alice", &sums, 7);
    len += llmgw_state_end(text_of + len, 1);
    assert_int_equal(take_state(books, text_of, len, &why), -1);

    len = one + llmgw_state_end(text_of + one, 1);
    len += llmgw_state_account(text_of + len, "bob", &sums, 7);
    assert_int_equal(take_state(books, text_of, len, &why), -1);

    len = one + llmgw_state_end(text_of + one, 2);
    assert_int_equal(take_state(books, text_of, len, &why), -1);
    llmgw_books_destroy(books);
}


static void
accounts_are_many(void **state)
{
    size_t                 i;
    llmgw_books_t         *books = llmgw_books_create("gw1", NULL);
    llmgw_usage_t          record = { .ended_ms = NOON, .prompt = 1 };
    llmgw_usage_source_t   source = { "gw1", "ab" };

    for (i = 0; i < 6000; i++) {
        record.n = i + 1;
        snprintf(record.key, sizeof(record.key), "n%u", (unsigned) i % 2000);
        assert_int_equal(llmgw_books_record(books, &source, &record), 0);
    }

    for (i = 0; i < 2000; i++) {
        snprintf(record.key, sizeof(record.key), "n%u", (unsigned) i);
        assert_string_equal(llmgw_books_at(books, i)->name, record.key);
        assert_int_equal(llmgw_books_at(books, i)->sums.used[0], 3);
    }

    assert_null(llmgw_books_at(books, i));
    llmgw_books_destroy(books);
}


static void
state_that_is_none_changes_nothing(void **state)
{
    char            text_of[STATE], line[LLMGW_STATE_LINE_BYTES];
    size_t          len, cut;
    const char     *why;
    llmgw_sums_t    sums = { { 20785, 24322 }, { 5, 6 } };
    llmgw_books_t  *books;
    llmgw_usage_source_t  source = { "gw1", "ab" };

    len = llmgw_state_head(text_of, &source);
    len += llmgw_state_account(text_of + len, "alice", &sums, 7);
    len += llmgw_state_end(text_of + len, 1);

    books = llmgw_books_create("gw1", NULL);

    for (cut = 0; cut < len; cut++) {
        assert_int_equal(take_state(books, text_of, cut, &why), -1);
        assert_null(llmgw_books_at(books, 0));
    }

    assert_int_equal(take_state(books, text_of, len, &why), 0);
    assert_string_equal(llmgw_books_at(books, 0)->name, "alice");
    assert_int_equal(llmgw_books_at(books, 0)->n, 7);
    assert_memory_equal(&llmgw_books_at(books, 0)->sums, &sums, sizeof(sums));
    assert_string_equal(llmgw_books_birth(books), "ab");
    llmgw_books_destroy(books);

    books = llmgw_books_create("gw2", NULL);
    assert_int_equal(take_state(books, text_of, len, &why), -1);
    assert_string_equal(why, "it is another gateway's");
    llmgw_books_destroy(books);

    memset(source.gateway, '"', sizeof(source.gateway) - 1);
    assert_in_range(llmgw_state_head(line, &source), 1, sizeof(line) - 1);
    memset(sums.used, 0xff, sizeof(sums.used));
    assert_in_range(llmgw_state_account(line, source.gateway, &sums,
                                        UINT64_MAX), 1, sizeof(line) - 1);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(nothing_is_lost_or_counted_twice),
        cmocka_unit_test(takeover_adds_what_the_older_zone_did),
        cmocka_unit_test(state_says_each_account_once_and_then_ends),
        cmocka_unit_test(accounts_are_many),
        cmocka_unit_test(state_that_is_none_changes_nothing)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
