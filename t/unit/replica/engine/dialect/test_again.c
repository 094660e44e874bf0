
/*
 * Events that differ from the last one in text and ids alone take a short cut,
 * which gives what walking each event gives.
 */

#include "replica/engine/dialect/dialect_inner.h"
#include "t/unit/replica/engine/dialect/played_vllm.h"


/* Has no text, and is like no other event: the next one is walked. */
#define OTHER  "{\"choices\":[]}"

#define TEXT(text, ids)  CHUNK(DELTA("{\"content\":" text "}", "null", ids), "")

#define BEHIND(text, ids) \
    CHUNK("{\"token_ids\":" ids ",\"index\":0,\"delta\":{\"content\":" text \
          "}}", "")

#define USAGE \
    ",\"usage\":{\"prompt_tokens\":3,\"completion_tokens\":2}"

#define PLAIN_CHAT \
    "{\"model\":\"m\",\"messages\":[{\"role\":\"user\",\"content\":\"hi\"}]," \
    "\"stream\":true"


static void
began(played_t *p, const char *dialect, const char *body, unsigned want)
{
    played_init(p);
    played_openai(p, LLMGATEWAY__API__API_CHAT, body);
    p->request.want = want;
    p->openai.features = strstr(body, "\"n\":") == NULL
                         ? 0 : LLMGATEWAY__FEATURE__FEATURE_CHOICES;
    assert_int_equal(played_start(p, dialect), DIALECT_ASK);
    played_stream(p);
}


/* Plays the events with the short cut and without it; NULL ends them. */
static void
is_the_same_of(const char *dialect, const char *body, unsigned want,
    const char *const *events, unsigned walked)
{
    unsigned      n;
    played_t      p, control;
    dialect_do_t  next, wanted;

    began(&p, dialect, body, want);
    began(&control, dialect, body, want);

    for (n = 0; *events != NULL; events++) {
        assert_int_equal(played_event(&control, OTHER), DIALECT_MORE);
        assert_int_equal(control.call->again.nspans, 0);
        wanted = played_event(&control, *events);

        p.call->again.is_odd = 2;       /* a walk sets it to 0 first */
        next = played_event(&p, *events);
        n += p.call->again.is_odd != 2;
        assert_int_equal(next, wanted);
        played_said(&p, control.said);
        control.said[0] = '\0';

        if (next != DIALECT_MORE) {
            assert_string_equal(dialect_call_why(p.call),
                                dialect_call_why(control.call));
            break;
        }
    }

    assert_int_equal(n, walked);
    assert_int_equal(p.call->tokens, control.call->tokens);
    played_end(&p);
    played_end(&control);
}


static void
is_the_same(const char *body, unsigned want, const char *const *events,
    unsigned walked)
{
    is_the_same_of("vllm", body, want, events, walked);
}


static void
texts_of_all_lengths(void **state)
{
    static const char *const  events[] = {
        ROLE, TEXT("\"a\"", "[7]"), TEXT("\"b\"", "[8]"),
        TEXT("\" a long one, longer than what was there before it\"", "[9]"),
        TEXT("\"c\"", "[2147483647]"), TEXT("\"\\u00e9\\n\\\"\\\\\"", "[1,2]"),
        TEXT("\"\xc3\xa9\"", "[ 3 , 4 ]"), TEXT("\"]\"", "[5]"),
        TEXT("\"d\"", "[]"), TEXT("\"\\\"},\\\"x\\\":[\"", "[6]"),
        TEXT("\"\\ud800\"", "[6]"), NULL
    };

    /* those with the role and the choice's first text, and the next of each */
    is_the_same(PLAYED_VLLM_CHAT, WANT_CHUNKS | WANT_IDS, events, 3);
    is_the_same(PLAYED_VLLM_CHAT, WANT_CHUNKS, events, 3);
    is_the_same(PLAYED_VLLM_CHAT, WANT_CHUNKS | WANT_IDS | WANT_TEXT, events,
                3);
}


static void
ids_before_their_text(void **state)
{
    static const char *const  events[] = {
        ROLE, BEHIND("\"a\"", "[7]"), BEHIND("\"b\"", "[8]"),
        BEHIND("\"ccc\"", "[9,10]"), BEHIND("\"\"", "[11]"),
        BEHIND("\"d\"", "null"), BEHIND("\"e\"", "[12]"), NULL
    };

    is_the_same(PLAYED_VLLM_CHAT, WANT_CHUNKS | WANT_IDS, events, 5);
}


static void
what_is_more_than_text(void **state)
{
    static const char *const  events[] = {
        ROLE, TEXT("\"a\"", "[7]"), TEXT("\"b\"", "[8]"),
        CHUNK(DELTA("{\"content\":\"\"}", "null", "[9]"), ""),
        TEXT("\"c\"", "[10]"), TEXT("\"d\"", "[10]"),
        CHUNK(DELTA("{\"content\":\"e\",\"reasoning\":\"t\"}", "null", "[7]"),
              ""),
        CHUNK(DELTA("{\"content\":\"f\",\"reasoning\":\"t\"}", "null", "[7]"),
              ""),
        TEXT("\"g\"", "[7]"), TEXT("\"h\"", "[7]"),
        CHUNK(DELTA("{\"content\":\"i\"}", "\"length\"", "[2]"), ""),
        CHUNK("", ",\"usage\":{\"prompt_tokens\":3,\"total_tokens\":7,"
              "\"completion_tokens\":4}"),
        "[DONE]", NULL
    };

    is_the_same(PLAYED_VLLM_CHAT, WANT_CHUNKS | WANT_IDS, events, 10);
}


static void
several_choices(void **state)
{
    static const char *const  events[] = {
        TEXT("\"a\"", "[7]"), TEXT("\"b\"", "[8]"),
        CHUNK("{\"index\":1,\"delta\":{\"content\":\"x\"}}", ""),
        CHUNK("{\"index\":1,\"delta\":{\"content\":\"y\"}}", ""),
        CHUNK("{\"index\":0,\"delta\":{\"content\":\"c\"}},"
              "{\"index\":1,\"delta\":{\"content\":\"z\"}}", ""),
        CHUNK("{\"index\":0,\"delta\":{\"content\":\"d\"}},"
              "{\"index\":1,\"delta\":{\"content\":\"zz\"}}", ""), NULL
    };

    is_the_same(PLAIN_CHAT ",\"n\":2}", WANT_CHUNKS, events, 6);
}


static void
ids_that_the_client_reads(void **state)
{
    static const char *const  events[] = {
        ROLE, TEXT("\"a\"", "[7]"), TEXT("\"b\"", "[8]"),
        TEXT("\"c\"", "[9]"), NULL
    };

    is_the_same(PLAIN_CHAT ",\"return_token_ids\":true}",
                WANT_CHUNKS | WANT_IDS, events, 4);
}


static void
is_refused_alike(const char *last, unsigned walked)
{
    const char *const  events[] = {
        ROLE, TEXT("\"a\"", "[7]"), TEXT("\"b\"", "[8]"), last, NULL
    };

    is_the_same(PLAYED_VLLM_CHAT, WANT_CHUNKS | WANT_IDS, events, walked);
}


static void
what_is_no_event(void **state)
{
    is_refused_alike(TEXT("\"\xff\"", "[7]"), 3);
    is_refused_alike(TEXT("\"\xc3\"", "[7]"), 3);
    is_refused_alike(TEXT("\"a\nb\"", "[7]"), 3);
    is_refused_alike(TEXT("\"\\x\"", "[7]"), 3);
    is_refused_alike(TEXT("\"a\"", "[7") "]}", 3);
    is_refused_alike(TEXT("\"a\"", "[7]") "x", 3);
    is_refused_alike(TEXT("\"a\"", "[7,]"), 3);
    is_refused_alike(TEXT("\"a\"", "[-1]"), 3);
    is_refused_alike(TEXT("\"a\"", "[\"7\"]"), 3);
    is_refused_alike(TEXT("\"a\"", "[4294967296]"), 3);
    is_refused_alike(TEXT("\"a", "[7]"), 3);
    is_refused_alike("{\"id\":\"chatcmpl-x\"", 3);
    is_refused_alike("{", 3);
}


static void
two_texts_in_an_event(void **state)
{
    static const char *const  events[] = {
        ROLE, TEXT("\"a\"", "[7]"),
        CHUNK(DELTA("{\"content\":\"b\",\"content\":\"c\"}", "null", "[7]"),
              ""),
        CHUNK(DELTA("{\"content\":\"d\",\"content\":\"e\"}", "null", "[7]"),
              ""), NULL
    };

    is_the_same(PLAYED_VLLM_CHAT, WANT_CHUNKS | WANT_IDS, events, 4);
}


/* llama.cpp counts each choice by itself: the last one brings the sum. */
static void
usage_of_one_choice_of_several(void **state)
{
    static const char *const  events[] = {
        CHUNK("{\"index\":0,\"delta\":{\"content\":\"a\"}}", ""),
        CHUNK("{\"index\":0,\"delta\":{\"content\":\"b\"}}", USAGE),
        CHUNK("{\"index\":0,\"delta\":{\"content\":\"c\"}}", USAGE),
        CHUNK("{\"index\":0,\"delta\":{\"content\":\"d\"}}", USAGE), NULL
    };

    is_the_same_of("llamacpp", PLAIN_CHAT ",\"n\":3}", WANT_CHUNKS, events, 4);
}


int
main(void)
{
    static const struct CMUnitTest  tests[] = {
        cmocka_unit_test(texts_of_all_lengths),
        cmocka_unit_test(ids_before_their_text),
        cmocka_unit_test(what_is_more_than_text),
        cmocka_unit_test(several_choices),
        cmocka_unit_test(ids_that_the_client_reads),
        cmocka_unit_test(what_is_no_event),
        cmocka_unit_test(two_texts_in_an_event),
        cmocka_unit_test(usage_of_one_choice_of_several)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
