
/* The KV cache: which block is taken, shared, named or evicted. */

#include "sim/model/kv.h"
#include "t/unit/sim/model/scene.h"


#define BLOCK  4

static const uint64_t  names_a[] = { 11, 12, 13, 14 };
static const uint64_t  names_b[] = { 11, 12, 23, 24 };


static model_request_t
request(const uint64_t *names, uint32_t input)
{
    return (model_request_t) { .hashes = names,
                               .nhashes = names != NULL ? input / BLOCK : 0,
                               .input_tokens = input };
}


static void
expect(const model_request_t *request, uint32_t n, const uint32_t *blocks)
{
    assert_int_equal(request->nblocks, n);
    assert_memory_equal(request->blocks, blocks, n * sizeof(uint32_t));
}


static void
takes_the_head_and_frees_the_last_first(void **state)
{
    model_kv_t       kv;
    model_request_t  a = request(names_a, 10), b = request(NULL, 20);

    model_kv_init(&kv, 5, BLOCK, NULL);

    assert_int_equal(model_kv_prefill(&kv, &a, 10, 0), 0);
    expect(&a, 3, (uint32_t[]) { 0, 1, 2 });
    assert_int_equal(a.tail, 2);
    assert_int_equal(kv.free, 2);

    model_kv_release(&kv, &a);
    assert_int_equal(kv.free, 5);
    assert_int_equal(model_kv_cached(&kv, names_a, 4), 2);

    /* those never used come first, then the last part of a's prompt */
    assert_int_equal(model_kv_prefill(&kv, &b, 20, 0), 0);
    expect(&b, 5, (uint32_t[]) { 3, 4, 2, 1, 0 });
    assert_int_equal(model_kv_cached(&kv, names_a, 4), 0);

    model_kv_release(&kv, &b);
    model_kv_forget(&a);
    model_kv_forget(&b);
    model_kv_done(&kv);
}


static void
shares_a_cached_prefix(void **state)
{
    uint32_t         n;
    model_kv_t       kv;
    model_request_t  a = request(names_a, 16), b = request(names_b, 16);

    model_kv_init(&kv, 8, BLOCK, NULL);
    assert_int_equal(model_kv_prefill(&kv, &a, 16, 0), 0);

    n = model_kv_match(&kv, &b);
    assert_int_equal(n, 2);
    assert_int_equal(b.nblocks, 0);
    assert_int_equal(model_kv_prefill(&kv, &b, 8, n), 0);
    expect(&b, 4, (uint32_t[]) { 0, 1, 4, 5 });
    assert_int_equal(kv.free, 2);
    assert_int_equal(kv.hits, 2);
    assert_int_equal(kv.misses, 6);

    /* blocks that both used are free when both have gone */
    model_kv_release(&kv, &a);
    assert_int_equal(kv.free, 4);
    model_kv_release(&kv, &b);
    assert_int_equal(kv.free, 8);

    /* and they are found while they are free */
    n = model_kv_match(&kv, &b);
    assert_int_equal(n, 4);
    assert_int_equal(model_kv_prefill(&kv, &b, 1, n), 0);
    expect(&b, 5, (uint32_t[]) { 0, 1, 4, 5, 6 });

    model_kv_release(&kv, &b);
    model_kv_forget(&a);
    model_kv_forget(&b);
    model_kv_done(&kv);
}


static void
refuses_before_it_changes_anything(void **state)
{
    uint32_t         n;
    model_kv_t       kv;
    model_request_t  a = request(names_a, 8), b = request(names_a, 16);

    model_kv_init(&kv, 4, BLOCK, NULL);
    assert_int_equal(model_kv_prefill(&kv, &a, 8, 0), 0);
    model_kv_release(&kv, &a);

    /* two cached blocks leave the free list, three more are needed */
    n = model_kv_match(&kv, &b);
    assert_int_equal(n, 2);
    assert_int_equal(model_kv_prefill(&kv, &b, 9, n), -1);
    assert_int_equal(kv.free, 4);
    assert_int_equal(kv.hits, 0);
    assert_int_equal(b.nblocks, 0);
    assert_int_equal(model_kv_prefill(&kv, &b, 8, n), 0);
    assert_int_equal(kv.free, 0);
    assert_int_equal(model_kv_extend(&kv, &b), -1);

    model_kv_release(&kv, &b);
    model_kv_forget(&a);
    model_kv_forget(&b);
    model_kv_done(&kv);
}


/* The name belongs to the newer block; taking the older one anew drops it. */
static void
drops_a_name_with_any_block_that_had_it(void **state)
{
    model_kv_t       kv;
    model_request_t  a = request(names_a, 4), b = request(names_a, 4),
                     c = request(NULL, 4);

    model_kv_init(&kv, 2, BLOCK, NULL);
    assert_int_equal(model_kv_prefill(&kv, &a, 4, 0), 0);
    assert_int_equal(model_kv_prefill(&kv, &b, 4, 0), 0);
    assert_int_equal(model_hashes_get(&kv.names, 11), 1);

    model_kv_release(&kv, &a);
    assert_int_equal(model_kv_prefill(&kv, &c, 4, 0), 0);
    assert_int_equal(c.blocks[0], 0);
    assert_int_equal(model_kv_cached(&kv, names_a, 1), 0);

    model_kv_release(&kv, &b);
    model_kv_release(&kv, &c);
    model_kv_forget(&a);
    model_kv_forget(&b);
    model_kv_forget(&c);
    model_kv_done(&kv);
}


/* A chunk ends within a block; the next chunk, or an answer, fills it. */
static void
names_a_block_when_it_is_full(void **state)
{
    model_kv_t       kv;
    model_request_t  a = request(names_a, 6);

    model_kv_init(&kv, 8, BLOCK, NULL);
    a.nhashes = 2;                      /* the second block is the answer's */

    assert_int_equal(model_kv_prefill(&kv, &a, 3, 0), 0);
    assert_int_equal(model_kv_cached(&kv, names_a, 2), 0);
    assert_int_equal(model_kv_prefill(&kv, &a, 3, 0), 0);
    assert_int_equal(model_kv_cached(&kv, names_a, 2), 1);
    assert_int_equal(a.nblocks, 2);

    /* one token fits as it is, the next one gives the block its name */
    assert_int_equal(model_kv_room(&kv, &a), 1);
    assert_int_equal(model_kv_extend(&kv, &a), 0);
    assert_int_equal(model_kv_cached(&kv, names_a, 2), 1);
    assert_int_equal(model_kv_extend(&kv, &a), 0);
    assert_int_equal(model_kv_cached(&kv, names_a, 2), 2);
    assert_int_equal(model_kv_room(&kv, &a), 0);

    /* later blocks have no names: all their tokens fit as they are */
    assert_int_equal(model_kv_extend(&kv, &a), 0);
    assert_int_equal(model_kv_room(&kv, &a), 3);

    model_kv_release(&kv, &a);
    model_kv_forget(&a);
    model_kv_done(&kv);
}


static void
keeps_a_frozen_view(void **state)
{
    uint64_t         view = 0;
    model_kv_t       kv;
    model_request_t  a = request(names_a, 8), b = request(NULL, 8);

    model_kv_init(&kv, 2, BLOCK, &view);
    assert_int_equal(model_kv_prefill(&kv, &a, 8, 0), 0);
    assert_int_equal(model_kv_cached(&kv, names_a, 2), 2);
    assert_int_equal(model_kv_viewed(&kv, names_a, 2), 0);

    view++;
    assert_int_equal(model_kv_viewed(&kv, names_a, 2), 2);

    model_kv_release(&kv, &a);
    assert_int_equal(model_kv_prefill(&kv, &b, 8, 0), 0);
    assert_int_equal(model_kv_cached(&kv, names_a, 2), 0);
    assert_int_equal(model_kv_viewed(&kv, names_a, 2), 2);

    view++;
    assert_int_equal(model_kv_viewed(&kv, names_a, 2), 0);

    model_kv_release(&kv, &b);
    model_kv_forget(&a);
    model_kv_forget(&b);
    model_kv_done(&kv);
}


static void
takes_memory_for_what_it_used(void **state)
{
    model_kv_t       kv;
    model_request_t  a = request(NULL, 100);

    model_kv_init(&kv, 1000000, BLOCK, NULL);
    assert_int_equal(kv.capacity, 0);
    assert_int_equal(model_kv_prefill(&kv, &a, 100, 0), 0);
    assert_true(kv.capacity <= 64);

    model_kv_release(&kv, &a);
    model_kv_forget(&a);
    model_kv_done(&kv);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(takes_the_head_and_frees_the_last_first),
        cmocka_unit_test(shares_a_cached_prefix),
        cmocka_unit_test(refuses_before_it_changes_anything),
        cmocka_unit_test(drops_a_name_with_any_block_that_had_it),
        cmocka_unit_test(names_a_block_when_it_is_full),
        cmocka_unit_test(keeps_a_frozen_view),
        cmocka_unit_test(takes_memory_for_what_it_used)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
