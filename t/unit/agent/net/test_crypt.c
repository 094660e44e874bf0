
/* Sealed datagrams: what is sealed opens once, and nothing else opens. */

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "net/crypt.h"
#include "t/unit/agent/net/keyring_now.h"
#include "swim/wire/packet.h"


#define A16    "aaaaaaaaaaaaaaaa"
#define B16    "bbbbbbbbbbbbbbbb"
#define KEY_A  A16 A16 A16 A16
#define KEY_B  B16 B16 B16 B16

#define TEXT  "LG\1\0\1c" "what is said"

typedef struct {
    char        path[32];
    keyring_t  *ring;
    crypt_t    *crypt;
} party_t;


static void
init(party_t *p, const char *keys, const char *cluster)
{
    int   fd;
    char  error[KEYRING_ERROR_BYTES];

    strcpy(p->path, "/tmp/llmgw-test-XXXXXX");
    fd = mkstemp(p->path);
    assert_true(write(fd, keys, strlen(keys)) == (ssize_t) strlen(keys));
    close(fd);

    p->ring = keyring_create(p->path, error);
    assert_non_null(p->ring);
    p->crypt = crypt_create(p->ring, cluster);
    assert_non_null(p->crypt);
}


static void
done(party_t *p)
{
    crypt_destroy(p->crypt);
    keyring_destroy(p->ring);
    unlink(p->path);
}


static size_t
seal(party_t *p, uint8_t *sealed)
{
    return crypt_seal(p->crypt, sealed, (const uint8_t *) TEXT,
                      sizeof(TEXT) - 1);
}


/* Opens a datagram, and checks that its text is the one that was sealed. */
static packet_rc_t
opened(party_t *p, const uint8_t *data, size_t len, uint64_t *counter)
{
    size_t       n;
    uint8_t      plain[PACKET_MAX_BYTES];
    packet_rc_t  rc;

    rc = crypt_open(p->crypt, plain, &n, counter, data, len);

    if (rc == PACKET_DONE) {
        assert_int_equal(n, sizeof(TEXT) - 1);
        assert_memory_equal(plain, TEXT, n);
    }

    return rc;
}


static void
assert_opens(party_t *p, const uint8_t *data, size_t len,
    packet_rc_t expected)
{
    uint64_t  counter;

    assert_string_equal(packet_rc_name(opened(p, data, len, &counter)),
                        packet_rc_name(expected));
}


static void
sealed_is_opened_and_says_nothing_to_others(void **state)
{
    size_t    n, again;
    party_t   a, b;
    uint8_t   first[PACKET_MAX_BYTES], second[PACKET_MAX_BYTES];
    uint64_t  counter;

    init(&a, KEY_A "\n", "c");
    init(&b, KEY_A "\n", "c");

    n = seal(&a, first);
    assert_int_equal(n, sizeof(TEXT) - 1 + PACKET_SEAL_BYTES);
    assert_null(memmem(first, n, "what", 4));
    assert_int_equal(opened(&b, first, n, &counter), PACKET_DONE);
    assert_int_equal(counter, 1);

    /* Behind the nonce, the same text is sealed to other bytes each time. */
    again = seal(&a, second);
    assert_int_equal(again, n);
    assert_int_equal(opened(&b, second, n, &counter), PACKET_DONE);
    assert_int_equal(counter, 2);
    assert_memory_not_equal(first + 34, second + 34, n - 34);

    done(&b);
    done(&a);
}


/* Two starts never use the same nonces. */
static void
nonces_of_two_starts_differ(void **state)
{
    party_t  a, b;
    uint8_t  first[PACKET_MAX_BYTES], second[PACKET_MAX_BYTES];

    init(&a, KEY_A "\n", "c");
    init(&b, KEY_A "\n", "c");
    seal(&a, first);
    seal(&b, second);
    assert_memory_equal(first, second, 10);
    assert_memory_not_equal(first + 10, second + 10, PACKET_START_BYTES);
    done(&b);
    done(&a);
}


static void
every_flipped_bit_is_found(void **state)
{
    size_t       i, n;
    party_t      a;
    unsigned     bit;
    uint8_t      data[PACKET_MAX_BYTES];
    uint64_t     counter;
    packet_rc_t  rc;

    init(&a, KEY_A "\n", "c");
    n = seal(&a, data);

    for (i = 0; i < n; i++) {
        for (bit = 0; bit < 8; bit++) {
            data[i] ^= 1 << bit;
            rc = opened(&a, data, n, &counter);
            data[i] ^= 1 << bit;

            assert_int_not_equal(rc, PACKET_DONE);

            if (i >= 6 && i < 10) {
                assert_int_equal(rc, PACKET_EKEY);

            } else if (i >= 10) {
                assert_int_equal(rc, PACKET_EFORGED);
            }
        }
    }

    assert_opens(&a, data, n, PACKET_DONE);
    done(&a);
}


static void
truncated_and_lengthened_ones_are_dropped(void **state)
{
    size_t    i, n;
    party_t   a;
    uint8_t   data[PACKET_MAX_BYTES + 1];
    uint64_t  counter;

    init(&a, KEY_A "\n", "c");
    n = seal(&a, data);

    for (i = 0; i < n; i++) {
        assert_int_equal(opened(&a, data, i, &counter),
                         i < 6 + PACKET_SEAL_BYTES ? PACKET_ELENGTH
                                                   : PACKET_EFORGED);
    }

    memset(data + n, 0, sizeof(data) - n);
    assert_opens(&a, data, n + 1, PACKET_EFORGED);
    assert_opens(&a, data, PACKET_MAX_BYTES, PACKET_EFORGED);
    assert_opens(&a, data, PACKET_MAX_BYTES + 1, PACKET_ELENGTH);
    done(&a);
}


static void
plain_ones_and_other_keys_are_dropped(void **state)
{
    size_t    n;
    party_t   a, b;
    uint8_t   data[PACKET_MAX_BYTES];
    packet_t  packet;

    init(&a, KEY_A "\n", "c");
    init(&b, KEY_B "\n", "c");
    n = seal(&b, data);
    assert_opens(&a, data, n, PACKET_EKEY);
    assert_opens(&a, (const uint8_t *) TEXT, sizeof(TEXT) - 1, PACKET_EPLAIN);

    /* A reader without a ring refuses a sealed datagram. */
    assert_int_equal(packet_decode(&packet, "c", data, n, 0), PACKET_ESEALED);

    /* The key's id is not secret: a sender that knows it still
       needs the key. */
    memcpy(data + 6, keyring_id(a.ring, 0), PACKET_KEY_ID_BYTES);
    assert_opens(&a, data, n, PACKET_EFORGED);
    done(&b);
    done(&a);
}


/* Another cluster may have the same key: the seal covers the cluster's name. */
static void
header_is_under_the_seal(void **state)
{
    size_t   n;
    party_t  a, b;
    uint8_t  data[PACKET_MAX_BYTES];

    init(&a, KEY_A "\n", "c");
    init(&b, KEY_A "\n", "d");

    n = crypt_seal(b.crypt, data, (const uint8_t *) "LG\1\0\1dwhat", 10);
    assert_opens(&a, data, n, PACKET_ECLUSTER);
    data[5] = 'c';
    assert_opens(&a, data, n, PACKET_EFORGED);
    data[5] = 'd';
    data[3] = 0;
    assert_opens(&b, data, n, PACKET_EPLAIN);
    data[3] = 3;
    assert_opens(&b, data, n, PACKET_EFLAGS);
    done(&b);
    done(&a);
}


static void
longest_plain_datagram_has_room_for_the_seal(void **state)
{
    size_t    n, len;
    party_t   a;
    uint8_t   plain[PACKET_PLAIN_BYTES], back[PACKET_MAX_BYTES];
    uint8_t   data[PACKET_MAX_BYTES];
    uint64_t  counter;

    init(&a, KEY_A "\n", "c");
    memset(plain, 7, sizeof(plain));
    packet_header_encode(plain, "c", 0);

    n = crypt_seal(a.crypt, data, plain, sizeof(plain));
    assert_int_equal(n, PACKET_MAX_BYTES);
    assert_int_equal(crypt_open(a.crypt, back, &len, &counter, data, n),
                     PACKET_DONE);
    assert_int_equal(len, sizeof(plain));
    assert_memory_equal(back, plain, len);

    /* Also the shortest datagram, a header without any message. */
    n = crypt_seal(a.crypt, data, plain, 6);
    assert_int_equal(crypt_open(a.crypt, back, &len, &counter, data, n),
                     PACKET_DONE);
    assert_int_equal(len, 6);
    done(&a);
}


static void
second_time_is_a_replay(void **state)
{
    party_t  a;

    init(&a, KEY_A "\n", "c");
    assert_int_equal(crypt_take(a.crypt, "r1", 9, 3, 0), PACKET_DONE);
    assert_int_equal(crypt_take(a.crypt, "r1", 9, 3, 0), PACKET_EREPLAYED);
    assert_int_equal(crypt_take(a.crypt, "r1", 9, 2, 0), PACKET_DONE);
    assert_int_equal(crypt_take(a.crypt, "r2", 9, 3, 0), PACKET_DONE);
    done(&a);
}


/* At each step of a rotation, whichever of two members takes it first, both
   accept each other's datagrams. */
static void
keys_rotate_while_both_talk(void **state)
{
    int      i, j;
    size_t   n;
    char     error[KEYRING_ERROR_BYTES];
    char     id_a[KEYRING_ID_TEXT_BYTES], id_b[KEYRING_ID_TEXT_BYTES];
    party_t  parties[2];
    uint8_t  data[PACKET_MAX_BYTES];

    init(&parties[0], KEY_A "\n", "c");
    init(&parties[1], KEY_A "\n", "c");
    keyring_id_text(parties[0].ring, 0, id_a);

    for (i = 0; i < 6; i++) {
        switch (i / 2) {
        case 0:
            assert_int_equal(keyring_add(parties[i % 2].ring, KEY_B, error),
                             KEYRING_DONE);
            keyring_id_text(parties[i % 2].ring, 1, id_b);
            break;
        case 1:
            assert_int_equal(keyring_use(parties[i % 2].ring, id_b, error),
                             KEYRING_DONE);
            break;
        default:
            assert_int_equal(keyring_remove(parties[i % 2].ring, id_a,
                                            error), KEYRING_DONE);
            break;
        }

        for (j = 0; j < 2; j++) {
            n = seal(&parties[j], data);
            assert_opens(&parties[1 - j], data, n, PACKET_DONE);
        }
    }

    done(&parties[1]);
    done(&parties[0]);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(sealed_is_opened_and_says_nothing_to_others),
        cmocka_unit_test(nonces_of_two_starts_differ),
        cmocka_unit_test(every_flipped_bit_is_found),
        cmocka_unit_test(truncated_and_lengthened_ones_are_dropped),
        cmocka_unit_test(plain_ones_and_other_keys_are_dropped),
        cmocka_unit_test(header_is_under_the_seal),
        cmocka_unit_test(longest_plain_datagram_has_room_for_the_seal),
        cmocka_unit_test(second_time_is_a_replay),
        cmocka_unit_test(keys_rotate_while_both_talk),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
