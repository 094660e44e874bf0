
/*
 * Text is sent when it is whole, with the ids of its tokens.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "replica/engine/llama/hold.h"


typedef struct {
    hold_t    hold;
    char      text[4096];       /* "[...]" for each text that was sent */
    uint32_t  next;             /* id of the next token */
    uint32_t  sent;             /* ids that were sent */
} scene_t;


static void
go(scene_t *s, int is_last)
{
    size_t  i;

    assert_int_equal(hold_take(&s->hold, is_last), 0);

    for (i = 0; i < s->hold.nout; i++) {
        assert_int_equal(s->hold.tokens[i].id, s->sent++);
    }

    if (s->hold.nout > 0 || s->hold.text_len > 0) {
        sprintf(s->text + strlen(s->text), "[%s]", s->hold.text);
    }

    hold_sent(&s->hold);
}


static void
say(scene_t *s, const char *piece)
{
    char               *copy;
    sample_logprobs_t   none;

    memset(&none, 0, sizeof(none));
    copy = strdup(piece);
    assert_int_equal(hold_add(&s->hold, s->next++, copy, strlen(copy), &none),
                     0);
    free(copy);
    go(s, 0);
}


static void
stop_at(scene_t *s, const char *stop)
{
    s->hold.stops[s->hold.nstops++] = strdup(stop);
}


static void
test_whole_tokens_go_at_once(void **state)
{
    scene_t  s = { 0 };

    say(&s, "Hello");
    say(&s, " world");
    assert_string_equal(s.text, "[Hello][ world]");
    go(&s, 1);
    assert_string_equal(s.text, "[Hello][ world]");
    assert_int_equal(s.sent, 2);
    hold_done(&s.hold);
}


static void
test_a_character_of_several_tokens_goes_whole(void **state)
{
    scene_t  s = { 0 };

    say(&s, "a\xe2");
    say(&s, "\x98");
    assert_string_equal(s.text, "");
    assert_int_equal(s.sent, 0);
    say(&s, "\x82");
    assert_string_equal(s.text, "[a\xe2\x98\x82]");
    assert_int_equal(s.sent, 3);
    hold_done(&s.hold);
}


static void
test_bytes_that_are_no_characters_are_replaced(void **state)
{
    scene_t  s = { 0 };

    say(&s, "\x80");                /* never begins a character */
    say(&s, "\xe2");
    say(&s, "(");                   /* does not continue one */
    say(&s, "\xed\xa0\x80");        /* a surrogate */
    say(&s, "\xf0\x9f");            /* cut by the end */
    assert_string_equal(s.text, "[\ufffd][\ufffd(][\ufffd\ufffd\ufffd]");
    go(&s, 1);
    assert_string_equal(s.text, "[\ufffd][\ufffd(][\ufffd\ufffd\ufffd]"
                                "[\ufffd\ufffd]");
    assert_int_equal(s.sent, s.next);
    hold_done(&s.hold);
}


static void
test_what_may_become_a_stop_string_is_held(void **state)
{
    scene_t  s = { 0 };

    stop_at(&s, "###");
    say(&s, "a");
    say(&s, "b#");
    say(&s, "#");
    assert_string_equal(s.text, "[a]");
    say(&s, "c");
    assert_string_equal(s.text, "[a][b##c]");
    assert_int_equal(s.sent, 4);
    hold_done(&s.hold);
}


static void
test_the_text_ends_before_a_stop_string(void **state)
{
    scene_t  s = { 0 };

    stop_at(&s, "END");
    stop_at(&s, "xE");
    say(&s, "ab");
    say(&s, "xENDcd");          /* the second stop begins before the first */
    assert_true(s.hold.is_stopped);
    assert_string_equal(s.text, "[ab][]");
    assert_int_equal(s.sent, 2);
    hold_done(&s.hold);
}


static void
test_a_stop_string_within_a_token_cuts_it(void **state)
{
    scene_t  s = { 0 };

    stop_at(&s, "\n\n");
    say(&s, "one\n");
    say(&s, "\ntwo");
    assert_true(s.hold.is_stopped);
    assert_string_equal(s.text, "[one]");
    assert_int_equal(s.sent, 2);
    hold_done(&s.hold);
}


static void
test_the_end_lets_a_half_stop_string_go(void **state)
{
    scene_t  s = { 0 };

    stop_at(&s, "###");
    say(&s, "a##");
    assert_string_equal(s.text, "");
    go(&s, 1);
    assert_false(s.hold.is_stopped);
    assert_string_equal(s.text, "[a##]");
    hold_done(&s.hold);
}


static void
test_tokens_without_text_go_with_the_next(void **state)
{
    scene_t  s = { 0 };

    say(&s, "");
    say(&s, "");
    assert_string_equal(s.text, "");
    say(&s, "a");
    assert_string_equal(s.text, "[a]");
    assert_int_equal(s.sent, 3);
    say(&s, "");
    go(&s, 1);
    assert_int_equal(s.sent, 4);
    hold_done(&s.hold);
}


/* The same bytes give the same text, however tokens cut them. */
static void
test_text_does_not_depend_on_the_cuts(void **state)
{
    char          piece[2] = { 0 };
    size_t        i, len;
    scene_t       s = { 0 };
    static char   text[] = "h\xc3\xa4 \xf0\x9f\x9c\x81 ## \xff end";

    stop_at(&s, "###");

    for (i = 0; i < sizeof(text) - 1; i++) {
        piece[0] = text[i];
        say(&s, piece);
    }

    go(&s, 1);

    for (len = 0, i = 0; s.text[i] != '\0'; i++) {
        if (s.text[i] != '[' && s.text[i] != ']') {
            s.text[len++] = s.text[i];
        }
    }

    s.text[len] = '\0';
    assert_string_equal(s.text, "h\xc3\xa4 \xf0\x9f\x9c\x81 ## \ufffd end");
    assert_int_equal(s.sent, s.next);
    hold_done(&s.hold);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(test_whole_tokens_go_at_once),
        cmocka_unit_test(test_a_character_of_several_tokens_goes_whole),
        cmocka_unit_test(test_bytes_that_are_no_characters_are_replaced),
        cmocka_unit_test(test_what_may_become_a_stop_string_is_held),
        cmocka_unit_test(test_the_text_ends_before_a_stop_string),
        cmocka_unit_test(test_a_stop_string_within_a_token_cuts_it),
        cmocka_unit_test(test_the_end_lets_a_half_stop_string_go),
        cmocka_unit_test(test_tokens_without_text_go_with_the_next),
        cmocka_unit_test(test_text_does_not_depend_on_the_cuts),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
