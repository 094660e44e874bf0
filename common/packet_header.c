
#include <string.h>

#include "common/packet_header.h"


#define PACKET_KNOWN_FLAGS  PACKET_FLAG_SEALED

static const char *const  packet_rc_names[PACKET_NRC] = {
    "done",
#define X(id, name, help)  name,
    PACKET_DROPS(X)
#undef X
};


const char *
packet_rc_name(packet_rc_t rc)
{
    return packet_rc_names[rc];
}

size_t
packet_header_encode(uint8_t *buf, const char *cluster, unsigned flags)
{
    size_t  len;

    len = strlen(cluster);

    buf[0] = PACKET_MAGIC_0;
    buf[1] = PACKET_MAGIC_1;
    buf[2] = PACKET_VERSION;
    buf[3] = flags;
    buf[4] = len;
    memcpy(buf + PACKET_HEADER_BYTES, cluster, len);

    return PACKET_HEADER_BYTES + len;
}


packet_rc_t
packet_header_decode(const char *cluster, const uint8_t *data, size_t len,
    unsigned *flags, size_t *header_bytes)
{
    size_t  cluster_len;

    if (len < PACKET_HEADER_BYTES || len > PACKET_MAX_BYTES) {
        return PACKET_ELENGTH;
    }

    if (data[0] != PACKET_MAGIC_0 || data[1] != PACKET_MAGIC_1) {
        return PACKET_EMAGIC;
    }

    if (data[2] != PACKET_VERSION) {
        return PACKET_EVERSION;
    }

    if ((data[3] & ~PACKET_KNOWN_FLAGS) != 0) {
        return PACKET_EFLAGS;
    }

    cluster_len = data[4];

    if (len - PACKET_HEADER_BYTES < cluster_len) {
        return PACKET_ELENGTH;
    }

    if (cluster_len != strlen(cluster)
        || memcmp(data + PACKET_HEADER_BYTES, cluster, cluster_len) != 0)
    {
        return PACKET_ECLUSTER;
    }

    *flags = data[3];
    *header_bytes = PACKET_HEADER_BYTES + cluster_len;

    return PACKET_DONE;
}
