
/*
 * Accounts in memory, and what holds at any time: assert_balanced().
 */

#ifndef ACCOUNTS_SCENE_H
#define ACCOUNTS_SCENE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <cmocka.h>

#include "core/accounts/accounts.h"
#include "proto/date.h"


#define NOON  1795867200000ull          /* 2026-11-28T12:00Z */
#define PID   4711

typedef struct {
    llmgw_accounts_t         *accounts;
    size_t                    bytes;
    llmgw_moment_t            now;
    llmgw_accounts_ask_t      ask;
    llmgw_accounts_answer_t   answer;   /* of the last take() */
    llmgw_usage_t             record;   /* of the last settle() */
} scene_t;


static inline llmgw_accounts_text_t
text(const char *word)
{
    return (llmgw_accounts_text_t) { word, strlen(word) };
}


static inline void
scene_init(scene_t *scene, uint32_t n)
{
    memset(scene, 0, sizeof(*scene));
    scene->bytes = llmgw_accounts_bytes(n);
    scene->accounts = mmap(NULL, scene->bytes, PROT_READ|PROT_WRITE,
                           MAP_SHARED|MAP_ANONYMOUS, -1, 0);
    assert_true(scene->accounts != MAP_FAILED);
    (void) llmgw_accounts_init(scene->accounts, n, "0199a");

    scene->now = (llmgw_moment_t) { 1000000, NOON };
    scene->ask.name = text("alice");
    scene->ask.version = 1;
    scene->ask.owner = (llmgw_process_t) { PID, 77 };
    scene->ask.tenant = text("lab1");
    scene->ask.slo_class = text("batch");
    scene->ask.model = text("qwen3");
    scene->ask.request_id = text("id");
}


static inline void
scene_done(scene_t *scene)
{
    (void) munmap(scene->accounts, scene->bytes);
}


static inline llmgw_admittance_t
take(scene_t *scene)
{
    llmgw_accounts_take(scene->accounts, &scene->ask, &scene->now,
                        &scene->answer);

    return scene->answer.admittance;
}


static inline void
settle(scene_t *scene, uint32_t slot, uint64_t prompt, uint64_t completion)
{
    llmgw_accounts_end_t  end = {
        .prompt = prompt, .completion = completion, .outcome = "ok",
        .settled_by = LLMGW_SETTLED_BY_COUNT
    };

    assert_true(llmgw_accounts_settle(scene->accounts, slot,
                                      scene->accounts->slots[slot].owner, &end,
                                      &scene->now, &scene->record));
}


static inline void
settle_and_write(scene_t *scene, uint32_t slot, uint64_t prompt,
    uint64_t completion)
{
    settle(scene, slot, prompt, completion);
    llmgw_accounts_written(scene->accounts, slot, scene->record.n);
}


static inline void
wait_ms(scene_t *scene, uint64_t ms)
{
    scene->now.ms += ms;
    scene->now.unix_ms += ms;
}


static inline uint32_t
list_length(const llmgw_accounts_t *accounts, uint32_t first, int is_slots)
{
    uint32_t  n;

    for (n = 0; first != UINT32_MAX; n++) {
        assert_in_range(first, 0, accounts->n - 1);
        assert_in_range(n, 0, accounts->n - 1);
        first = is_slots ? accounts->slots[first].next
                         : accounts->accounts[first].next;
    }

    return n;
}


/* Asserts that accounts and words count what the slots have. */

static inline void
assert_balanced(const llmgw_accounts_t *accounts)
{
    uint32_t                   i, k, running, settled, named, sums[2];
    uint64_t                   reserved, requests;
    const llmgw_account_t     *account;
    const llmgw_usage_slot_t  *slot;

    running = settled = named = 0;
    requests = accounts->words.gone.requests;
    assert_false(accounts->dirty);

    for (i = 0; i < accounts->words.accounts; i++) {
        account = &accounts->accounts[i];

        if (account->name[0] == '\0') {
            continue;
        }

        named++;
        requests += account->totals.requests;
        reserved = sums[0] = sums[1] = 0;

        for (k = 0; k < accounts->words.slots; k++) {
            slot = &accounts->slots[k];

            if (slot->state == LLMGW_USAGE_FREE || slot->account != i) {
                continue;
            }

            assert_string_equal(slot->usage.key, account->name);

            if (slot->state == LLMGW_USAGE_RUNNING) {
                reserved += slot->reserved;
                sums[0]++;

            } else {
                assert_in_range(slot->usage.n, 1, accounts->words.next_n - 1);
                sums[1]++;
            }
        }

        assert_int_equal(account->running, sums[0]);
        assert_int_equal(account->settled, sums[1]);
        assert_int_equal(account->reserved, reserved);
        running += sums[0];
        settled += sums[1];
    }

    /* as many requests were charged as record numbers were given out */

    assert_int_equal(requests, accounts->words.next_n - 1);
    assert_int_equal(accounts->words.running, running);
    assert_int_equal(accounts->words.settled, settled);
    assert_int_equal(list_length(accounts, accounts->words.free_slot, 1),
                     accounts->words.slots - running - settled);
    assert_int_equal(list_length(accounts, accounts->words.free_account, 0),
                     accounts->words.accounts - named);

    for (i = 0; i < accounts->nbuckets; i++) {
        named -= list_length(accounts, accounts->buckets[i], 0);
    }

    assert_int_equal(named, 0);
}

static inline llmgw_account_look_t
look_at(scene_t *scene, const char *name)
{
    int                   rc;
    uint32_t              i;
    llmgw_account_look_t  account = { .n = 0 };

    for (i = 0; (rc = llmgw_accounts_look(scene->accounts, i, &scene->now,
                                          &account)) != -1; i++)
    {
        if (rc == 1 && strcmp(account.name, name) == 0) {
            return account;
        }
    }

    fail_msg("no account %s", name);

    return account;
}


/* Setup of a test with one scene, which has four accounts and slots. */

static inline int
scene_setup(void **state)
{
    static scene_t  scene;

    scene_init(&scene, 4);
    *state = &scene;

    return 0;
}


static inline int
scene_teardown(void **state)
{
    scene_t  *scene = *state;

    assert_balanced(scene->accounts);
    scene_done(scene);

    return 0;
}

#define scene_test(name)                                                      \
    cmocka_unit_test_setup_teardown(name, scene_setup, scene_teardown)

#endif /* ACCOUNTS_SCENE_H */
