
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "replica/engine/llama/parts.h"


static void
test_whole_models_are_one_part(void **state)
{
    size_t        i, n;
    char        **parts;
    static const char *const  files[] = {
        "", "model.gguf", "/models/x-00001-of-00001.gguf",
        "x-00002-of-00003.gguf",        /* not the first */
        "x-00001-of-00003.bin", "x-00001-of-00003.gguf.tmp",
        "x-00001-of-0000x.gguf", "-00001-of-3.gguf"
    };

    for (i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
        assert_int_equal(parts_count(files[i]), 1);
        parts = parts_list(files[i], &n);
        assert_int_equal(n, 1);
        assert_string_equal(parts[0], files[i]);
        parts_free(parts, n);
    }
}


static void
test_first_part_names_the_others(void **state)
{
    size_t    n;
    char    **parts;

    assert_int_equal(parts_count("/m/x-00001-of-00012.gguf"), 12);
    parts = parts_list("/m/x-00001-of-00012.gguf", &n);
    assert_int_equal(n, 12);
    assert_string_equal(parts[0], "/m/x-00001-of-00012.gguf");
    assert_string_equal(parts[11], "/m/x-00012-of-00012.gguf");
    parts_free(parts, n);

    parts = parts_list("-00001-of-00002.gguf", &n);
    assert_int_equal(n, 2);
    assert_string_equal(parts[1], "-00002-of-00002.gguf");
    parts_free(parts, n);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(test_whole_models_are_one_part),
        cmocka_unit_test(test_first_part_names_the_others)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
