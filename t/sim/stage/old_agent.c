
#include <assert.h>
#include <string.h>

#include "common/packet_header.h"
#include "gossip.pb-c.h"
#include "swim/wire/packet.h"
#include "t/sim/stage/old_agent.h"


typedef Llmgateway__Gossip__GossipMessage  message_t;
typedef Llmgateway__Gossip__MemberMore     more_t;


size_t
old_agent_filter(uint8_t *bytes, size_t len, int is_heard)
{
    size_t      i, header_bytes;
    unsigned    flags;
    more_t      empty;
    message_t  *message;
    more_t     *had[PACKET_MAX_UPDATES];

    if (packet_header_decode(FAKE_CLUSTER, bytes, len, &flags, &header_bytes)
        != PACKET_DONE)
    {
        return len;
    }

    message = llmgateway__gossip__gossip_message__unpack(NULL,
                  len - header_bytes, bytes + header_bytes);
    assert(message != NULL && message->n_updates <= PACKET_MAX_UPDATES);
    llmgateway__gossip__member_more__init(&empty);

    for (i = 0; i < message->n_updates; i++) {
        had[i] = message->updates[i]->more;
        message->updates[i]->more = is_heard ? &empty : NULL;
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
