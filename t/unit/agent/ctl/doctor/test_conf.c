
/* What the doctor reads in nginx's configuration. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "ctl/doctor/conf.h"


/* Checks what is read from the text: JSON without places, with ' for ". */
static void
reads(const char *text, const char *as)
{
    char     error[CONF_ERROR_BYTES];
    char    *got, *want, *at;
    json_t  *conf, *json;

    conf = conf_read(text, "x", error);
    assert_non_null(conf);
    want = strdup(as);

    while ((at = strchr(want, '\'')) != NULL) {
        *at = '"';
    }

    json = json_loads(want, 0, NULL);
    assert_non_null(json);
    got = json_dumps(conf, JSON_COMPACT);

    if (!json_equal(conf, json)) {
        fail_msg("%s", got);
    }

    free(got);
    free(want);
    json_decref(json);
    json_decref(conf);
}


static void
words_quotes_comments_and_blocks(void **state)
{
    reads("", "[]");
    reads("a;", "[{'name':'a','words':[],'at':'x:1'}]");
    reads("# no ; {\n a  'b c' \"d;\\\"e\" f\\;g ${x}y; # end",
          "[{'name':'a','words':['b c','d;\\\"e','f;g','${x}y'],"
          "'at':'x:2'}]");
    reads("a b {\n c; d { } }",
          "[{'name':'a','words':['b'],'at':'x:1','block':["
          "{'name':'c','words':[],'at':'x:2'},"
          "{'name':'d','words':[],'at':'x:2','block':[]}]}]");
}


/* Files as nginx -T prints them, behind nginx's messages on the same stream. */
static void
includes_are_taken_from_the_other_files(void **state)
{
    reads("nginx: all is well\n"
          "# configuration file /e/nginx.conf:\n"
          "include conf.d/*.conf;\ninclude /e/other;\n"
          "# configuration file /e/conf.d/a.conf:\n"
          "a {\ninclude deep/b.conf; }\n"
          "# configuration file /e/deep/b.conf:\n"
          "b;\n"
          "# configuration file /e/other:\n"
          "c;",
          "[{'name':'include','words':['conf.d/*.conf'],"
          "'at':'/e/nginx.conf:1'},"
          "{'name':'a','words':[],'at':'/e/conf.d/a.conf:1','block':["
          "{'name':'include','words':['deep/b.conf'],"
          "'at':'/e/conf.d/a.conf:2'},"
          "{'name':'b','words':[],'at':'/e/deep/b.conf:1'}]},"
          "{'name':'include','words':['/e/other'],'at':'/e/nginx.conf:2'},"
          "{'name':'c','words':[],'at':'/e/other:1'}]");
}


static void
refuses(const char *text, const char *why)
{
    char  error[CONF_ERROR_BYTES];

    assert_null(conf_read(text, "x", error));
    assert_string_equal(error, why);
}


static void
what_is_wrong_is_said_with_its_line(void **state)
{
    size_t  i;
    char    deep[2 * CONF_MAX_DEPTH + 8];
    char   *wide;

    refuses("a", "x:1: a directive is not ended by \";\"");
    refuses("a {\n b;", "x:2: a \"}\" is missing");
    refuses("a;\n}", "x:2: no directive begins so");
    refuses("a 'b;", "x:1: a directive is not ended by \";\"");
    refuses("a ${b;", "x:1: a directive is not ended by \";\"");
    refuses("\xff;", "x:1: a name that is not UTF-8");
    refuses("# configuration file /x:\ninclude /x;",
            "/x:1: files include each other too deeply");

    for (i = 0; i <= CONF_MAX_DEPTH; i++) {
        memcpy(deep + 2 * i, "a{", 3);
    }

    refuses(deep, "x:1: blocks are nested too deeply");

    wide = malloc(CONF_WORD_BYTES + 2);
    memset(wide, 'a', CONF_WORD_BYTES);
    strcpy(wide + CONF_WORD_BYTES, ";");
    refuses(wide, "x:1: no directive begins so");
    reads(wide + CONF_WORD_BYTES - 1, "[{'name':'a','words':[],'at':'x:1'}]");
    free(wide);
}


typedef struct {
    unsigned  n;
    char      sizes[64];
} seen_t;


static void
see(const json_t *directive, const conf_scope_t *scope, void *data)
{
    seen_t        *seen = data;
    const json_t  *size;

    seen->n++;
    size = conf_in_force(scope, "size");
    strcat(seen->sizes, size ? conf_word(size, 0) : "-");
    strcat(seen->sizes, " ");
}


static void
innermost_directive_is_in_force(void **state)
{
    char     error[CONF_ERROR_BYTES];
    json_t  *conf;
    seen_t   seen = { 0, "" };

    conf = conf_read("pass; http { size 1; a { pass; } "
                     "b { size 2; c { pass; size 3; } d { pass; } } }", "x",
                     error);
    conf_walk(conf, "pass", see, &seen);
    assert_int_equal(seen.n, 4);
    assert_string_equal(seen.sizes, "- 1 3 2 ");
    assert_string_equal(conf_word(conf_child(conf, "pass"), 0), "");
    assert_null(conf_child(conf, "size"));
    assert_string_equal(conf_word(NULL, 0), "");
    json_decref(conf);
}


static void
sizes_have_units(void **state)
{
    assert_int_equal(conf_size("512", 7), 512);
    assert_int_equal(conf_size("8k", 7), 8 << 10);
    assert_int_equal(conf_size("8M", 7), 8 << 20);
    assert_int_equal(conf_size("2g", 7), 2LL << 30);
    assert_int_equal(conf_size("", 7), 7);
    assert_int_equal(conf_size("auto", 7), 7);
    assert_int_equal(conf_size("-1", 7), 7);
    assert_int_equal(conf_size("1x", 7), 7);
    assert_int_equal(conf_size("99999999999999999999", 7), 7);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(words_quotes_comments_and_blocks),
        cmocka_unit_test(includes_are_taken_from_the_other_files),
        cmocka_unit_test(what_is_wrong_is_said_with_its_line),
        cmocka_unit_test(innermost_directive_is_in_force),
        cmocka_unit_test(sizes_have_units),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
