
/* What came with MemberMore: models and load of an engine, groups, shards. */

#include "t/unit/agent/swim/wire/packet_scene.h"


static int
decode_one(const member_t *member, member_update_t *said)
{
    size_t          len;
    packet_t        packet;
    packet_out_t   *out;
    packet_head_t   head;
    const uint8_t  *data;

    head = head_of(PACKET_UPDATES);
    out = packet_out_create("c");
    packet_begin(out, &head);
    assert_int_equal(packet_add(out, member, 0), 0);
    data = packet_end(out, &len);
    assert_int_equal(packet_decode(&packet, "c", data, len, WALL_US),
                     PACKET_DONE);
    *said = packet.updates[0];
    packet_out_destroy(out);

    return (int) packet.nupdates;
}


/* `more` is absent, empty, or set: three different things. */
static void
more_is_told_by_who_has_it(void **state)
{
    member_t         member;
    member_update_t  said;

    member = full_member();
    assert_int_equal(decode_one(&member, &said), 1);
    assert_int_equal(said.more, MEMBER_MORE_ALL);

    member.facts.resume_group[0] = '\0';
    assert_int_equal(decode_one(&member, &said), 1);
    assert_int_equal(said.more, MEMBER_MORE_ALL);
    assert_string_equal(said.facts.resume_group, "");

    member = full_member();
    member.lacks_more = MEMBER_MORE_ALL;
    assert_int_equal(decode_one(&member, &said), 1);
    assert_int_equal(said.more, MEMBER_MORE_NONE);
    assert_string_equal(said.facts.resume_group, "");

    member.lacks_more = 0;
    strcpy(member.facts.resume_group, "a/b");
    assert_int_equal(decode_one(&member, &said), 0);
}


/* The facts of an update with this `more`; NULL: the update is refused. */
static const llmgw_member_t *
group_said(more_t *more, member_update_t *said)
{
    packet_t   packet;
    update_t   update, *list[1];
    message_t  message;

    good_message(&message, &update, list);
    update.more = more;
    assert_int_equal(decode(&packet, &message), PACKET_DONE);
    *said = packet.updates[0];

    return packet.nupdates ? &said->facts : NULL;
}


static more_t
grouped(const char *group, int state, uint64_t epoch, uint64_t lock)
{
    more_t  more;

    llmgateway__gossip__member_more__init(&more);
    more.edition = 1;
    more.group = (char *) group;
    more.group_state = (Llmgateway__Gossip__GroupState) state;
    more.group_epoch = epoch;
    more.group_lock = lock;

    return more;
}


static void
group_is_told_by_the_edition_that_has_it(void **state)
{
    more_t                 more;
    member_t               member;
    member_update_t        said;
    const llmgw_member_t  *facts;

    more = grouped("g", LLMGW_GROUP_ACTIVE, 7, 9);
    facts = group_said(&more, &said);
    assert_int_equal(said.more, MEMBER_MORE_GROUP);
    assert_string_equal(facts->group, "g");
    assert_int_equal(facts->group_state, LLMGW_GROUP_ACTIVE);
    assert_int_equal(facts->group_epoch, 7);
    assert_int_equal(facts->group_lock, 9);

    /* A later edition has the group, too; an older one has none, whatever is
       in it. */
    for (more.edition = 2; more.edition < 4; more.edition++) {
        assert_string_equal(group_said(&more, &said)->group, "g");
        assert_int_equal(said.more, MEMBER_MORE_ALL);
    }

    more.edition = 0;
    assert_string_equal(group_said(&more, &said)->group, "");
    assert_int_equal(said.more, MEMBER_MORE_FIRST);

    /* A member passes on only the parts of `more` that it has. */
    member = full_member();
    member.lacks_more = MEMBER_MORE_ALL - MEMBER_MORE_FIRST;
    assert_int_equal(decode_one(&member, &said), 1);
    assert_int_equal(said.more, MEMBER_MORE_FIRST);
    assert_string_equal(said.facts.resume_group, member.facts.resume_group);
    assert_string_equal(said.facts.group, "");
}


static void
groups_have_limits(void **state)
{
    more_t           more;
    member_update_t  said;

#define takes(...)                                                            \
    (more = grouped(__VA_ARGS__), group_said(&more, &said) != NULL)
    assert_true(takes("", 0, 0, 0));
    assert_true(takes("g", LLMGW_GROUP_INIT, 0, 0));
    assert_false(takes("g", LLMGW_GROUP_NONE, 0, 0));
    assert_true(takes("0123456789012345678901234567890", 4, 1, 1));
    assert_false(takes("01234567890123456789012345678901", 4, 1, 1));
    assert_false(takes(".g", 4, 1, 1));
    assert_false(takes("g", 5, 1, 1));
    assert_false(takes("g", -1, 1, 1));
    assert_false(takes("", 1, 0, 0));
    assert_false(takes("", 0, 1, 0));
    assert_false(takes("", 0, 0, 1));
#undef takes
}


/* Only the epoch is refused: the rest of the record counts, and the member is
   in the group, but not active. */
static void
epoch_of_a_group_over_a_day_ahead_is_refused(void **state)
{
    more_t                 more;
    uint64_t               latest;
    member_update_t        said;
    const llmgw_member_t  *facts;

    latest = WALL_US + 24 * 3600 * 1000000ULL;
    more = grouped("g", LLMGW_GROUP_ACTIVE, latest, 9);
    facts = group_said(&more, &said);
    assert_true(facts->group_epoch == latest);
    assert_int_equal(said.refused_epoch, 0);

    more.group_epoch = latest + 1;
    facts = group_said(&more, &said);
    assert_non_null(facts);
    assert_true(said.refused_epoch == latest + 1);
    assert_string_equal(facts->id, "b");
    assert_string_equal(facts->group, "g");
    assert_int_equal(facts->group_state, LLMGW_GROUP_INIT);
    assert_int_equal(facts->group_epoch, 0);
    assert_int_equal(facts->group_lock, 0);
}


/* Checks that n updates with this `more` just fit a datagram, and that all of
   them are decoded. */
static void
expect_fit(size_t n, const more_t *more)
{
    size_t           i;
    update_t         updates[PACKET_MAX_UPDATES];
    update_t        *list[PACKET_MAX_UPDATES];
    message_t        message;
    static packet_t  packet;

    for (i = 0; i < n; i++) {
        llmgateway__gossip__membership_update__init(&updates[i]);
        updates[i].member_id = "b";
        updates[i].address = "1.1.1.1:1";
        updates[i].grpc_address = more->shard ? "1.1.1.1:1" : "";
        updates[i].role = (Llmgateway__Gossip__MemberRole) LLMGW_ROLE_GATEWAY;
        updates[i].more = (more_t *) more;
        list[i] = &updates[i];
    }

    llmgateway__gossip__gossip_message__init(&message);
    message.sender_id = "a";
    message.n_updates = n;
    message.updates = list;
    assert_in_range(llmgateway__gossip__gossip_message__get_packed_size(
                        &message), PACKET_MAX_BYTES - 70, PACKET_MAX_BYTES);
    assert_int_equal(decode(&packet, &message), PACKET_DONE);
    assert_int_equal(packet.nupdates, n);
}


/* As many of the smallest updates as fit one datagram can be decoded. */
static void
smallest_updates_with_more_fit_into_the_arena(void **state)
{
    more_t                          more;
    Llmgateway__Gossip__Shard       shard;
    Llmgateway__Gossip__EngineLoad  engine;

    more = grouped("", 0, 0, 0);
    llmgateway__gossip__engine_load__init(&engine);
    more.engine = &engine;
    expect_fit(47, &more);

    llmgateway__gossip__shard__init(&shard);
    more.shard = &shard;
    more.edition = 2;
    shard.layers = 1;
    shard.zone = "z";
    expect_fit(27, &more);
}


/* The facts of an update with this shard; NULL: the update is refused. */
static const llmgw_member_t *
shard_said(const Llmgateway__Gossip__Shard *shard, const char *grpc,
    int role, member_update_t *said)
{
    more_t     more;
    packet_t   packet;
    update_t   update, *list[1];
    message_t  message;

    more = grouped("", 0, 0, 0);
    more.edition = 2;
    more.shard = (Llmgateway__Gossip__Shard *) shard;
    good_message(&message, &update, list);
    update.role = (Llmgateway__Gossip__MemberRole) role;
    update.grpc_address = (char *) grpc;
    update.more = &more;
    assert_int_equal(decode(&packet, &message), PACKET_DONE);
    *said = packet.updates[0];

    return packet.nupdates ? &said->facts : NULL;
}


static Llmgateway__Gossip__Shard
shard_of(uint32_t first, uint32_t last, uint32_t layers, const char *zone)
{
    Llmgateway__Gossip__Shard  shard;

    llmgateway__gossip__shard__init(&shard);
    shard.first = first;
    shard.last = last;
    shard.layers = layers;
    shard.zone = (char *) zone;

    return shard;
}


static void
shards_have_limits(void **state)
{
    member_update_t            said;
    Llmgateway__Gossip__Shard  shard;

#define takes_as(role, grpc, ...)                                             \
    (shard = shard_of(__VA_ARGS__),                                           \
     shard_said(&shard, grpc, role, &said) != NULL)
#define takes(...)  takes_as(LLMGW_ROLE_GATEWAY, "1.1.1.1:1", __VA_ARGS__)
    assert_true(takes(0, 0, 1, ""));
    assert_int_equal(llmgw_member_role(&said.facts), LLMGW_ROLE_SHARD);
    assert_true(takes(4, 4095, 4096, "0123456789012345678901234567890"));
    assert_true(takes(0, 0, 0, ""));        /* it reports no layers */
    assert_int_equal(llmgw_member_role(&said.facts), LLMGW_ROLE_SHARD);

    assert_false(takes(4, 4096, 4097, ""));
    assert_false(takes(5, 4, 8, ""));
    assert_false(takes(0, 8, 8, ""));
    assert_false(takes(65536, 65536, 1, ""));
    assert_false(takes(0, 65536, 1, ""));
    assert_false(takes(0, 0, 65537, ""));
    assert_false(takes(1, 1, 0, ""));
    assert_false(takes(0, 0, 0, "z"));
    assert_false(takes(0, 0, 1, "01234567890123456789012345678901"));
    assert_false(takes(0, 0, 1, "a b"));

    assert_false(takes_as(LLMGW_ROLE_REPLICA, "1.1.1.1:1", 0, 0, 1, ""));
    assert_false(takes_as(LLMGW_ROLE_SHARD, "1.1.1.1:1", 0, 0, 1, ""));
    assert_false(takes_as(LLMGW_ROLE_GATEWAY, "", 0, 0, 1, ""));
#undef takes
#undef takes_as

    assert_non_null(shard_said(NULL, "", LLMGW_ROLE_GATEWAY, &said));
    assert_int_equal(llmgw_member_role(&said.facts), LLMGW_ROLE_GATEWAY);
}


/* A shard's record that an older agent passes on is that of a gateway. */
static void
shard_is_told_by_the_edition_that_has_it(void **state)
{
    member_t         member;
    member_update_t  said;

    member = full_shard();
    assert_int_equal(decode_one(&member, &said), 1);
    assert_int_equal(said.more, MEMBER_MORE_ALL);
    assert_memory_equal(&said.facts.shard, &member.facts.shard,
                        sizeof(llmgw_shard_t));

    member.lacks_more = MEMBER_MORE_ALL - MEMBER_MORE_GROUP;
    assert_int_equal(decode_one(&member, &said), 1);
    assert_int_equal(said.more, MEMBER_MORE_GROUP);
    assert_int_equal(llmgw_member_role(&said.facts), LLMGW_ROLE_GATEWAY);
    assert_string_equal(said.facts.resume_group, "");
    assert_int_equal(said.traits.orchestrates, 0);
    assert_true(said.facts.models == member.facts.models);
}


static int
takes_models(const char *models, size_t bytes, uint32_t cut)
{
    member_t         member;
    member_update_t  said;

    member = full_member();
    member.facts.model_version[1] = '\0';
    member.models = (char *) models;
    member.models_bytes = bytes;
    member.facts.models_cut = cut;

    return decode_one(&member, &said)
           && said.facts.models == (bytes ? llmgw_members_list_hash(models,
                                                                    bytes)
                                          : 0);
}


static void
models_are_a_list_of_at_most_256_bytes(void **state)
{
    char  models[LLMGW_MEMBERS_MODELS_BYTES + 1];

    assert_true(takes_models(NULL, 0, 0));
    assert_true(takes_models("a", 2, 1));
    assert_true(takes_models("a b\0c", 6, 0));
    assert_true(takes_models(models, models_of(models, 256), 0));

    assert_false(takes_models(models, models_of(models, 257), 0));
    assert_false(takes_models("", 1, 0));
    assert_false(takes_models("a", 1, 0));
    assert_false(takes_models("a\0", 3, 0));
    assert_false(takes_models("a\n", 3, 0));
    assert_false(takes_models(NULL, 0, 1));
}


/* Whether the figures in `taken`, and no others, are decoded of the engine's
   load. */
static int
takes_engine(llmgw_engine_load_t load, uint16_t taken)
{
    member_t              member;
    member_update_t       said;
    llmgw_engine_load_t  *got;

    member = full_member();
    member.load.engine = load;
    got = &said.engine;

    return decode_one(&member, &said) && got->reported == taken
           && (taken == 0
               || (got->running == load.running
                   && got->waiting == load.waiting
                   && got->kv_permille == load.kv_permille
                   && got->kv_free_blocks == load.kv_free_blocks
                   && got->hit_permille == load.hit_permille));
}


static void
figures_of_an_engine_have_limits(void **state)
{
    packet_t                         packet;
    update_t                         update, *list[1];
    message_t                        message;
    Llmgateway__Gossip__EngineLoad   engine;

#define load(...)  ((llmgw_engine_load_t) { __VA_ARGS__, 0 })
    assert_true(takes_engine(load(0, 0, 0, 0, 0, 0), 0));
    assert_true(takes_engine(load(1000000, 1000000, 1000, 31, 1000000000, 1000),
                             31));
    assert_true(takes_engine(load(0, 3, 0, 2, 0, 0), 2));
    assert_true(takes_engine(load(1, 1, 1, 0xff, 1, 1), 31));
    assert_false(takes_engine(load(1000001, 0, 0, 1, 0, 0), 1));
    assert_false(takes_engine(load(0, 1000001, 0, 2, 0, 0), 2));
    assert_false(takes_engine(load(0, 0, 1001, 4, 0, 0), 4));
    assert_false(takes_engine(load(0, 0, 0, 8, 1000000001, 0), 8));
    assert_false(takes_engine(load(0, 0, 0, 16, 0, 1001), 16));
#undef load

    good_message(&message, &update, list);
    llmgateway__gossip__engine_load__init(&engine);
    message.own_engine = &engine;
    engine.reported = 4 | 8 | 16;
    engine.kv_permille = 1000;
    engine.kv_free_blocks = 1000000000;
    engine.hit_permille = 1000;
    assert_int_equal(decode(&packet, &message), PACKET_DONE);
    assert_int_equal(packet.head.own_engine.kv_permille, 1000);
    assert_int_equal(packet.head.own_engine.kv_free_blocks, 1000000000);
    assert_int_equal(packet.head.own_engine.hit_permille, 1000);
    assert_int_equal(packet.head.own_engine.reported, 4 | 8 | 16);
    engine.hit_permille = 1001;
    assert_int_equal(decode(&packet, &message), PACKET_ESENDER);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(more_is_told_by_who_has_it),
        cmocka_unit_test(group_is_told_by_the_edition_that_has_it),
        cmocka_unit_test(groups_have_limits),
        cmocka_unit_test(epoch_of_a_group_over_a_day_ahead_is_refused),
        cmocka_unit_test(smallest_updates_with_more_fit_into_the_arena),
        cmocka_unit_test(shards_have_limits),
        cmocka_unit_test(shard_is_told_by_the_edition_that_has_it),
        cmocka_unit_test(models_are_a_list_of_at_most_256_bytes),
        cmocka_unit_test(figures_of_an_engine_have_limits),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
