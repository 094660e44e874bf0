
/*
 * What is kept of a stream's tokens for a replica that takes the stream over.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "proto/delivered.h"


#define PER_BLOCK  (LLMGW_DELIVERED_BYTES / sizeof(uint32_t))


typedef struct {
    size_t  used;
    size_t  most;
    size_t  limit;
} owner_t;


static int
take(void *data, size_t bytes)
{
    owner_t  *owner = data;

    if (bytes > owner->limit - owner->used) {
        return 0;
    }

    owner->used += bytes;
    owner->most = owner->used > owner->most ? owner->used : owner->most;

    return 1;
}


static void
give(void *data, size_t bytes)
{
    owner_t  *owner = data;

    assert_true(bytes <= owner->used);
    owner->used -= bytes;
}


static const llmgw_delivered_memory_t  memory = { take, give };


/* A token with this id and text; *more is reset, and then has only the id. */
static llmgw_token_t
token(Llmgateway__GenerateResponse *more, uint32_t *id, const char *text)
{
    llmgw_token_t  t;

    llmgateway__generate_response__init(more);
    more->token_ids = id;
    more->n_token_ids = id ? 1 : 0;

    memset(&t, 0, sizeof(t));
    t.text = (const uint8_t *) text;
    t.text_len = strlen(text);
    t.count = id || t.text_len;
    t.more = more;

    return t;
}


static int
add_ids(llmgw_delivered_t *d, uint32_t first, uint32_t n)
{
    uint32_t                      id;
    llmgw_token_t                 t;
    Llmgateway__GenerateResponse  more;

    for (id = first; id < first + n; id++) {
        t = token(&more, &id, "x");

        if (!llmgw_delivered_add(d, &t)) {
            return 0;
        }
    }

    return 1;
}


static void
ids_are_told_in_their_order(void **state)
{
    uint32_t               i;
    owner_t                owner = { 0, 0, 1000000 };
    llmgw_delivered_t      d;
    Llmgateway__Delivered  told;

    llmgw_delivered_init(&d, &memory, &owner, 1, 0);
    assert_false(d.has_begun);
    assert_true(add_ids(&d, 0, 5 * PER_BLOCK));
    assert_true(d.has_begun && d.has_more);

    llmgw_delivered_tell(&d, &told);
    assert_int_equal(told.n_token_ids, 5 * PER_BLOCK);
    assert_int_equal(told.text.len, 0);

    for (i = 0; i < 5 * PER_BLOCK; i++) {
        assert_int_equal(told.token_ids[i], i);
    }

    /* 8 blocks; while they were copied, 4 more */
    assert_int_equal(owner.used, 8 * LLMGW_DELIVERED_BYTES);
    assert_int_equal(owner.most, 12 * LLMGW_DELIVERED_BYTES);

    llmgw_delivered_release(&d);
    llmgw_delivered_release(&d);
    assert_int_equal(owner.used, 0);
}


static void
text_is_told_once_the_ids_are_dropped(void **state)
{
    owner_t                owner = { 0, 0, 1000000 };
    llmgw_delivered_t      d;
    Llmgateway__Delivered  told;

    llmgw_delivered_init(&d, &memory, &owner, 1, 1);
    assert_true(add_ids(&d, 0, 3));

    llmgw_delivered_drop_ids(&d);
    assert_int_equal(owner.used, LLMGW_DELIVERED_BYTES);
    assert_true(add_ids(&d, 0, 2));

    llmgw_delivered_tell(&d, &told);
    assert_int_equal(told.n_token_ids, 0);
    assert_int_equal(told.text.len, 5);
    assert_memory_equal(told.text.data, "xxxxx", 5);

    llmgw_delivered_release(&d);
    assert_int_equal(owner.used, 0);
}


static void
without_room_all_is_given_up_and_said_once(void **state)
{
    owner_t            owner = { 0, 0, 3 * LLMGW_DELIVERED_BYTES };
    llmgw_delivered_t  d;

    llmgw_delivered_init(&d, &memory, &owner, 1, 0);

    /* a second block of twice the size just fits beside the first */
    assert_true(add_ids(&d, 0, 2 * PER_BLOCK));
    assert_false(d.no_memory);
    assert_false(add_ids(&d, 0, 1));
    assert_true(d.no_memory);
    assert_int_equal(owner.used, 0);
    assert_true(add_ids(&d, 0, 10));
    assert_int_equal(d.ids.len, 0);
    assert_int_equal(owner.used, 0);
}


static void
nothing_is_kept_where_nothing_is_to_be(void **state)
{
    owner_t            owner = { 0, 0, 0 };
    llmgw_delivered_t  d;

    llmgw_delivered_init(&d, &memory, &owner, 0, 0);
    assert_true(add_ids(&d, 0, 1000));
    assert_false(d.is_on);
    assert_false(d.no_memory);
}


static void
facts_of_the_prompt_are_the_first_message_s(void **state)
{
    owner_t                       owner = { 0, 0, 1000 };
    llmgw_token_t                 t;
    Llmgateway__Usage             usage;
    llmgw_delivered_t             d;
    Llmgateway__Prompt            prompt;
    Llmgateway__Delivered         told;
    Llmgateway__GenerateResponse  more;

    llmgateway__usage__init(&usage);
    llmgateway__prompt__init(&prompt);
    llmgw_delivered_init(&d, &memory, &owner, 1, 0);

    usage.prompt_tokens = 9;
    usage.completion_tokens = 3;
    usage.cached_tokens = 2;
    t = token(&more, NULL, "");
    more.usage = &usage;
    assert_true(llmgw_delivered_add(&d, &t));
    assert_int_equal(d.prompt_tokens, 9);

    prompt.tokens = 5;
    prompt.hash = 77;
    more.prompt = &prompt;
    assert_true(llmgw_delivered_add(&d, &t));
    prompt.tokens = 6;
    prompt.hash = 78;
    assert_true(llmgw_delivered_add(&d, &t));

    llmgw_delivered_tell(&d, &told);
    assert_int_equal(told.prompt_tokens, 5);
    assert_int_equal(told.prompt_hash, 77);
    assert_int_equal(told.cached_tokens, 2);
    assert_int_equal(d.completion_tokens, 3);
    assert_true(d.has_usage);
    llmgw_delivered_release(&d);
}


static void
each_choice_finishes_once(void **state)
{
    size_t                         i;
    owner_t                        owner = { 0, 0, 0 };
    llmgw_token_t                  t;
    llmgw_delivered_t              d;
    Llmgateway__Finish             finish, *finishes[] = { &finish };
    Llmgateway__GenerateResponse   more;

    static const uint32_t  indexes[] = {
        0, 0, 63, 64, 64, LLMGW_DELIVERED_CHOICES - 1,
        LLMGW_DELIVERED_CHOICES, UINT32_MAX
    };

    llmgateway__finish__init(&finish);
    llmgw_delivered_init(&d, &memory, &owner, 1, 0);
    t = token(&more, NULL, "");
    more.finish = finishes;
    more.n_finish = 1;

    for (i = 0; i < sizeof(indexes) / sizeof(indexes[0]); i++) {
        finish.index = indexes[i];
        assert_true(llmgw_delivered_add(&d, &t));
    }

    assert_int_equal(d.nfinished, 4);
    assert_false(d.never);
}


static void
what_nobody_could_repeat_ends_resuming(void **state)
{
    size_t                        i;
    uint32_t                      id = 1;
    owner_t                       owner = { 0, 0, 1000 };
    llmgw_token_t                 t;
    Llmgateway__Raw               raw;
    llmgw_delivered_t             d;
    Llmgateway__GenerateResponse  more;

    llmgateway__raw__init(&raw);

    for (i = 0; i < 5; i++) {
        llmgw_delivered_init(&d, &memory, &owner, 1, 0);
        t = token(&more, i == 1 ? &id : NULL, "");

        if (i < 2) {
            more.data.data = (uint8_t *) "{}";      /* 1: with an id, too */
            more.data.len = 2;
        }

        more.raw = i == 2 ? &raw : NULL;
        more.resume_by = i == 3 ? LLMGATEWAY__RESUME_BY__RESUME_NEVER
                                : i == 4 ? LLMGATEWAY__RESUME_BY__RESUME_TEXT
                                         : 0;
        assert_true(llmgw_delivered_add(&d, &t));
        assert_int_equal(d.never, i == 0 || i == 2 || i == 3);
        assert_int_equal(d.no_ids, i == 4);
        llmgw_delivered_release(&d);
    }
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(ids_are_told_in_their_order),
        cmocka_unit_test(text_is_told_once_the_ids_are_dropped),
        cmocka_unit_test(without_room_all_is_given_up_and_said_once),
        cmocka_unit_test(nothing_is_kept_where_nothing_is_to_be),
        cmocka_unit_test(facts_of_the_prompt_are_the_first_message_s),
        cmocka_unit_test(each_choice_finishes_once),
        cmocka_unit_test(what_nobody_could_repeat_ends_resuming),
    };

    return cmocka_run_group_tests_name("delivered", tests, NULL, NULL);
}
