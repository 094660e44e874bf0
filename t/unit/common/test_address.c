
/* HOST:PORT: what is valid, what is not, and how it is written back. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "common/address.h"


static address_t
parsed(const char *text)
{
    address_t  a;

    assert_int_equal(address_parse(text, &a), 0);

    return a;
}


static void
numeric_addresses_come_back_as_written(void **state)
{
    char       buf[ADDRESS_TEXT_BYTES];
    size_t     i;
    address_t  a;

    static const char *const  good[] = {
        "127.0.0.1:80", "0.0.0.0:1", "10.1.2.3:65535", "[::]:8080", "[::1]:80",
        "[2001:db8::7]:50051", "[::ffff:127.0.0.1]:80"
    };

    for (i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
        a = parsed(good[i]);
        address_format(&a, buf);
        assert_string_equal(buf, good[i]);
        assert_true(address_is_valid(good[i]));
    }
}


static void
broken_texts_are_no_addresses(void **state)
{
    size_t     i;
    address_t  a;

    static const char *const  bad[] = {
        "", ":", ":80", "127.0.0.1", "127.0.0.1:", "127.0.0.1:0",
        "127.0.0.1:65536", "127.0.0.1:80x", "127.0.0.1: 80", "127.0.0.1:-1",
        "127.0.0.1:99999999999", "::1:80", "[::1]", "[::1]80", "[::1:80",
        "[]:80", "[127.0.0.1]:80", "[::g]:80", "a b:80", "a\n:80", "-x:80",
        "a:b:80"
    };

    for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        assert_false(address_is_valid(bad[i]));
        assert_int_equal(address_parse(bad[i], &a), -1);
    }
}


/* Like inet_pton(): no octet above 255, none with a leading zero. */
static void
ipv4_is_four_octets_and_a_port(void **state)
{
    char       buf[ADDRESS_TEXT_BYTES];
    size_t     i;
    address_t  a;

    static const char *const  bad[] = {
        "256.0.0.1:80", "1.2.3.1000:80", "01.2.3.4:80", "1.2.3.00:80",
        "1.2.3:80", "1.2.3.4.5:80", "1..3.4:80", "1.2.3.4"
    };

    for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        assert_int_equal(address_parse(bad[i], &a), -1);
    }

    a = parsed("255.255.255.255:65535");
    address_format(&a, buf);
    assert_string_equal(buf, "255.255.255.255:65535");

    a = parsed("1.20.100.0:00080");
    address_format(&a, buf);
    assert_string_equal(buf, "1.20.100.0:80");
}


static void
a_name_is_valid_up_to_its_longest_and_is_not_parsed(void **state)
{
    char       text[512];
    address_t  a;

    assert_true(address_is_valid("replica-1.example_x.org:80"));
    assert_int_equal(address_parse("replica-1.example.org:80", &a), -1);
    assert_int_equal(address_parse("127.1:80", &a), -1);

    memset(text, 'a', sizeof(text));
    strcpy(text + 255, ":80");
    assert_true(address_is_valid(text));

    memset(text, 'a', sizeof(text));
    strcpy(text + 256, ":80");
    assert_false(address_is_valid(text));
}


static void
names_resolve_or_say_why_not(void **state)
{
    char       error[128];
    address_t  a;

    assert_int_equal(address_resolve("localhost:81", &a, error), 0);
    assert_true(address_is_loopback(&a));
    assert_int_equal(address_port(&a), 81);

    assert_int_equal(address_resolve("[::1]:82", &a, error), 0);
    assert_int_equal(address_port(&a), 82);

    assert_int_equal(address_resolve("nobody.invalid:80", &a, error), -1);
    assert_non_null(strstr(error, "nobody.invalid"));

    assert_int_equal(address_resolve("nonsense", &a, error), -1);
    assert_non_null(strstr(error, "\"nonsense\" is no HOST:PORT"));
}


static void
wildcards_and_loopback_are_told_apart(void **state)
{
    size_t     i;
    address_t  a;

    static const struct {
        const char  *text;
        int          wildcard;
        int          loopback;
    } cases[] = {
        { "0.0.0.0:80", 1, 0 }, { "[::]:80", 1, 0 },
        { "127.0.0.1:80", 0, 1 }, { "127.200.3.4:80", 0, 1 },
        { "[::1]:80", 0, 1 }, { "[::ffff:127.0.0.1]:80", 0, 1 },
        { "[::ffff:10.0.0.1]:80", 0, 0 }, { "10.0.0.1:80", 0, 0 },
        { "[2001:db8::1]:80", 0, 0 }
    };

    for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        a = parsed(cases[i].text);
        assert_int_equal(address_is_wildcard(&a), cases[i].wildcard);
        assert_int_equal(address_is_loopback(&a), cases[i].loopback);
    }
}


static void
equality_is_family_host_and_port(void **state)
{
    address_t  a, b;

    a = parsed("127.0.0.1:80");
    b = parsed("127.0.0.1:81");
    assert_false(address_equal(&a, &b));

    address_set_port(&b, 80);
    assert_true(address_equal(&a, &b));

    b = parsed("127.0.0.2:80");
    assert_false(address_equal(&a, &b));

    a = parsed("[::1]:80");
    b = parsed("[::1]:80");
    assert_true(address_equal(&a, &b));

    b = parsed("[::2]:80");
    assert_false(address_equal(&a, &b));

    b = parsed("127.0.0.1:80");
    assert_false(address_equal(&a, &b));
}


static void
port_is_served_while_somebody_listens(void **state)
{
    int        fd;
    address_t  address;

    address_parse("127.0.0.1:1", &address);
    address_set_port(&address, 0);
    fd = socket(AF_INET, SOCK_STREAM, 0);
    assert_int_equal(bind(fd, (struct sockaddr *) &address.ss, address.len),
                     0);
    assert_int_equal(getsockname(fd, (struct sockaddr *) &address.ss,
                                 &address.len), 0);
    assert_false(address_is_served(&address));

    assert_int_equal(listen(fd, 1), 0);
    assert_true(address_is_served(&address));

    close(fd);
    assert_false(address_is_served(&address));
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(numeric_addresses_come_back_as_written),
        cmocka_unit_test(broken_texts_are_no_addresses),
        cmocka_unit_test(ipv4_is_four_octets_and_a_port),
        cmocka_unit_test(a_name_is_valid_up_to_its_longest_and_is_not_parsed),
        cmocka_unit_test(names_resolve_or_say_why_not),
        cmocka_unit_test(wildcards_and_loopback_are_told_apart),
        cmocka_unit_test(equality_is_family_host_and_port),
        cmocka_unit_test(port_is_served_while_somebody_listens),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
