
#include <string.h>
#include <strings.h>

#include "core/openai/form.h"
#include "proto/utf8.h"


#define DISPOSITION  "content-disposition:"
#define CRLF         "\r\n"


/* The rest of a text, which is taken from its beginning. */
typedef struct {
    const char  *p;
    const char  *end;
} form_text_t;

typedef struct {
    llmgw_openai_body_t   *body;
    llmgw_openai_error_t  *error;
    size_t                 boundary_len;
    char                   boundary[LLMGW_OPENAI_MAX_BOUNDARY + 4];
                                    /* after CRLF and two dashes */
    form_text_t            name;    /* of the part under way */
    int                    has_name;
    int                    has_file;
} form_t;


static int form_boundary(form_t *form, const char *type, size_t len);
static int form_parts(form_t *form);
static int form_fields(form_t *form, form_text_t *left);
static int form_disposition(form_t *form, form_text_t line);
static int form_param(form_text_t *line, form_text_t *name, form_text_t *value);
static int form_value(form_text_t *line, form_text_t *value);
static int form_is(form_text_t text, const char *name);
static int form_note(form_t *form, const char *begin, const char *end);
static int form_model(form_t *form, const char *begin, const char *end);
static int form_wrong(form_t *form, const char *what);


int
llmgw_openai_form_read(llmgw_openai_body_t *body, const char *type,
    size_t type_len, Llmgateway__Api api, const void *bytes, size_t len,
    const llmgw_openai_memory_t *memory, llmgw_openai_error_t *error)
{
    form_t  form;

    llmgw_openai_body_begin(body, api, bytes, len, memory);
    memset(&form, 0, sizeof(form));
    form.body = body;
    form.error = error;

    if (form_boundary(&form, type, type_len) != 0) {
        return form_wrong(&form, "its content-type has no boundary of 1 to 70 "
                                 "characters");
    }

    if (form_parts(&form) != 0) {
        llmgw_openai_body_done(body);
        return -1;
    }

    if (body->model_len == 0) {
        llmgw_openai_error_set(error, 400, "missing_required_parameter",
                               "model",
                               "Missing required parameter: 'model'.");
        return -1;
    }

    return 0;
}


/* multipart/form-data; boundary=abc */
static int
form_boundary(form_t *form, const char *type, size_t len)
{
    form_text_t  line = { type, type + len }, name, value;

    value.p = value.end = NULL;
    line.p = memchr(type, ';', len);

    if (line.p == NULL) {
        return -1;
    }

    while (form_param(&line, &name, &value) == 1) {
        if (form_is(name, "boundary")) {
            break;
        }

        value.p = value.end = NULL;
    }

    len = (size_t) (value.end - value.p);

    if (len == 0 || len > LLMGW_OPENAI_MAX_BOUNDARY
        || memchr(value.p, '"', len) != NULL
        || memchr(value.p, '\\', len) != NULL)
    {
        return -1;
    }

    memcpy(form->boundary, CRLF "--", 4);
    memcpy(form->boundary + 4, value.p, len);
    form->boundary_len = 4 + len;

    return 0;
}


static int
form_parts(form_t *form)
{
    unsigned     n;
    form_text_t  left;
    const char  *begin, *end;

    left.p = (const char *) form->body->bytes;
    left.end = left.p + form->body->len;

    /* nothing may precede the first boundary, not even CRLF */

    if (form->body->len < form->boundary_len - 2
        || memcmp(left.p, form->boundary + 2, form->boundary_len - 2) != 0)
    {
        return form_wrong(form, "it does not begin with its boundary");
    }

    left.p += form->boundary_len - 2;

    for (n = 0; ; n++) {

        if (left.end - left.p >= 2 && memcmp(left.p, "--", 2) == 0) {
            return 0;
        }

        if (n == LLMGW_OPENAI_MAX_PARTS) {
            return form_wrong(form, "it has too many parts");
        }

        if (left.end - left.p < 2 || memcmp(left.p, CRLF, 2) != 0) {
            return form_wrong(form, "something stands behind a boundary");
        }

        left.p += 2;

        if (form_fields(form, &left) != 0) {
            return -1;
        }

        begin = left.p;
        end = memmem(begin, (size_t) (left.end - begin), form->boundary,
                     form->boundary_len);

        if (end == NULL) {
            return form_wrong(form, "a part has no end");
        }

        if (form_note(form, begin, end) != 0) {
            return -1;
        }

        left.p = end + form->boundary_len;
    }
}


/* Reads a part's fields, and the empty line after them. */
static int
form_fields(form_t *form, form_text_t *left)
{
    size_t       len;
    const char  *begin, *end;
    form_text_t  line;

    begin = left->p;
    form->has_name = 0;
    form->has_file = 0;

    for ( ;; ) {
        len = (size_t) (left->end - left->p);
        end = memmem(left->p, len < LLMGW_OPENAI_MAX_FIELDS
                              ? len : LLMGW_OPENAI_MAX_FIELDS, CRLF, 2);

        if (end == NULL || end + 2 - begin > LLMGW_OPENAI_MAX_FIELDS) {
            return form_wrong(form, "the fields of a part have no end, or more "
                                    "than 4096 bytes");
        }

        line.p = left->p;
        line.end = end;
        left->p = end + 2;

        if (line.p == line.end) {
            break;
        }

        if ((size_t) (line.end - line.p) > sizeof(DISPOSITION) - 1
            && strncasecmp(line.p, DISPOSITION, sizeof(DISPOSITION) - 1) == 0
            && form_disposition(form, line) != 0)
        {
            return form_wrong(form, "a Content-Disposition is not valid");
        }
    }

    return form->has_name ? 0 : form_wrong(form, "a part has no name");
}


/* Content-Disposition: form-data; name="file"; filename="a.wav" */
static int
form_disposition(form_t *form, form_text_t line)
{
    int          rc;
    form_text_t  name, value;

    line.p = memchr(line.p, ';', (size_t) (line.end - line.p));

    if (line.p == NULL || form->has_name) {
        return -1;
    }

    while ((rc = form_param(&line, &name, &value)) == 1) {

        if (form_is(name, "name")) {
            if (form->has_name) {
                return -1;
            }

            form->name = value;
            form->has_name = 1;
        }

        form->has_file |= form_is(name, "filename")
                          || form_is(name, "filename*");
    }

    return rc;
}


/* ; NAME=VALUE.  1: there is one; 0: the line has ended; -1: malformed. */
static int
form_param(form_text_t *line, form_text_t *name, form_text_t *value)
{
    while (line->p < line->end
           && (*line->p == ' ' || *line->p == '\t' || *line->p == ';'))
    {
        line->p++;
    }

    if (line->p == line->end) {
        return 0;
    }

    name->p = line->p;
    line->p = memchr(line->p, '=', (size_t) (line->end - line->p));

    if (line->p == NULL) {
        return -1;
    }

    name->end = line->p++;

    return form_value(line, value) == 0 ? 1 : -1;
}


/*
 * Up to a semicolon, or in quotes.  A backslash before a quote keeps it within
 * the value; browsers write %22 there.
 */
static int
form_value(form_text_t *line, form_text_t *value)
{
    if (line->p < line->end && *line->p == '"') {
        value->p = ++line->p;

        while (line->p < line->end && *line->p != '"') {
            line->p += *line->p == '\\' && line->end - line->p > 1 ? 2 : 1;
        }

        if (line->p == line->end) {
            return -1;
        }

        value->end = line->p++;

        return line->p == line->end || *line->p == ';' || *line->p == ' '
               ? 0 : -1;
    }

    value->p = line->p;

    while (line->p < line->end && *line->p != ';') {
        if (*line->p == '"') {
            return -1;
        }

        line->p++;
    }

    value->end = line->p;

    while (value->end > value->p
           && (value->end[-1] == ' ' || value->end[-1] == '\t'))
    {
        value->end--;
    }

    return 0;
}


static int
form_is(form_text_t text, const char *name)
{
    return (size_t) (text.end - text.p) == strlen(name)
           && strncasecmp(text.p, name, strlen(name)) == 0;
}


/* A part's content. */
static int
form_note(form_t *form, const char *begin, const char *end)
{
    const char           *bytes;
    llmgw_openai_body_t  *body;

    body = form->body;
    bytes = (const char *) body->bytes;

    if (form->has_file) {
        body->file.begin = (uint32_t) (begin - bytes);
        body->file.end = (uint32_t) (end - bytes);
    }

    return form_is(form->name, "model") ? form_model(form, begin, end) : 0;
}


static int
form_model(form_t *form, const char *begin, const char *end)
{
    size_t                i, len;
    llmgw_openai_body_t  *body;

    body = form->body;
    len = (size_t) (end - begin);

    if (body->model_len > 0 || form->has_file) {
        return form_wrong(form, "it has `model` twice, or as a file");
    }

    if (len == 0 || len > LLMGW_OPENAI_MAX_MODEL) {
        return form_wrong(form, "its `model` is empty, or too long");
    }

    for (i = 0; i < len; i++) {
        if ((unsigned char) begin[i] < ' ' || begin[i] == 0x7f) {
            return form_wrong(form, "its `model` contains a control character");
        }
    }

    if (!llmgw_utf8_is_valid(begin, len)) {
        return form_wrong(form, "its `model` is no UTF-8");
    }

    body->members = body->memory->resize(body->memory->data, NULL,
                                         sizeof(llmgw_openai_member_t));

    if (body->members == NULL) {
        llmgw_openai_error_set(form->error, 500, NULL, NULL,
                               "The gateway is out of memory.");
        return -1;
    }

    body->held = sizeof(llmgw_openai_member_t);
    body->nmembers = 1;
    body->members->key = "model";
    body->members->begin = (uint32_t) ((const uint8_t *) begin - body->bytes);
    body->members->value = body->members->begin;
    body->members->end = (uint32_t) ((const uint8_t *) end - body->bytes);

    memcpy(body->model, begin, len);
    body->model[len] = '\0';
    body->model_len = len;

    return 0;
}


static int
form_wrong(form_t *form, const char *what)
{
    llmgw_openai_error_set(form->error, 400, "invalid_form", NULL,
                           "Invalid multipart/form-data: %s.", what);
    return -1;
}
