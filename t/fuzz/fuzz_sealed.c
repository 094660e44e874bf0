
/*
 * Bytes as sealed datagrams: no crash, and only what was sealed opens.
 *
 * The first byte chooses what happens to the rest: it is passed unchanged to a
 * receiver with a key; or it is sealed as a message, which then opens once and
 * not a second time; or it is sealed, and then changed at the place that the
 * next two bytes name.
 */

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "net/crypt.h"
#include "swim/wire/packet.h"
#include "t/fuzz/fuzz_count.h"


#define FUZZ_WALL_US  1763650000000000ULL


int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);


/* Makes the file once, and keeps only the ring that was read from it. */
static keyring_t *
fuzz_ring(void)
{
    int                fd;
    char               path[] = "/tmp/llmgw-fuzz-XXXXXX";
    char               error[KEYRING_ERROR_BYTES];
    static keyring_t  *ring;

    if (ring == NULL) {
        fd = mkstemp(path);
        assert(dprintf(fd, "%064x\n", 1) == 65);
        close(fd);
        ring = keyring_create(path, error);
        assert(ring != NULL);
        unlink(path);
    }

    return ring;
}


static packet_rc_t
fuzz_open(crypt_t *crypt, uint8_t *plain, size_t *plain_len,
    const uint8_t *data, size_t len)
{
    uint64_t      counter;
    packet_t      packet;
    packet_rc_t   rc;

    fuzz_count();
    rc = crypt_open(crypt, plain, plain_len, &counter, data, len);

    if (rc != PACKET_DONE) {
        return rc;
    }

    rc = packet_decode(&packet, "c", plain, *plain_len, FUZZ_WALL_US);

    return rc == PACKET_DONE ? crypt_take(crypt, packet.head.sender_id,
                                          packet.head.sender_epoch, counter, 1)
                             : rc;
}


static void
fuzz_sealed(crypt_t *crypt, const uint8_t *data, size_t len, int is_changed)
{
    size_t       n, plain_len, at;
    uint8_t      plain[PACKET_MAX_BYTES], back[PACKET_MAX_BYTES];
    uint8_t      sealed[PACKET_MAX_BYTES], change;
    packet_rc_t  rc;

    at = data[0] | data[1] << 8;
    change = data[2];
    data += 3;
    len -= 3;

    n = packet_header_encode(plain, "c", 0);
    len = len < PACKET_PLAIN_BYTES - n ? len : PACKET_PLAIN_BYTES - n;
    memcpy(plain + n, data, len);
    n = crypt_seal(crypt, sealed, plain, n + len);

    if (is_changed && change != 0) {
        sealed[at % n] ^= change;
        rc = fuzz_open(crypt, back, &plain_len, sealed, n);
        assert(rc != PACKET_DONE && rc < PACKET_EREPLAYED);
        return;
    }

    rc = fuzz_open(crypt, back, &plain_len, sealed, n);
    assert(rc == PACKET_DONE || rc > PACKET_EREPLAYED);
    assert(plain_len == n - PACKET_SEAL_BYTES);
    assert(memcmp(back, plain, plain_len) == 0);

    if (rc == PACKET_DONE) {
        assert(fuzz_open(crypt, back, &plain_len, sealed, n)
               == PACKET_EREPLAYED);
    }
}


int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    size_t    n;
    uint8_t   plain[PACKET_MAX_BYTES];
    crypt_t  *crypt;

    if (len < 4) {
        return 0;
    }

    crypt = crypt_create(fuzz_ring(), "c");

    if (data[0] % 3 == 0) {
        assert(fuzz_open(crypt, plain, &n, data + 1, len - 1)
               != PACKET_DONE);
    } else {
        fuzz_sealed(crypt, data + 1, len - 1, data[0] % 3 == 2);
    }

    crypt_destroy(crypt);

    return 0;
}
