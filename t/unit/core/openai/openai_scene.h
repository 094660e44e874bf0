
/*
 * What the tests of bodies share: memory that counts, and the same value
 * written as JSON in many ways.
 */

#ifndef OPENAI_SCENE_H
#define OPENAI_SCENE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include <jansson.h>

#include "core/openai/body.h"


#define CHAT         LLMGATEWAY__API__API_CHAT
#define COMPLETIONS  LLMGATEWAY__API__API_COMPLETIONS
#define EMBEDDINGS   LLMGATEWAY__API__API_EMBEDDINGS
#define RESPONSES    LLMGATEWAY__API__API_RESPONSES
#define MESSAGES     LLMGATEWAY__API__API_MESSAGES

#define FEATURE(name)  LLMGATEWAY__FEATURE__FEATURE_ ## name


/* --- memory */

static size_t  scene_blocks;            /* held now */
static size_t  scene_largest;           /* bytes ever asked for at once */
static size_t  scene_left = SIZE_MAX;   /* allocations before one fails */


static inline void *
scene_resize(void *data, void *p, size_t bytes)
{
    void  *new;

    if (bytes == 0) {
        scene_blocks -= (p != NULL);
        free(p);
        return NULL;
    }

    scene_largest = bytes > scene_largest ? bytes : scene_largest;

    if (scene_left == 0) {
        return NULL;
    }

    scene_left--;
    new = realloc(p, bytes);
    assert_non_null(new);
    scene_blocks += (p == NULL);

    return new;
}


static const llmgw_openai_memory_t  scene_memory = { scene_resize, NULL };


/* --- bodies */

/*
 * Reads a copy that is exactly as long as the text, so that sanitizers see a
 * read beyond it; body->bytes is freed by scene_done().
 */
static inline int
scene_read(llmgw_openai_body_t *body, Llmgateway__Api api, const char *text,
    size_t len, llmgw_openai_error_t *error)
{
    int    rc;
    char  *copy;

    copy = malloc(len + (len == 0));
    assert_non_null(copy);
    memcpy(copy, text, len);

    error->status = 0;
    rc = llmgw_openai_body_read(body, api, copy, len, &scene_memory, error);

    assert_int_equal(rc == 0, error->status == 0);

    if (rc != 0) {
        assert_int_equal(scene_blocks, 0);
        free(copy);
    }

    return rc;
}


static inline void
scene_done(llmgw_openai_body_t *body)
{
    llmgw_openai_body_done(body);
    llmgw_openai_body_done(body);
    assert_int_equal(scene_blocks, 0);

    free((void *) body->bytes);
}


static inline void
scene_well(llmgw_openai_body_t *body, Llmgateway__Api api, const char *text)
{
    llmgw_openai_error_t  error;

    if (scene_read(body, api, text, strlen(text), &error) != 0) {
        fail_msg("%s: %s", text, error.message);
    }
}


/* --- a value, written in one of many ways */

typedef struct {
    char      *p;
    unsigned   seed;                    /* 0: the plain way */
} scene_out_t;


static inline unsigned
scene_chance(scene_out_t *out, unsigned n)
{
    return out->seed ? (unsigned) rand_r(&out->seed) % n : 0;
}


static inline void
scene_space(scene_out_t *out)
{
    unsigned  i;

    for (i = scene_chance(out, 4); i > 1; i--) {
        *out->p++ = " \t\r\n"[scene_chance(out, 4)];
    }
}


static inline void
scene_unit(scene_out_t *out, unsigned unit)
{
    out->p += sprintf(out->p, scene_chance(out, 2) ? "\\u%04x" : "\\u%04X",
                      unit);
}


/* One character, as it is or by an escape. */
static inline const char *
scene_character(scene_out_t *out, const char *text)
{
    unsigned     c, n, i;
    const char  *short_of = "\"\\/\b\f\n\r\t", *letters = "\"\\/bfnrt";
    const char  *found;

    c = (unsigned char) *text;
    n = c < 0x80 ? 1 : c < 0xe0 ? 2 : c < 0xf0 ? 3 : 4;
    found = strchr(short_of, (int) c);

    if (c && found && (scene_chance(out, 2) || c == '"' || c == '\\')) {
        *out->p++ = '\\';
        *out->p++ = letters[found - short_of];

    } else if (c < 0x20 || scene_chance(out, 8) == 1) {
        c = n == 1 ? c : n == 2 ? c & 0x1f : n == 3 ? c & 15 : c & 7;

        for (i = 1; i < n; i++) {
            c = c << 6 | ((unsigned char) text[i] & 0x3f);
        }

        if (c < 0x10000) {
            scene_unit(out, c);

        } else {
            scene_unit(out, 0xd800 + ((c - 0x10000) >> 10));
            scene_unit(out, 0xdc00 + ((c - 0x10000) & 0x3ff));
        }

    } else {
        memcpy(out->p, text, n);
        out->p += n;
    }

    return text + n;
}


static inline void
scene_string(scene_out_t *out, const char *text)
{
    *out->p++ = '"';

    while (*text) {
        text = scene_character(out, text);
    }

    *out->p++ = '"';
}


static inline void scene_value(scene_out_t *out, json_t *value);


/* Writes an object's members, from a random one on and around. */
static inline void
scene_members(scene_out_t *out, json_t *object)
{
    void        *at;
    size_t       i, n, skip;

    n = json_object_size(object);
    skip = n ? scene_chance(out, (unsigned) n) : 0;
    at = NULL;

    for (i = 0; i < 2 * n; i++) {
        at = at ? json_object_iter_next(object, at) : NULL;
        at = at ? at : json_object_iter(object);

        if (i < skip || i >= skip + n) {
            continue;
        }

        scene_space(out);
        scene_string(out, json_object_iter_key(at));
        scene_space(out);
        *out->p++ = ':';
        scene_value(out, json_object_iter_value(at));

        if (i + 1 < skip + n) {
            *out->p++ = ',';
        }
    }
}


static inline void
scene_value(scene_out_t *out, json_t *value)
{
    size_t  i;

    scene_space(out);

    switch (json_typeof(value)) {

    case JSON_OBJECT:
        *out->p++ = '{';
        scene_members(out, value);
        scene_space(out);
        *out->p++ = '}';
        break;

    case JSON_ARRAY:
        *out->p++ = '[';
        for (i = 0; i < json_array_size(value); i++) {
            out->p += i ? sprintf(out->p, ",") : 0;
            scene_value(out, json_array_get(value, i));
        }
        scene_space(out);
        *out->p++ = ']';
        break;

    case JSON_STRING:
        scene_string(out, json_string_value(value));
        break;

    case JSON_INTEGER:
        out->p += sprintf(out->p, "%lld",
                          (long long) json_integer_value(value));
        break;

    default:
        out->p += sprintf(out->p, "%s", json_is_null(value) ? "null"
                          : json_is_true(value) ? "true" : "false");
    }

    scene_space(out);
}


/* The value as JSON, to be freed by the caller; seed 0: in the plain way. */
static inline char *
scene_json(json_t *value, unsigned seed)
{
    char         *text;
    scene_out_t   out;

    text = malloc(1024 * 1024);
    assert_non_null(text);

    out.p = text;
    out.seed = seed;
    scene_value(&out, value);
    *out.p = '\0';

    return text;
}

#endif /* OPENAI_SCENE_H */
