
/* Usage records are written whole, and are the same when read: record.h. */

#include "proto/date.h"
#include "proto/usage/sums.h"
#include "t/unit/proto/usage/usage_scene.h"


static int
reads(const char *text)
{
    const char            *why = NULL;
    llmgw_usage_t          got;
    llmgw_usage_source_t   from;

    return llmgw_usage_read(text, strlen(text), &from, &got, &why) == 0;
}


/* The line, with one piece of it replaced. */
static const char *
with(const char *piece, const char *other)
{
    const char   *at;
    static char   text[2 * LLMGW_USAGE_LINE_BYTES];

    at = strstr(line, piece);
    assert_non_null(at);
    snprintf(text, sizeof(text), "%.*s%s%s", (int) (at - line), line, other,
             at + strlen(piece));
    text[strlen(text) - 1] = '\0';

    return text;
}


static void
record_is_a_line(void **state)
{
    char  out[LLMGW_USAGE_LINE_BYTES];

    assert_int_equal(llmgw_usage_write(out, &source, &usage),
                     sizeof(line) - 1);
    assert_memory_equal(out, line, sizeof(line) - 1);
}


static void
record_is_read_as_it_was(void **state)
{
    const char            *why;
    llmgw_usage_t          got;
    llmgw_usage_source_t   from;

    assert_int_equal(llmgw_usage_read(line, sizeof(line) - 2, &from, &got,
                                      &why), 0);
    assert_string_equal(from.gateway, source.gateway);
    assert_string_equal(from.birth, source.birth);
    assert_memory_equal(&got, &usage, sizeof(usage));
}


/* Fills each text with this character, to its greatest length. */
static void
fill(llmgw_usage_source_t *from, llmgw_usage_t *full, const char *character)
{
    size_t   i, k;
    struct { char *text; size_t size; } fields[] = {
        { from->gateway, sizeof(from->gateway) },
        { full->key, sizeof(full->key) },
        { full->tenant, sizeof(full->tenant) },
        { full->slo_class, sizeof(full->slo_class) },
        { full->model, sizeof(full->model) },
        { full->served, sizeof(full->served) },
        { full->outcome, sizeof(full->outcome) },
        { full->request_id, sizeof(full->request_id) },
    };

    memset(full, 0xff, sizeof(*full));
    full->settled_by = LLMGW_SETTLED_BY_WORKER_DIED;
    strcpy(from->birth, BIRTH);

    for (i = 0; i < sizeof(fields) / sizeof(fields[0]); i++) {
        for (k = 0; k + strlen(character) < fields[i].size;
             k += strlen(character))
        {
            memcpy(fields[i].text + k, character, strlen(character));
        }

        fields[i].text[k] = '\0';
    }

    for (k = 0; k < sizeof(full->replicas) - 1; k++) {
        full->replicas[k] = k % 2 ? ' ' : '"';
    }

    full->replicas[k] = '\0';
}


static void
longest_record_fits_a_line(void **state)
{
    char                   out[LLMGW_USAGE_LINE_BYTES];
    size_t                 i, len;
    const char            *why;
    llmgw_usage_t          full, got;
    llmgw_usage_source_t   from;
    static const char     *characters[] = { "a", "\"", "\\", "\x01", "\xff",
                                            "\xc2\x9b", "\xe2\x82\xac" };

    for (i = 0; i < 7; i++) {
        fill(&from, &full, characters[i]);
        len = llmgw_usage_write(out, &from, &full);
        assert_in_range(len, 1, LLMGW_USAGE_LINE_BYTES);
        assert_int_equal(out[len - 1], '\n');
        assert_null(memchr(out, '\n', len - 1));
        assert_int_equal(llmgw_usage_read(out, len - 1, &from, &got, &why), 0);
        assert_int_equal(got.n, LLMGW_USAGE_NUMBER_MAX);
        assert_int_equal(got.took_ms, LLMGW_USAGE_NUMBER_MAX);

        if (i == 1 || i == 2 || i == 6) {
            assert_string_equal(got.model, full.model);
        }
    }
}


static void
field_that_was_cut_off_has_an_end(void **state)
{
    char           out[LLMGW_USAGE_LINE_BYTES];
    size_t         len;
    llmgw_usage_t  cut = usage;

    memset(cut.served, 'x', sizeof(cut.served));
    memset(cut.replicas, 'y', sizeof(cut.replicas));
    len = llmgw_usage_write(out, &source, &cut);
    out[len - 1] = '\0';
    assert_true(reads(out));
}


static void
other_lines_are_no_records(void **state)
{
    assert_true(reads(with("\"n\":42", "\"n\":42")));
    assert_true(reads(with("\"n\":42", "\"n\":42,\"later\":{\"n\":1}")));

    assert_false(reads(""));
    assert_false(reads("[]"));
    assert_false(reads("{}"));
    assert_false(reads(with("}", "")));
    assert_false(reads(with("\"n\":42", "\"n\":42,\"n\":42")));
    assert_false(reads(with("\"n\":42,", "")));
    assert_false(reads(with("\"wasted_tokens\":7,", "")));
    assert_false(reads(with("\"n\":42", "\"n\":0")));
    assert_false(reads(with("\"n\":42", "\"n\":-1")));
    assert_false(reads(with("\"n\":42", "\"n\":4.2")));
    assert_false(reads(with("\"n\":42", "\"n\":9007199254740993")));
    assert_false(reads(with("\"n\":42", "\"n\":\"42\"")));
    assert_false(reads(with(BIRTH, "0199a")));
    assert_false(reads(with(BIRTH, "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx")));
    assert_false(reads(with("\"alice\"", "7")));
    assert_false(reads(with("alice", "a\\u0000b")));
    assert_false(reads(with("alice", "a\\u001b[2Jb")));
    assert_false(reads(with("1.250", "1.25")));
    assert_false(reads(with("1.250", "1e3")));
    assert_false(reads(with("1.250", "-1.250")));
    assert_false(reads(with("\"r2\"", "\"r 2\"")));
    assert_false(reads(with("\"r2\"", "2")));
    assert_false(reads(with("[\"r1\",\"r2\"]", "{}")));
    assert_false(reads(with("count", "guess")));
    assert_false(reads(with("2026-11-28", "2026-11-31")));
    assert_false(reads(with("2026-11-28", "2026-13-28")));
}


static void
text_that_is_too_long_is_no_record(void **state)
{
    char  text[LLMGW_KEY_NAME_BYTES + 1];

    memset(text, 'a', sizeof(text));
    text[LLMGW_KEY_NAME_BYTES - 1] = '\0';
    assert_true(reads(with("alice", text)));
    text[LLMGW_KEY_NAME_BYTES - 1] = 'a';
    text[LLMGW_KEY_NAME_BYTES] = '\0';
    assert_false(reads(with("alice", text)));
}


static void
replicas_are_listed_while_they_fit(void **state)
{
    char           id[101];
    llmgw_usage_t  asked = { .n = 1 };

    llmgw_usage_replica(&asked, "r1", 2);
    llmgw_usage_replica(&asked, "r1", 2);
    llmgw_usage_replica(&asked, "r2", 2);
    llmgw_usage_replica(&asked, "r1", 2);
    assert_string_equal(asked.replicas, "r1 r2 r1");

    memset(id, 'x', sizeof(id));
    llmgw_usage_replica(&asked, id, 100);
    id[0] = 'y';
    llmgw_usage_replica(&asked, id, 100);
    llmgw_usage_replica(&asked, "long-one-which-is-not-listed-as-it-is-too-"
                        "long", 46);
    assert_int_equal(strlen(asked.replicas), 8 + 2 * 101);
    llmgw_usage_replica(&asked, "z", 1);
    assert_int_equal(strlen(asked.replicas), 8 + 2 * 101 + 2);
}


static void
text_is_cut_at_a_character(void **state)
{
    char  field[5];

    llmgw_usage_text(field, sizeof(field), "ab\xe2\x82\xac", 5);
    assert_string_equal(field, "ab");
    llmgw_usage_text(field, sizeof(field), "a\xe2\x82\xac", 4);
    assert_string_equal(field, "a\xe2\x82\xac");
    llmgw_usage_text(field, sizeof(field), NULL, 0);
    assert_string_equal(field, "");
}


static void
sums_know_the_last_period_alone(void **state)
{
    llmgw_sums_t  sums = { { 0 }, { 0 } };

    llmgw_sums_use(&sums, usage.ended_ms, 5);
    llmgw_sums_use(&sums, usage.ended_ms, 2);
    llmgw_sums_use(&sums, usage.ended_ms - LLMGW_DAY_MS, 100);
    assert_int_equal(sums.used[LLMGW_PERIOD_DAY], 7);
    assert_int_equal(sums.used[LLMGW_PERIOD_MONTH], 107);

    llmgw_sums_roll(&sums, usage.ended_ms - 40 * LLMGW_DAY_MS);
    assert_int_equal(sums.used[LLMGW_PERIOD_DAY], 7);
    llmgw_sums_roll(&sums, usage.ended_ms + LLMGW_DAY_MS);
    assert_int_equal(sums.used[LLMGW_PERIOD_DAY], 0);
    assert_int_equal(sums.used[LLMGW_PERIOD_MONTH], 107);
    llmgw_sums_roll(&sums, usage.ended_ms + 3 * LLMGW_DAY_MS);
    assert_int_equal(sums.used[LLMGW_PERIOD_MONTH], 0);
}


static void
later_zone_has_a_greater_birth(void **state)
{
    char           first[LLMGW_USAGE_BIRTH_BYTES];
    char           second[LLMGW_USAGE_BIRTH_BYTES];
    const uint8_t  chance[LLMGW_USAGE_CHANCE_BYTES] = { 0xab, 1 };
    const uint8_t  less[LLMGW_USAGE_CHANCE_BYTES] = { 0 };

    llmgw_usage_birth(first, 0x199a0000000, chance, "");
    assert_string_equal(first, "0199a0000000ab010000000000000000");

    llmgw_usage_birth(second, 0x199a0000001, less, first);
    assert_string_equal(second, "0199a000000100000000000000000000");
    llmgw_usage_birth(second, 0x10000000, less, first);     /* set back */
    assert_true(strcmp(second, first) > 0);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(record_is_a_line),
        cmocka_unit_test(record_is_read_as_it_was),
        cmocka_unit_test(longest_record_fits_a_line),
        cmocka_unit_test(field_that_was_cut_off_has_an_end),
        cmocka_unit_test(other_lines_are_no_records),
        cmocka_unit_test(text_that_is_too_long_is_no_record),
        cmocka_unit_test(replicas_are_listed_while_they_fit),
        cmocka_unit_test(text_is_cut_at_a_character),
        cmocka_unit_test(sums_know_the_last_period_alone),
        cmocka_unit_test(later_zone_has_a_greater_birth)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
