
/* What a word of the command line stands for. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "up/fleet/source.h"


static void
url_is_an_engine(void **state)
{
    size_t    i;
    char      error[SOURCE_ERROR_BYTES];
    source_t  source;

    static const char *const  words[] = {
        "http://gpu1:8000", "gpu1:8000", "http://gpu1:8000/",
        "http://gpu1:8000/v1", "gpu1:8000/v1/"
    };

    for (i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        assert_int_equal(source_read(&source, words[i], error), 0);
        assert_int_equal(source.kind, SOURCE_HTTP);
        assert_string_equal(source.target, "http://gpu1:8000");
        assert_string_equal(source.text, source.target);
    }
}


static void
name_has_a_port(void **state)
{
    char      error[SOURCE_ERROR_BYTES];
    source_t  source;

    assert_int_equal(source_read(&source, "dns:gpu.example:8000", error), 0);
    assert_int_equal(source.kind, SOURCE_DNS);
    assert_string_equal(source.host, "gpu.example");
    assert_int_equal(source.port, 8000);

    assert_int_equal(source_read(&source, "dns:gpu.example", error), -1);
    assert_int_equal(source_read(&source, "dns::8000", error), -1);
    assert_int_equal(source_read(&source, "dns:gpu:", error), -1);
    assert_int_equal(source_read(&source, "dns:gpu:65536", error), -1);
    assert_int_equal(source_read(&source, "dns:gpu:0", error), -1);
    assert_int_equal(source_read(&source, "dns:gpu:80x", error), -1);
    assert_int_equal(source_read(&source, "dns:gpu:-1", error), -1);
}


static void
command_says_where_it_listens(void **state)
{
    char      error[SOURCE_ERROR_BYTES];
    source_t  source;

    assert_int_equal(source_read(&source, "exec:vllm serve m --port {port}",
                                 error), 0);
    assert_int_equal(source.kind, SOURCE_EXEC);
    assert_string_equal(source.target, "vllm serve m --port {port}");

    assert_int_equal(source_read(&source, "exec:sglang --uds {socket}",
                                 error), 0);
    assert_int_equal(source_read(&source, "exec:vllm serve m --port 8000",
                                 error), -1);
    assert_int_equal(source_read(&source, "exec:vllm {port} # a comment",
                                 error), -1);
    assert_int_equal(source_read(&source, "exec:a {port}\nb", error), -1);
}


static void
longest_word_is_taken_and_a_longer_one_is_not(void **state)
{
    char      word[SOURCE_BYTES + 1], error[SOURCE_ERROR_BYTES];
    source_t  source;

    memset(word, 'x', sizeof(word));
    memcpy(word, "exec:{port}", 11);
    word[SOURCE_BYTES - 1] = '\0';
    assert_int_equal(source_read(&source, word, error), 0);

    word[SOURCE_BYTES - 1] = 'x';
    word[SOURCE_BYTES] = '\0';
    assert_int_equal(source_read(&source, word, error), -1);
}


static void
ids_are_readable_and_valid(void **state)
{
    size_t  i;
    char    id[SOURCE_ID_BYTES];

    static const char *const  ids[][2] = {
        { "http://gpu1:8000", "gpu1-8000" },
        { "https://api.example.org", "api.example.org" },
        { "http://[fd00::1]:8000", "fd00-1-8000" },
        { "http://gpu1:8000/a/b", "gpu1-8000" },
        { "vllm serve Qwen/Qwen3-8B", "vllm" },
        { "/opt/bin/llama-server -m x", "llama-server" },
        { "sim:2", "sim-2" },
        { "./", "engine" },
        { "http://a-name-that-is-longer-than-an-id-may-be.example:8000",
          "a-name-that-is-longer-than-an-id-may-be" }
    };

    for (i = 0; i < sizeof(ids) / sizeof(ids[0]); i++) {
        source_id(ids[i][0], id);
        assert_string_equal(id, ids[i][1]);
    }
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(url_is_an_engine),
        cmocka_unit_test(name_has_a_port),
        cmocka_unit_test(command_says_where_it_listens),
        cmocka_unit_test(longest_word_is_taken_and_a_longer_one_is_not),
        cmocka_unit_test(ids_are_readable_and_valid)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
