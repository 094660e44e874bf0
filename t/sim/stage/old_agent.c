
#include <assert.h>
#include <string.h>

#include "common/packet_header.h"
#include "gossip.pb-c.h"
#include "swim/wire/packet.h"
#include "t/sim/stage/old_agent.h"


typedef Llmgateway__Gossip__GossipMessage  message_t;
typedef Llmgateway__Gossip__MemberMore     more_t;


/* A record of this edition lacks nothing, to a current agent. */
#define OLD_AGENT_EDITION  2

/* Changes the `more` of a record that the old agent receives (is_heard) or
   sends; NULL: the record has none. */
typedef more_t *(*old_agent_more_pt)(more_t *more, more_t *space,
    int is_heard);


static more_t *
old_agent_before_more(more_t *more, more_t *space, int is_heard)
{
    if (!is_heard) {
        return NULL;
    }

    llmgateway__gossip__member_more__init(space);
    space->edition = OLD_AGENT_EDITION;

    return space;
}


static more_t *
old_agent_before_groups(more_t *more, more_t *space, int is_heard)
{
    if (more == NULL) {
        return NULL;
    }

    *space = *more;
    space->edition = is_heard ? OLD_AGENT_EDITION : 0;
    space->shard = NULL;
    space->orchestrates = 0;
    space->group = "";
    space->group_state = LLMGATEWAY__GOSSIP__GROUP_STATE__NONE;
    space->group_epoch = 0;
    space->group_lock = 0;

    return space;
}


static more_t *
old_agent_before_shards(more_t *more, more_t *space, int is_heard)
{
    if (more == NULL) {
        return NULL;
    }

    *space = *more;
    space->edition = is_heard ? OLD_AGENT_EDITION : 1;
    space->shard = NULL;
    space->orchestrates = 0;

    return space;
}


static size_t
old_agent_rewrite(uint8_t *bytes, size_t len, int is_heard,
    old_agent_more_pt rewrite)
{
    size_t      i, header_bytes;
    unsigned    flags;
    message_t  *message;
    more_t     *had[PACKET_MAX_UPDATES], spaces[PACKET_MAX_UPDATES];

    if (packet_header_decode(FAKE_CLUSTER, bytes, len, &flags, &header_bytes)
        != PACKET_DONE)
    {
        return len;
    }

    message = llmgateway__gossip__gossip_message__unpack(NULL,
                  len - header_bytes, bytes + header_bytes);
    assert(message != NULL && message->n_updates <= PACKET_MAX_UPDATES);

    for (i = 0; i < message->n_updates; i++) {
        had[i] = message->updates[i]->more;
        message->updates[i]->more = rewrite(had[i], &spaces[i], is_heard);
    }

    assert(header_bytes
           + llmgateway__gossip__gossip_message__get_packed_size(message)
           <= FAKE_FILTER_BYTES);
    len = header_bytes
          + llmgateway__gossip__gossip_message__pack(message,
                                                     bytes + header_bytes);

    for (i = 0; i < message->n_updates; i++) {
        message->updates[i]->more = had[i];
    }

    llmgateway__gossip__gossip_message__free_unpacked(message, NULL);

    return len;
}


size_t
old_agent_filter(uint8_t *bytes, size_t len, int is_heard)
{
    return old_agent_rewrite(bytes, len, is_heard, old_agent_before_more);
}


size_t
old_agent_groupless_filter(uint8_t *bytes, size_t len, int is_heard)
{
    return old_agent_rewrite(bytes, len, is_heard, old_agent_before_groups);
}


size_t
old_agent_shardless_filter(uint8_t *bytes, size_t len, int is_heard)
{
    return old_agent_rewrite(bytes, len, is_heard, old_agent_before_shards);
}
