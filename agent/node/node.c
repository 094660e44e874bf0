
#include <stdlib.h>
#include <string.h>

#include "node/node.h"


struct node_s {
    swim_t          *swim;
    crypt_t         *crypt;         /* NULL: datagrams are plain */
    transport_t     *transport;
    clock_source_t  *clock;
    char             cluster[LLMGW_MEMBERS_NAME_BYTES];
};


static void node_alarm(void *data);


static void
node_arm(node_t *node)
{
    clock_arm(node->clock, swim_next_us(node->swim), node_alarm, node);
}


static void
node_read_wall(node_t *node)
{
    swim_set_wall_ahead(node->swim, clock_wall_us(node->clock)
                                    - clock_mono_us(node->clock));
}


static void
node_alarm(void *data)
{
    node_t  *node = data;

    /*
     * a member that answered in time must not be suspected because we are slow
     */
    transport_drain(node->transport);

    node_read_wall(node);
    swim_tick(node->swim, clock_mono_us(node->clock));
    node_arm(node);
}


/*
 * Opens a datagram, decodes it, and checks whether it is a replay, in this
 * order: the counters seen depend on the sender, which is known only after
 * decoding.
 */
static packet_rc_t
node_open(node_t *node, packet_t *packet, const uint8_t *bytes, size_t len)
{
    size_t       plain_len;
    uint8_t      plain[PACKET_MAX_BYTES];
    uint64_t     counter;
    packet_rc_t  rc;

    rc = crypt_open(node->crypt, plain, &plain_len, &counter, bytes, len);

    if (rc == PACKET_DONE) {
        rc = packet_decode(packet, node->cluster, plain, plain_len,
                           clock_wall_us(node->clock));
    }

    if (rc == PACKET_DONE) {
        rc = crypt_take(node->crypt, packet->head.sender_id,
                        packet->head.sender_epoch, counter,
                        clock_mono_us(node->clock));
    }

    return rc;
}


static void
node_sealed(node_t *node, const address_t *from, const uint8_t *bytes,
    size_t len)
{
    packet_t     packet;
    packet_rc_t  rc;

    rc = node_open(node, &packet, bytes, len);

    if (rc == PACKET_DONE) {
        swim_recv_packet(node->swim, from, &packet, len,
                         clock_mono_us(node->clock));
    } else {
        swim_recv_dropped(node->swim, from, &packet, rc, len,
                          clock_mono_us(node->clock));
    }
}


static void
node_datagram(void *data, const address_t *from, const uint8_t *bytes,
    size_t len)
{
    node_t  *node = data;

    if (node->crypt != NULL) {
        node_sealed(node, from, bytes, len);

    } else {
        swim_recv(node->swim, from, bytes, len, clock_mono_us(node->clock),
                  clock_wall_us(node->clock));
    }

    node_arm(node);
}


/* The bytes to send: sealed if there is a crypt, otherwise unchanged. */
static const uint8_t *
node_seal(node_t *node, uint8_t *sealed, const uint8_t *bytes, size_t *len)
{
    if (node->crypt == NULL) {
        return bytes;
    }

    *len = crypt_seal(node->crypt, sealed, bytes, *len);

    return sealed;
}


static void
node_send(void *net, const address_t *to, const uint8_t *bytes, size_t len)
{
    node_t   *node = net;
    uint8_t   sealed[PACKET_MAX_BYTES];

    bytes = node_seal(node, sealed, bytes, &len);
    transport_send(node->transport, to, bytes, len);
}


/* Sends over a connection. */
static void
node_stream(void *net, const address_t *to, const uint8_t *bytes, size_t len)
{
    node_t   *node = net;
    uint8_t   sealed[PACKET_MAX_BYTES];

    bytes = node_seal(node, sealed, bytes, &len);
    transport_ask(node->transport, to, bytes, len);
}


node_t *
node_create(const swim_config_t *config, transport_t *transport,
    clock_source_t *clock)
{
    node_t         *node;
    swim_config_t   inner;

    node = calloc(1, sizeof(node_t));
    if (node == NULL) {
        return NULL;
    }

    node->crypt = config->crypt;
    node->transport = transport;
    node->clock = clock;
    strcpy(node->cluster, config->cluster);

    inner = *config;
    inner.on_send = node_send;
    inner.on_stream = node_stream;
    inner.net = node;

    node->swim = swim_create(&inner, clock_mono_us(clock));
    if (node->swim == NULL) {
        free(node);
        return NULL;
    }

    transport_listen(transport, node_datagram, node);
    node_arm(node);

    return node;
}


void
node_destroy(node_t *node)
{
    transport_listen(node->transport, NULL, NULL);
    clock_arm(node->clock, UINT64_MAX, NULL, NULL);
    swim_destroy(node->swim);
    free(node);
}


const swim_t *
node_swim(const node_t *node)
{
    return node->swim;
}


void
node_restore(node_t *node, const llmgw_members_view_t *view)
{
    node_read_wall(node);
    swim_restore(node->swim, view, clock_mono_us(node->clock));
    node_arm(node);
}


void
node_set_seeds(node_t *node, const address_t *seeds, size_t n)
{
    swim_set_seeds(node->swim, seeds, n, clock_mono_us(node->clock));
    node_arm(node);
}


void
node_set_own(node_t *node, const swim_own_t *own)
{
    node_read_wall(node);
    swim_set_own(node->swim, own, clock_mono_us(node->clock));
    node_arm(node);
}


void
node_set_load(node_t *node, uint32_t active_requests,
    const llmgw_engine_load_t *engine)
{
    swim_set_load(node->swim, active_requests, engine,
                  clock_mono_us(node->clock));
    node_arm(node);
}


void
node_retire(node_t *node)
{
    swim_retire(node->swim, clock_mono_us(node->clock));
    node_arm(node);
}


void
node_set_update(node_t *node, const char *id)
{
    swim_set_update(node->swim, id, clock_mono_us(node->clock));
    node_arm(node);
}


order_rc_t
node_order(node_t *node, order_t *order)
{
    order_rc_t  rc;

    rc = swim_order(node->swim, order, clock_mono_us(node->clock));
    node_arm(node);

    return rc;
}


void
node_kept(node_t *node)
{
    swim_kept(node->swim, clock_mono_us(node->clock));
    node_arm(node);
}


void
node_forget_order(node_t *node, uint64_t id)
{
    swim_forget_order(node->swim, id);
}


void
node_ask(node_t *node, const char *id)
{
    swim_ask(node->swim, id, clock_mono_us(node->clock));
    node_arm(node);
}


void
node_leave(node_t *node)
{
    swim_leave(node->swim, clock_mono_us(node->clock));
    node_arm(node);
}


int
node_inject_suspect(node_t *node, const char *id)
{
    int  rc;

    rc = swim_inject_suspect(node->swim, id, clock_mono_us(node->clock));
    node_arm(node);

    return rc;
}
