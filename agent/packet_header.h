
/* Private to packet.c and packet_out.c: the bytes before the message. */

#ifndef PACKET_HEADER_H
#define PACKET_HEADER_H

#include <stddef.h>
#include <stdint.h>


#define PACKET_MAGIC_0       'L'
#define PACKET_MAGIC_1       'G'
#define PACKET_VERSION       1
#define PACKET_HEADER_BYTES  5

/* A ring has 150 points a unit of weight: a forged weight must not cost
   every worker its memory. */
#define PACKET_MAX_WEIGHT    100


/* Writes the header into buf (of PACKET_MAX_BYTES); returns its length. */
size_t packet_header_encode(uint8_t *buf, const char *cluster);

#endif /* PACKET_HEADER_H */
