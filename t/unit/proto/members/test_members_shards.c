
/*
 * Shards in the members segment: their records, what is refused, the list that
 * says what they compute, and when they are offered.
 */

#include "proto/members/shards.h"
#include "t/unit/proto/members/test_members_support.h"


#define CAPACITY  8
#define LIST      77


static void
shard_make(llmgw_member_t *m, size_t number, unsigned first, unsigned last,
    unsigned layers)
{
    member_make(m, number, 1);
    m->role = LLMGW_ROLE_GATEWAY;
    m->is_shard = 1;
    m->models = LIST;
    m->shard.first = (uint16_t) first;
    m->shard.last = (uint16_t) last;
    m->shard.layers = (uint16_t) layers;
}


static uint64_t
hold_model(fixture_t *f, const char *name)
{
    char                 names[LLMGW_MEMBERS_MODELS_BYTES];
    size_t               bytes;
    uint64_t             list;
    llmgw_shard_model_t  model = { .numerics = "llama-0123" };

    strcpy(model.name, name);
    memset(model.weights_id, 0xa7, sizeof(model.weights_id));
    bytes = llmgw_shard_model_write(&model, names);

    return llmgw_members_hold_list(f->writer, names, bytes, &list)
           == LLMGW_MEMBERS_DONE ? list : LIST;
}


static void
test_readers_see_what_a_shard_says(void **state)
{
    char                  names[LLMGW_MEMBERS_LIST_BYTES];
    size_t                bytes;
    fixture_t            *f = *state;
    llmgw_shard_t         shard;
    llmgw_member_t        m;
    llmgw_shard_model_t   model;
    const llmgw_member_t *seen;

    fixture_write(f, CAPACITY);
    shard_make(&m, 1, 4, 11, 16);
    m.shard.memory_bytes = 5ULL << 32;
    m.shard.is_loaded = 1;
    memset(m.shard.zone, 'z', sizeof(m.shard.zone));
    strcpy(m.shard.zone, "eu-1");
    m.models = hold_model(f, "toy");
    publish_array(f->writer, &m, NULL, 1, 0);
    fixture_read(f);
    seen = &f->view.members[0];

    assert_int_equal(seen->role, LLMGW_ROLE_GATEWAY);
    assert_int_equal(llmgw_member_role(seen), LLMGW_ROLE_SHARD);
    assert_false(llmgw_member_is_routable(seen));
    assert_int_equal(llmgw_member_shard(seen, &shard), 0);
    assert_int_equal(shard.first, 4);
    assert_int_equal(shard.last, 11);
    assert_int_equal(shard.layers, 16);
    assert_int_equal(shard.memory_bytes, 5ULL << 32);
    assert_int_equal(shard.is_loaded, 1);
    assert_string_equal(shard.zone, "eu-1");
    assert_int_equal(shard.zone[31], 0);    /* the 'z' behind it is cut */

    assert_int_equal(llmgw_members_read_list(f->reader, seen->models, names,
                                             &bytes), LLMGW_MEMBERS_DONE);
    assert_int_equal(llmgw_shard_model_read(&model, names, bytes), 0);
    assert_string_equal(model.name, "toy");
    assert_int_equal(model.weights_id[31], 0xa7);
    assert_string_equal(model.numerics, "llama-0123");
}


static void
expect_moved(fixture_t *f, const llmgw_member_t *m, unsigned by)
{
    uint64_t  generation;

    generation = f->view.generation;
    hold_model(f, "toy");
    publish_array(f->writer, m, NULL, 1, 0);
    fixture_read(f);
    assert_int_equal(f->view.generation, generation + by);
}


static void
test_each_word_of_a_shard_moves_the_generation(void **state)
{
    fixture_t      *f = *state;
    llmgw_member_t  m;

    fixture_write(f, CAPACITY);
    shard_make(&m, 1, 4, 11, 16);
    m.models = hold_model(f, "toy");
    publish_array(f->writer, &m, NULL, 1, 0);
    fixture_read(f);
    expect_moved(f, &m, 0);

    m.shard.first = 5;
    expect_moved(f, &m, 1);
    m.shard.last = 12;
    expect_moved(f, &m, 1);
    m.shard.is_loaded = 1;
    expect_moved(f, &m, 1);
    m.shard.memory_bytes = 1;
    expect_moved(f, &m, 1);
    strcpy(m.shard.zone, "b");
    expect_moved(f, &m, 1);

    memset(&m.shard, 0, sizeof(m.shard));
    expect_moved(f, &m, 1);
    m.is_shard = 0;
    expect_moved(f, &m, 1);
}


static void
expect_refused(const llmgw_member_t *right, void (*spoil)(llmgw_member_t *m))
{
    llmgw_member_t  m;

    m = *right;
    assert_null(llmgw_member_reason(&m));
    spoil(&m);
    assert_non_null(llmgw_member_reason(&m));
}


static void
spoil_mark(llmgw_member_t *m)
{
    m->is_shard = 2;
}


static void
spoil_role(llmgw_member_t *m)
{
    m->role = LLMGW_ROLE_REPLICA;
}


/* This role is never written: an older reader would refuse the
   whole segment. */
static void
spoil_role_byte(llmgw_member_t *m)
{
    m->role = LLMGW_ROLE_SHARD;
}


static void
spoil_address(llmgw_member_t *m)
{
    m->grpc[0] = '\0';
}


static void
spoil_order(llmgw_member_t *m)
{
    m->shard.first = m->shard.last + 1;
}


static void
spoil_last(llmgw_member_t *m)
{
    m->shard.last = m->shard.layers;
}


static void
spoil_layers(llmgw_member_t *m)
{
    m->shard.layers = LLMGW_SHARD_MAX_LAYERS + 1;
}


static void
spoil_silence(llmgw_member_t *m)
{
    m->shard.layers = 0;
}


static void
spoil_loaded(llmgw_member_t *m)
{
    m->shard.is_loaded = 2;
}


static void
spoil_zone(llmgw_member_t *m)
{
    strcpy(m->shard.zone, "a b");
}


static void
spoil_zone_end(llmgw_member_t *m)
{
    memset(m->shard.zone, 'z', sizeof(m->shard.zone));
}


static void
test_wrong_words_of_a_shard_are_refused(void **state)
{
    size_t          i;
    llmgw_member_t  m;

    void (*const  spoils[])(llmgw_member_t *m) = {
        spoil_mark, spoil_role, spoil_role_byte, spoil_address, spoil_order,
        spoil_last, spoil_layers, spoil_silence, spoil_loaded, spoil_zone,
        spoil_zone_end
    };

    shard_make(&m, 1, 0, 7, 8);
    strcpy(m.shard.zone, "z");

    for (i = 0; i < sizeof(spoils) / sizeof(spoils[0]); i++) {
        expect_refused(&m, spoils[i]);
    }

    m.shard.layers = LLMGW_SHARD_MAX_LAYERS;
    m.shard.last = LLMGW_SHARD_MAX_LAYERS - 1;
    assert_null(llmgw_member_reason(&m));
}


static void
test_list_says_what_shards_compute(void **state)
{
    char                 names[LLMGW_MEMBERS_MODELS_BYTES];
    size_t               i, bytes;
    llmgw_shard_model_t  model, read;

    memset(&model, 0, sizeof(model));
    memset(model.name, 'm', LLMGW_SHARD_MODEL_BYTES - 1);
    memset(model.numerics, 'n', LLMGW_MEMBERS_NAME_BYTES - 1);

    for (i = 0; i < LLMGW_WEIGHTS_ID_BYTES; i++) {
        model.weights_id[i] = (uint8_t) (i * 37 + 11);
    }

    bytes = llmgw_shard_model_write(&model, names);
    assert_int_equal(bytes, LLMGW_MEMBERS_MODELS_BYTES);
    assert_int_equal(llmgw_shard_model_read(&read, names, bytes), 0);
    assert_memory_equal(&read, &model, sizeof(model));

    /* A list with a name too few, a name too many, a digit that is none. */
    assert_int_equal(llmgw_shard_model_read(&read, names, bytes - 64), -1);
    assert_int_equal(llmgw_shard_model_read(&read, names, 0), -1);
    names[130] = 'A';
    assert_int_equal(llmgw_shard_model_read(&read, names, bytes), -1);
    memcpy(names, "m\0" "x\0" "n\0", 6);
    assert_int_equal(llmgw_shard_model_read(&read, names, 6), -1);

    model.name[1] = '\0';
    model.numerics[1] = '\0';
    bytes = llmgw_shard_model_write(&model, names);
    memcpy(names + bytes, "o", 2);
    assert_int_equal(llmgw_shard_model_read(&read, names, bytes), 0);
    assert_int_equal(llmgw_shard_model_read(&read, names, bytes + 2), -1);

    names[bytes - 2] = '.';
    assert_int_equal(llmgw_shard_model_read(&read, names, bytes), -1);
}


/* A list whose model has a name that is one byte too long is not a shard's. */
static void
test_list_with_a_longer_name_is_refused(void **state)
{
    char                 names[LLMGW_MEMBERS_LIST_BYTES];
    size_t               len;
    llmgw_shard_model_t  read;

    for (len = LLMGW_SHARD_MODEL_BYTES - 1; len <= LLMGW_SHARD_MODEL_BYTES;
         len++)
    {
        memset(names, 'm', len);
        names[len] = '\0';
        memset(names + len + 1, '0', 64);
        memcpy(names + len + 65, "\0n", 3);
        assert_int_equal(llmgw_shard_model_read(&read, names, len + 68),
                         len < LLMGW_SHARD_MODEL_BYTES ? 0 : -1);
    }
}


static void
test_shard_is_offered_as_long_as_its_agent_and_its_process_live(void **state)
{
    size_t          i;
    llmgw_member_t  m;

    static const struct {
        llmgw_liveness_t  liveness;
        llmgw_service_t   service;
        int               draining;
        int               is_advertised;
        int               is_usable;
    } cases[] = {
        { LLMGW_LIVENESS_ALIVE, LLMGW_SERVICE_READY, 0, 1, 1 },
        { LLMGW_LIVENESS_ALIVE, LLMGW_SERVICE_READY, 1, 1, 0 },
        { LLMGW_LIVENESS_ALIVE, LLMGW_SERVICE_STALLED, 0, 1, 0 },
        { LLMGW_LIVENESS_SUSPECT, LLMGW_SERVICE_READY, 0, 1, 0 },
        { LLMGW_LIVENESS_ALIVE, LLMGW_SERVICE_STARTING, 0, 0, 0 },
        { LLMGW_LIVENESS_ALIVE, LLMGW_SERVICE_STOPPED, 0, 0, 0 },
        { LLMGW_LIVENESS_ALIVE, LLMGW_SERVICE_DOWN, 0, 0, 0 },
        { LLMGW_LIVENESS_DEAD, LLMGW_SERVICE_READY, 0, 0, 0 },
        { LLMGW_LIVENESS_LEFT, LLMGW_SERVICE_READY, 0, 0, 0 },
    };

    shard_make(&m, 1, 0, 7, 8);

    for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        m.liveness = cases[i].liveness;
        m.service = cases[i].service;
        m.draining = cases[i].draining;
        assert_int_equal(llmgw_shard_is_advertised(&m),
                         cases[i].is_advertised);
        assert_int_equal(llmgw_shard_is_usable(&m), cases[i].is_usable);
    }

    m.liveness = LLMGW_LIVENESS_ALIVE;
    m.service = LLMGW_SERVICE_READY;
    memset(&m.shard, 0, sizeof(m.shard));
    assert_false(llmgw_shard_is_advertised(&m));

    member_make(&m, 2, 1);
    assert_int_equal(llmgw_member_role(&m), LLMGW_ROLE_REPLICA);
    assert_false(llmgw_shard_is_advertised(&m));
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        fixture_test(test_readers_see_what_a_shard_says),
        fixture_test(test_each_word_of_a_shard_moves_the_generation),
        cmocka_unit_test(test_wrong_words_of_a_shard_are_refused),
        cmocka_unit_test(test_list_says_what_shards_compute),
        cmocka_unit_test(test_list_with_a_longer_name_is_refused),
        cmocka_unit_test(
            test_shard_is_offered_as_long_as_its_agent_and_its_process_live),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
