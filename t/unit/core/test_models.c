
/* Lists of models: what a pool serves, and which model is the pool's. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/models.h"


typedef struct {
    llmgw_models_t  models;
    uint64_t        base;       /* of the only pool */
} scene_t;


static int
setup(void **state)
{
    *state = calloc(1, sizeof(scene_t));

    return *state ? 0 : -1;
}


static int
teardown(void **state)
{
    uint32_t  i;
    scene_t  *s = *state;

    for (i = 1; i < LLMGW_MODELS_MAX; i++) {
        free(llmgw_models_remove(&s->models, i));
    }

    free(s);

    return 0;
}


static uint64_t
hash(const char *name)
{
    return llmgw_models_hash(name, strlen(name));
}


/* Adds a list "a b c", with so many members, all of them living. */
static uint32_t
add(scene_t *s, const char *words, int is_cut, uint32_t nmembers)
{
    char      names[256];
    void     *memory;
    size_t    i, bytes;
    uint32_t  number;

    bytes = strlen(words) + 1;

    for (i = 0; i < bytes; i++) {
        names[i] = words[i] == ' ' ? '\0' : words[i];
    }

    memory = malloc(llmgw_models_bytes(names, bytes));
    assert_non_null(memory);
    number = llmgw_models_add(&s->models, memory, hash(words), is_cut, names,
                              bytes);

    if (number == 0) {
        free(memory);
        return 0;
    }

    s->models.lists[number]->nmembers = nmembers;
    s->models.lists[number]->nliving = nmembers;
    s->models.lists[number]->nserving = nmembers;

    return number;
}


static int
settle(scene_t *s)
{
    return llmgw_models_settle(&s->models, &s->base);
}


static llmgw_serves_t
serves(scene_t *s, const char *name)
{
    if (s->base == 0) {
        (void) settle(s);
    }

    return llmgw_models_serves(&s->models, s->base, hash(name));
}


/* The name of the base model whose pool serves `name`; NULL: none does. */
static const char *
served_by(const scene_t *s, const char *first, const char *name)
{
    uint64_t  base;

    return llmgw_models_find_base(&s->models, hash(first), hash(name), &base)
           != LLMGW_SERVES_NOT ? llmgw_models_named(&s->models, base)->names
                               : NULL;
}


static int
selects(const scene_t *s, const char *name, uint32_t number)
{
    llmgw_model_set_t  set;

    assert_true(llmgw_models_restrict(&s->models, 0, 0, hash(name), &set));

    return set.words[number / 64] >> number % 64 & 1;
}


static void
base_is_served_by_all_and_adapters_by_some(void **state)
{
    uint32_t  plain, one, two;
    scene_t  *s = *state;

    assert_int_equal(serves(s, "base"), LLMGW_SERVES_NOT);

    plain = add(s, "base", 0, 3);
    one = add(s, "base sql", 0, 1);
    two = add(s, "base law sql", 0, 1);
    assert_int_equal(settle(s), 0);

    assert_int_equal(serves(s, "base"), LLMGW_SERVES_ALL);
    assert_int_equal(serves(s, "sql"), LLMGW_SERVES_SOME);
    assert_int_equal(serves(s, "law"), LLMGW_SERVES_SOME);
    assert_int_equal(serves(s, "bas"), LLMGW_SERVES_NOT);
    assert_int_equal(serves(s, ""), LLMGW_SERVES_NOT);

    assert_false(selects(s, "sql", plain));
    assert_true(selects(s, "sql", one));
    assert_true(selects(s, "sql", two));
    assert_false(selects(s, "law", one));
    assert_true(selects(s, "law", two));
    assert_false(selects(s, "law", 0));
}


/* Nobody knows which names a cut list lacks, so the engine has to say. */
static void
cut_list_may_serve_any_name(void **state)
{
    uint32_t  whole, cut;
    scene_t  *s = *state;

    whole = add(s, "base sql", 0, 1);
    cut = add(s, "base sql", 1, 1);
    assert_int_not_equal(whole, cut);
    assert_int_equal(llmgw_models_find(&s->models, hash("base sql"), 0), whole);
    assert_int_equal(llmgw_models_find(&s->models, hash("base sql"), 1), cut);
    assert_int_equal(llmgw_models_find(&s->models, hash("base"), 0), 0);

    assert_int_equal(serves(s, "law"), LLMGW_SERVES_MAYBE);
    assert_int_equal(serves(s, "sql"), LLMGW_SERVES_SOME);
    assert_true(selects(s, "law", cut));
    assert_false(selects(s, "law", whole));
}


static void
models_whose_replicas_are_down_are_known_but_not_told(void **state)
{
    size_t       n;
    scene_t     *s = *state;
    uint32_t     down, gone;
    const char  *names[16];

    down = add(s, "base sql", 0, 2);
    gone = add(s, "base law", 0, 2);
    add(s, "base tax code", 0, 1);
    s->models.lists[down]->nliving = 0;
    s->models.lists[gone]->nmembers = s->models.lists[gone]->nliving = 0;

    assert_int_equal(serves(s, "sql"), LLMGW_SERVES_SOME);
    assert_int_equal(serves(s, "law"), LLMGW_SERVES_NOT);

    assert_in_range(llmgw_models_count(&s->models), 3, 16);
    n = llmgw_models_names(&s->models, names);
    assert_int_equal(n, 3);
    assert_string_equal(names[0], "base");
    assert_string_equal(names[1], "code");
    assert_string_equal(names[2], "tax");
}


static void
names_are_told_once_and_in_order(void **state)
{
    size_t       n;
    scene_t     *s = *state;
    const char  *names[16];

    assert_int_equal(llmgw_models_names(&s->models, names), 0);

    add(s, "m z b", 0, 1);
    add(s, "m b a", 0, 1);
    add(s, "m", 0, 1);
    n = llmgw_models_names(&s->models, names);
    assert_int_equal(n, 4);
    assert_string_equal(names[0], "a");
    assert_string_equal(names[1], "b");
    assert_string_equal(names[2], "m");
    assert_string_equal(names[3], "z");
}


/*
 * The majority is one of replicas, not of lists; of equal ones the name
 * decides, and not which came first.
 */
static void
majority_decides_whose_pool_it_is(void **state)
{
    uint32_t  a, b, b2;
    scene_t  *s = *state;

    b = add(s, "b", 0, 2);
    b2 = add(s, "b x", 0, 1);
    assert_int_equal(settle(s), 0);
    a = add(s, "a y", 0, 2);

    assert_int_equal(settle(s), 1);
    assert_true(s->models.lists[a]->is_other);
    assert_false(s->models.lists[b]->is_other);
    assert_false(s->models.lists[b2]->is_other);
    assert_int_equal(serves(s, "a"), LLMGW_SERVES_NOT);
    assert_int_equal(serves(s, "y"), LLMGW_SERVES_NOT);
    assert_int_equal(llmgw_models_count(&s->models), 3);
    assert_string_equal(llmgw_models_named(&s->models, s->base)->names, "b");

    /* Once more: nothing has changed. */
    assert_int_equal(settle(s), 0);

    s->models.lists[a]->nmembers = 3;
    assert_int_equal(settle(s), 1);
    assert_false(s->models.lists[a]->is_other);
    assert_true(s->models.lists[b]->is_other);
    assert_true(s->models.lists[b2]->is_other);
    assert_int_equal(serves(s, "a"), LLMGW_SERVES_ALL);

    s->models.lists[b]->nmembers = 3;
    assert_int_equal(settle(s), 1);
    assert_int_equal(serves(s, "b"), LLMGW_SERVES_ALL);

    /* All are dead: no model is preferred. */
    s->models.lists[a]->nmembers = s->models.lists[b]->nmembers = 0;
    s->models.lists[b2]->nmembers = 0;
    assert_int_equal(settle(s), 0);
    assert_int_equal(s->base, 0);
}


/*
 * A model that no replica serves yields, whatever its number of members; where
 * none of any serves, or some of each, the number decides.
 */
static void
base_model_that_none_serves_yields(void **state)
{
    uint32_t  m, m2, tiny;
    scene_t  *s = *state;

    m = add(s, "m", 0, 2);
    m2 = add(s, "m x", 0, 1);
    tiny = add(s, "tiny", 0, 2);
    (void) settle(s);
    assert_int_equal(serves(s, "m"), LLMGW_SERVES_ALL);
    assert_null(llmgw_models_yielding(&s->models));
    assert_int_equal(s->base, hash("m"));

    /* Two of three crash, and one is left, under another list. */
    s->models.lists[m]->nserving = 0;
    assert_int_equal(settle(s), 0);
    assert_int_equal(serves(s, "m"), LLMGW_SERVES_ALL);

    s->models.lists[m2]->nserving = 0;
    assert_int_equal(settle(s), 1);
    assert_int_equal(serves(s, "tiny"), LLMGW_SERVES_ALL);
    assert_int_equal(serves(s, "m"), LLMGW_SERVES_NOT);
    assert_string_equal(llmgw_models_named(&s->models, s->base)->names, "tiny");
    assert_string_equal(llmgw_models_yielding(&s->models)->names, "m");
    assert_int_equal(s->base, hash("tiny"));
    assert_int_equal(settle(s), 0);

    s->models.lists[tiny]->nserving = 0;
    assert_int_equal(settle(s), 1);
    assert_int_equal(serves(s, "m"), LLMGW_SERVES_ALL);
    assert_null(llmgw_models_yielding(&s->models));
}


static void
request_is_not_served_by_a_base_model_that_took_over(void **state)
{
    uint32_t           plain, sql;
    scene_t           *s = *state;
    llmgw_model_set_t  set;

    plain = add(s, "m", 0, 2);
    sql = add(s, "m sql", 0, 1);
    add(s, "tiny", 0, 1);
    assert_false(llmgw_models_restrict(&s->models, s->base, hash("m"), 0,
                                       &set));
    (void) settle(s);

    assert_false(llmgw_models_restrict(&s->models, s->base, 0, 0, &set));
    assert_false(llmgw_models_restrict(&s->models, s->base, hash("m"), 0,
                                       &set));
    assert_true(llmgw_models_restrict(&s->models, s->base, hash("m"),
                                      hash("sql"), &set));
    assert_int_equal(set.words[0], 1ULL << sql);

    s->models.lists[plain]->nserving = 0;
    s->models.lists[sql]->nserving = 0;
    (void) settle(s);
    assert_true(llmgw_models_restrict(&s->models, s->base, hash("m"), 0,
                                      &set));
    assert_int_equal(set.words[0], 0);
    assert_false(llmgw_models_restrict(&s->models, s->base, 0, 0, &set));
    assert_false(llmgw_models_restrict(&s->models, s->base, hash("tiny"), 0,
                                       &set));
}


/*
 * Each base model is served by its own replicas; members without a model
 * belong to the first one.
 */
static void
names_are_told_apart_by_base_models(void **state)
{
    size_t              n;
    uint64_t            routed[2];
    uint32_t            a, b, c;
    scene_t            *s = *state;
    const char         *names[16];
    llmgw_model_set_t   set;
    llmgw_model_base_t  bases[LLMGW_MODELS_MAX];

    a = add(s, "a sql", 0, 1);
    b = add(s, "b sql law", 0, 3);
    c = add(s, "c tax", 0, 2);
    s->models.lists[c]->nserving = 0;

    n = llmgw_models_bases(&s->models, bases);
    assert_int_equal(n, 3);
    assert_string_equal(bases[0].name, "b");
    assert_string_equal(bases[1].name, "a");
    assert_string_equal(bases[2].name, "c");
    assert_int_equal(bases[0].nmembers, 3);
    assert_false(bases[2].serves);

    routed[0] = hash("a");
    routed[1] = hash("b");
    assert_int_equal(llmgw_models_route(&s->models, routed, 2), 1);
    assert_int_equal(llmgw_models_route(&s->models, routed, 2), 0);
    assert_false(s->models.lists[a]->is_other);
    assert_true(s->models.lists[c]->is_other);

    assert_string_equal(served_by(s, "b", "a"), "a");
    assert_string_equal(served_by(s, "b", "law"), "b");
    assert_string_equal(served_by(s, "b", "sql"), "b");
    assert_string_equal(served_by(s, "a", "sql"), "a");
    assert_null(served_by(s, "b", "c"));
    assert_null(served_by(s, "b", "tax"));
    assert_null(served_by(s, "b", "other"));

    /* "tax" is known, and has no pool. */
    assert_true(llmgw_models_are_reported(&s->models, hash("tax")));
    assert_false(llmgw_models_are_reported(&s->models, hash("other")));

    n = llmgw_models_names(&s->models, names);
    assert_int_equal(n, 4);

    /* In its pool a name is restricted to lists of the pool's base model. */
    assert_true(llmgw_models_restrict(&s->models, hash("a"), hash("a"),
                                      hash("sql"), &set));
    assert_int_equal(set.words[0], 1ULL << a);
    assert_true(llmgw_models_restrict(&s->models, hash("b"), hash("a"), 0,
                                      &set));
    assert_int_equal(set.words[0], 0);
    assert_true(llmgw_models_restrict(&s->models, hash("b"), 0, hash("sql"),
                                      &set));
    assert_int_equal(set.words[0], 1ULL << b);
}


/* All workers find the same one, whichever list they read first. */
static void
name_of_several_base_models_goes_to_one_of_them(void **state)
{
    scene_t     *s = *state;
    const char  *least, *other;

    least = hash("x") < hash("y") ? "x" : "y";
    other = least[0] == 'x' ? "y" : "x";
    add(s, other[0] == 'x' ? "x sql" : "y sql", 0, 1);
    add(s, least[0] == 'x' ? "x sql" : "y sql", 0, 1);

    assert_string_equal(served_by(s, "none", "sql"), least);
    assert_string_equal(served_by(s, other, "sql"), other);
    assert_string_equal(served_by(s, other, least), least);
}


static void
name_is_found_among_those_in_order(void **state)
{
    size_t                   i, n;
    static const char *const names[] = { "a", "b", "ba", "bb", "c" };

    for (n = 0; n <= 5; n++) {
        for (i = 0; i < 5; i++) {
            assert_int_equal(llmgw_models_has(names, n, names[i],
                                              strlen(names[i])),
                             i < n);
        }

        assert_false(llmgw_models_has(names, n, "", 0));
        assert_false(llmgw_models_has(names, n, "bab", 3));
        assert_false(llmgw_models_has(names, n, "d", 1));
    }

    assert_true(llmgw_models_has(names, 5, "bad", 2));
}


static void
more_lists_than_numbers_are_not_taken(void **state)
{
    size_t     i;
    char       name[16];
    uint32_t   last;
    scene_t   *s = *state;

    for (i = 1, last = 0; i < LLMGW_MODELS_MAX; i++) {
        snprintf(name, sizeof(name), "base n%zu", i);
        last = add(s, name, 0, 1);
        assert_int_equal(last, i);
    }

    assert_int_equal(add(s, "base one more", 0, 1), 0);
    assert_true(selects(s, "n255", last));

    free(llmgw_models_remove(&s->models, 7));
    assert_int_equal(add(s, "base one more", 0, 1), 7);
}


#define TEST(f)  cmocka_unit_test_setup_teardown(f, setup, teardown)

int
main(void)
{
    const struct CMUnitTest  tests[] = {
        TEST(base_is_served_by_all_and_adapters_by_some),
        TEST(cut_list_may_serve_any_name),
        TEST(models_whose_replicas_are_down_are_known_but_not_told),
        TEST(names_are_told_once_and_in_order),
        TEST(majority_decides_whose_pool_it_is),
        TEST(base_model_that_none_serves_yields),
        TEST(request_is_not_served_by_a_base_model_that_took_over),
        TEST(names_are_told_apart_by_base_models),
        TEST(name_of_several_base_models_goes_to_one_of_them),
        TEST(name_is_found_among_those_in_order),
        TEST(more_lists_than_numbers_are_not_taken),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
