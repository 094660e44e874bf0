
/*
 * A form with a file: what is found in it, and what is refused.
 */

#include "core/openai/form.h"
#include "t/unit/core/openai/openai_scene.h"


#define PASS   LLMGATEWAY__API__API_PASS
#define TYPE   "multipart/form-data; boundary=\"X\""
#define PART(disposition, content)                                            \
    "--X\r\nContent-Disposition: form-data; " disposition "\r\n\r\n"          \
    content "\r\n"
#define MODEL  PART("name=\"model\"", "m")
#define FILE_PART  PART("name=\"file\"; filename=\"a; name=model\"", "a\r\n-")
#define END    "--X--\r\n"


static int
read_typed(llmgw_openai_body_t *body, const char *type, const char *text,
    llmgw_openai_error_t *error)
{
    int     rc;
    char   *copy;
    size_t  len;

    len = strlen(text);
    copy = malloc(len + 1);
    assert_non_null(copy);
    copy = realloc(copy, len == 0 ? 1 : len);
    memcpy(copy, text, len);
    error->status = 0;
    rc = llmgw_openai_form_read(body, type, strlen(type), PASS, copy, len,
                                &scene_memory, error);
    assert_int_equal(rc == 0, error->status == 0);

    if (rc != 0) {
        assert_int_equal(scene_blocks, 0);
        free(copy);
    }

    return rc;
}


static void
well(const char *type, const char *text, const char *model, const char *file)
{
    llmgw_openai_body_t   body;
    llmgw_openai_error_t  error;

    if (read_typed(&body, type, text, &error) != 0) {
        fail_msg("%s", error.message);
    }

    assert_string_equal(body.model, model);
    assert_int_equal(body.nmembers, 1);
    assert_int_equal(body.members->end - body.members->value, strlen(model));
    assert_memory_equal(body.bytes + body.members->value, model,
                        strlen(model));
    assert_int_equal(body.file.end - body.file.begin, strlen(file));
    assert_memory_equal(body.bytes + body.file.begin, file, strlen(file));
    scene_done(&body);
}


static void
refused(const char *type, const char *text, const char *why)
{
    llmgw_openai_body_t   body;
    llmgw_openai_error_t  error;

    if (read_typed(&body, type, text, &error) == 0) {
        fail_msg("%s: accepted", text);
    }

    assert_int_equal(error.status, 400);

    if (strstr(error.message, why) == NULL) {
        fail_msg("%s: %s", text, error.message);
    }
}


static void
model_and_file_are_found(void **state)
{
    well(TYPE, MODEL FILE_PART END, "m", "a\r\n-");
    well(TYPE, FILE_PART MODEL "--X--", "m", "a\r\n-");
    well("multipart/form-data;charset=utf-8; boundary=X ;a=b",
         PART("name=model", "org/m 8b") PART("name=\"a\"", "") END,
         "org/m 8b", "");
    well(TYPE, "--X\r\nA: b\r\ncontent-DISPOSITION:form-data;name=\"model\";"
         "x=\"\\\"; name=b\"\r\nB: c\r\n\r\nm\r\n" END "any\r\n" MODEL, "m",
         "");
    well(TYPE, FILE_PART PART("name=\"\"; filename=\"\"", "b") MODEL END, "m",
         "b");
}


static void
forms_that_two_may_read_otherwise_are_refused(void **state)
{
    size_t  i;

    static const char *const  bad[][2] = {
        { "", "begin" },
        { "--", "begin" },
        { "\r\n" MODEL END, "begin" },
        { "any\r\n" MODEL END, "begin" },
        { "--XY\r\n", "behind a boundary" },
        { "--X", "behind a boundary" },
        { "--X \r\n", "behind a boundary" },
        { "--X\n\n", "behind a boundary" },
        { "--X\r\n", "no end" },
        { "--X\r\nA: b\r\n\r\nc\r\n" END, "no name" },
        { "--X\r\nA: b\n\nc\r\n" END, "have no end" },
        { PART("a", "b") END, "Content-Disposition" },
        { PART("name=\"model", "m") END, "Content-Disposition" },
        { PART("name=\"model\"x", "m") END, "Content-Disposition" },
        { PART("name=mo\"del", "m") END, "Content-Disposition" },
        { PART("name=a; name=model", "m") END, "Content-Disposition" },
        { "--X\r\nContent-Disposition: form-data\r\n\r\na\r\n" END,
          "Content-Disposition" },
        { PART("name=a\r\nContent-Disposition: form-data; name=model", "m") END,
          "Content-Disposition" },
        { "--X\r\nContent-Disposition: form-data; name=model\r\n\r\nm",
          "a part has no end" },
        { MODEL "--X", "behind a boundary" },
        { MODEL MODEL END, "twice" },
        { MODEL PART("name=MODEL", "n") END, "twice" },
        { PART("name=model; filename=a", "m") END, "as a file" },
        { PART("name=model", "") END, "empty" },
        { PART("name=model", "a\nb") END, "control character" },
        { PART("name=model", "\xff") END, "UTF-8" },
        { FILE_PART END, "'model'" },
        { END, "'model'" }
    };

    for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        refused(TYPE, bad[i][0], bad[i][1]);
    }
}


static void
boundary_has_a_limit(void **state)
{
    int   n;
    char  b[80], type[160], text[512];

    refused("multipart/form-data", MODEL END, "boundary");
    refused("multipart/form-data; charset=a", MODEL END, "boundary");
    refused("multipart/form-data; boundary", MODEL END, "boundary");
    refused("multipart/form-data; boundary=", MODEL END, "boundary");
    refused("multipart/form-data; boundary=\"X", MODEL END, "boundary");
    refused("multipart/form-data; boundary=\"a\\\"b\"", MODEL END, "boundary");

    memset(b, 'b', sizeof(b));

    for (n = LLMGW_OPENAI_MAX_BOUNDARY; n <= LLMGW_OPENAI_MAX_BOUNDARY + 1;
         n++)
    {
        snprintf(type, sizeof(type), "multipart/form-data; boundary=%.*s", n,
                 b);
        snprintf(text, sizeof(text), "--%.*s\r\nContent-Disposition: form-data;"
                 " name=model\r\n\r\nm\r\n--%.*s--", n, b, n, b);

        if (n == LLMGW_OPENAI_MAX_BOUNDARY) {
            well(type, text, "m", "");
        } else {
            refused(type, text, "boundary");
        }
    }
}


static void
parts_and_fields_have_limits(void **state)
{
    int   i, n;
    char  text[16384];

    for (n = LLMGW_OPENAI_MAX_PARTS; n <= LLMGW_OPENAI_MAX_PARTS + 1; n++) {
        strcpy(text, MODEL);

        for (i = 1; i < n; i++) {
            strcat(text, PART("name=a", "b"));
        }

        strcat(text, END);

        if (n == LLMGW_OPENAI_MAX_PARTS) {
            well(TYPE, text, "m", "");
        } else {
            refused(TYPE, text, "too many parts");
        }
    }

    for (n = 0; n <= 1; n++) {
        i = sprintf(text, "--X\r\nContent-Disposition: form-data; name=model"
                          "\r\nA: ");
        memset(text + i, 'a', LLMGW_OPENAI_MAX_FIELDS);
        strcpy(text + sizeof("--X\r\n") - 1 + LLMGW_OPENAI_MAX_FIELDS - 4 + n,
               "\r\n\r\nm\r\n" END);

        if (n == 0) {
            well(TYPE, text, "m", "");
        } else {
            refused(TYPE, text, "4096 bytes");
        }
    }

    memset(text, 'm', 1024);
    i = sprintf(text, "--X\r\nContent-Disposition: form-data; name=model"
                      "\r\n\r\n");
    memset(text + i, 'm', LLMGW_OPENAI_MAX_MODEL + 1);
    strcpy(text + i + LLMGW_OPENAI_MAX_MODEL + 1, "\r\n" END);
    refused(TYPE, text, "too long");
}


static void
no_memory_is_an_error(void **state)
{
    llmgw_openai_body_t   body;
    llmgw_openai_error_t  error;

    scene_left = 0;
    assert_int_equal(read_typed(&body, TYPE, MODEL END, &error), -1);
    assert_int_equal(error.status, 500);
    scene_left = SIZE_MAX;
}


int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(model_and_file_are_found),
        cmocka_unit_test(forms_that_two_may_read_otherwise_are_refused),
        cmocka_unit_test(boundary_has_a_limit),
        cmocka_unit_test(parts_and_fields_have_limits),
        cmocka_unit_test(no_memory_is_an_error),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
