
/* Reads mappings and lists of YAML by tables. */

#include "sim/work/yaml_inner.h"

#include <stdlib.h>
#include <string.h>

#include "sim/work/file.h"

/* Greatest file of a workload; no list in it needs more. */
#define YAML_FILE_BYTES  (64u * 1024 * 1024)
#define YAML_DEPTH       64
#define YAML_ITEMS       1000000

/*
 * Aliases can make a small file stand for exponentially many values, so each
 * value that is read is counted.
 */
#define YAML_VALUES      10000000

static int read_fields(yaml_reader_t *r, const work_yaml_field_t *table,
    char *values, const yaml_node_t *node);
static int read_mapping(yaml_reader_t *r, const work_yaml_field_t *table,
    void *values, const yaml_node_t *node);


static yaml_node_t *
node_of(yaml_reader_t *r, int item)
{
    return yaml_document_get_node(&r->document, item);
}


static const char *
text_of(const yaml_node_t *node)
{
    return (const char *) node->data.scalar.value;
}


static int
read_words(yaml_reader_t *r, const work_yaml_field_t *f,
    work_yaml_words_t *words, const yaml_node_t *node)
{
    yaml_node_item_t  *item;

    if (node->type != YAML_SEQUENCE_NODE) {
        return work_fail(r->error, r->file, yaml_line(node),
                         "\"%s\" needs a list", f->key);
    }

    words->items = work_arena_alloc(r->arena, sizeof(words->items[0])
        * (size_t) (node->data.sequence.items.top
                    - node->data.sequence.items.start));

    for (item = node->data.sequence.items.start;
         item < node->data.sequence.items.top; item++)
    {
        if (yaml_read_text(r, f, &words->items[words->n++], node_of(r, *item))
            != 0)
        {
            return -1;
        }
    }

    return 0;
}


static int
read_list(yaml_reader_t *r, const work_yaml_field_t *f,
    work_yaml_list_t *list, const yaml_node_t *node)
{
    size_t             n;
    yaml_node_item_t  *item;

    if (node->type != YAML_SEQUENCE_NODE) {
        return work_fail(r->error, r->file, yaml_line(node),
                         "\"%s\" needs a list", f->key);
    }

    item = node->data.sequence.items.start;
    n = (size_t) (node->data.sequence.items.top - item);

    if (n > YAML_ITEMS) {
        return work_fail(r->error, r->file, yaml_line(node),
                         "\"%s\" has more than %d items", f->key, YAML_ITEMS);
    }

    list->items = work_arena_alloc(r->arena, n * f->size + 1);

    for (list->n = 0; list->n < n; list->n++) {
        if (read_mapping(r, f->table, (char *) list->items
                         + list->n * f->size, node_of(r, item[list->n])) != 0)
        {
            return -1;
        }
    }

    return 0;
}


/* The pairs of a mapping; NULL: the node is none, and *error is set. */
static yaml_node_pair_t *
pairs_of(yaml_reader_t *r, const char *key, const yaml_node_t *node,
    size_t *n)
{
    if (node->type != YAML_MAPPING_NODE) {
        work_fail(r->error, r->file, yaml_line(node), "%s%s%s needs keys "
                  "and values", key != NULL ? "\"" : "",
                  key != NULL ? key : "this", key != NULL ? "\"" : "");
        return NULL;
    }

    *n = (size_t) (node->data.mapping.pairs.top
                   - node->data.mapping.pairs.start);

    if (*n > YAML_ITEMS) {
        work_fail(r->error, r->file, yaml_line(node), "more than %d keys",
                  YAML_ITEMS);
        return NULL;
    }

    return node->data.mapping.pairs.start;
}


/* The text of a key, which belongs to the document; NULL: *error is set. */
static const char *
key_of(yaml_reader_t *r, int item)
{
    const yaml_node_t  *node;

    node = node_of(r, item);

    if (++r->nvalues > YAML_VALUES) {
        work_fail(r->error, r->file, yaml_line(node),
                  "more than %d values, aliases counted", YAML_VALUES);
        return NULL;
    }

    if (node->type != YAML_SCALAR_NODE
        || strlen(text_of(node)) != node->data.scalar.length)
    {
        work_fail(r->error, r->file, yaml_line(node), "a key must be a text");
        return NULL;
    }

    return text_of(node);
}


static int
read_numbers(yaml_reader_t *r, const work_yaml_field_t *f,
    work_yaml_numbers_t *numbers, const yaml_node_t *node)
{
    size_t               i, n;
    const char          *key;
    yaml_node_pair_t    *pairs;
    work_yaml_number_t  *number;
    work_yaml_field_t    named;

    pairs = pairs_of(r, f->key, node, &n);

    if (pairs == NULL) {
        return -1;
    }

    numbers->items = work_arena_alloc(r->arena, n * sizeof(*number) + 1);

    for (i = 0; i < n; i++) {
        key = key_of(r, pairs[i].key);

        if (key == NULL) {
            return -1;
        }

        number = &numbers->items[numbers->n++];
        number->name = work_arena_text(r->arena, key, strlen(key));
        number->line = yaml_line(node_of(r, pairs[i].key));
        named = *f;
        named.key = number->name;

        if (yaml_read_double(r, &named, &number->value,
                        node_of(r, pairs[i].value)) != 0)
        {
            return -1;
        }
    }

    return 0;
}


static int
read_named(yaml_reader_t *r, const work_yaml_field_t *f,
    work_yaml_list_t *list, const yaml_node_t *node)
{
    char               *item;
    size_t              n;
    const char         *key;
    yaml_node_pair_t   *pairs;

    pairs = pairs_of(r, f->key, node, &n);

    if (pairs == NULL) {
        return -1;
    }

    list->items = work_arena_alloc(r->arena, n * f->size + 1);

    for (list->n = 0; list->n < n; list->n++) {
        key = key_of(r, pairs[list->n].key);

        if (key == NULL) {
            return -1;
        }

        item = (char *) list->items + list->n * f->size;
        ((work_yaml_named_t *) (void *) item)->name
            = work_arena_text(r->arena, key, strlen(key));

        if (read_mapping(r, f->table, item,
                         node_of(r, pairs[list->n].value)) != 0)
        {
            return -1;
        }
    }

    return 0;
}


static int
read_permille(yaml_reader_t *r, const work_yaml_field_t *f, uint32_t *value,
    const yaml_node_t *node)
{
    int64_t  thousandths;

    if (yaml_read_parts(r, f, 1e3, &thousandths, node) != 0) {
        return -1;
    }

    *value = (uint32_t) thousandths;

    return 0;
}


/* values: the struct that the field's table describes. */
static int
read_value(yaml_reader_t *r, const work_yaml_field_t *f, char *values,
    const yaml_node_t *node)
{
    void  *map, *field;

    field = values + f->offset;

    switch (f->kind) {

    case WORK_YAML_TEXT:
        return yaml_read_text(r, f, field, node);

    case WORK_YAML_INT:
        return yaml_read_int(r, f, field, node);

    case WORK_YAML_DOUBLE:
        return yaml_read_double(r, f, field, node);

    case WORK_YAML_UINT32:
        return yaml_read_uint32(r, f, field, node);

    case WORK_YAML_SECONDS_US:
        return yaml_read_parts(r, f, 1e6, field, node);

    case WORK_YAML_SECONDS_MS:
        return yaml_read_parts(r, f, 1e3, field, node);

    case WORK_YAML_PERMILLE:
        return read_permille(r, f, field, node);

    case WORK_YAML_BOOL:
        return yaml_read_bool(r, f, field, node);

    case WORK_YAML_WORD:
        return yaml_read_word(r, f, field, node);

    case WORK_YAML_INNER:
        return read_fields(r, f->table, values, node);

    case WORK_YAML_LIST:
        return read_list(r, f, field, node);

    case WORK_YAML_NAMED:
        return read_named(r, f, field, node);

    case WORK_YAML_NUMBERS:
        return read_numbers(r, f, field, node);

    case WORK_YAML_WORDS:
        return read_words(r, f, field, node);

    case WORK_YAML_REFUSED:
        return work_fail(r->error, r->file, yaml_line(node),
                         "\"%s\" is not supported", f->key);

    case WORK_YAML_MAP:
        break;
    }

    map = work_arena_alloc(r->arena, f->size);
    *(void **) field = map;

    return read_mapping(r, f->table, map, node);
}


/* The field of a table for a key; NULL: there is none, and *error is set. */
static const work_yaml_field_t *
field_of(yaml_reader_t *r, const work_yaml_field_t *table, const char *key,
    const yaml_node_t *node)
{
    const work_yaml_field_t  *f;

    for (f = table; f->key != NULL; f++) {
        if (strcmp(f->key, key) == 0) {
            return f;
        }
    }

    work_fail(r->error, r->file, yaml_line(node), "unknown key \"%.80s\"", key);

    return NULL;
}


/* Whether an earlier pair has the same key; then *error is set. */
static int
is_doubled(yaml_reader_t *r, const yaml_node_pair_t *pairs, size_t i)
{
    size_t              j;
    const yaml_node_t  *a, *b;

    a = node_of(r, pairs[i].key);

    for (j = 0; j < i; j++) {
        b = node_of(r, pairs[j].key);

        if (strcmp(text_of(a), text_of(b)) == 0) {
            work_fail(r->error, r->file, yaml_line(a),
                      "the key \"%.80s\" is given twice", text_of(a));
            return 1;
        }
    }

    return 0;
}


static int
read_fields(yaml_reader_t *r, const work_yaml_field_t *table, char *values,
    const yaml_node_t *node)
{
    size_t                    i, n;
    const char               *key;
    yaml_node_pair_t         *pairs;
    const yaml_node_t        *value;
    const work_yaml_field_t  *f;

    pairs = pairs_of(r, NULL, node, &n);

    if (pairs == NULL) {
        return -1;
    }

    for (i = 0; i < n; i++) {
        key = key_of(r, pairs[i].key);

        if (key == NULL) {
            return -1;
        }

        f = field_of(r, table, key, node_of(r, pairs[i].key));
        value = node_of(r, pairs[i].value);

        if (f == NULL || is_doubled(r, pairs, i)) {
            return -1;
        }

        if (yaml_is_null(value)) {
            continue;
        }

        if (read_value(r, f, values, value) != 0) {
            return -1;
        }

        if (f->present > 0) {
            *(int *) (void *) (values + f->present) = 1;
        }
    }

    return 0;
}


/* Reads a mapping into a struct of its own, and sets the struct's line. */
static int
read_mapping(yaml_reader_t *r, const work_yaml_field_t *table, void *values,
    const yaml_node_t *node)
{
    ((work_yaml_t *) values)->line = yaml_line(node);

    return read_fields(r, table, values, node);
}


/*
 * Refuses deep nesting, for which libyaml needs quadratic time, and a second
 * document, which would not be read.  Malformed YAML is left to yaml_load().
 */
static int
yaml_scan(yaml_reader_t *r, yaml_parser_t *parser)
{
    int           rc, is_end;
    unsigned      depth, documents;
    yaml_event_t  event;

    rc = 0;
    is_end = 0;
    depth = 0;
    documents = 0;

    while (rc == 0 && !is_end && yaml_parser_parse(parser, &event)) {

        switch (event.type) {

        case YAML_SEQUENCE_START_EVENT:
        case YAML_MAPPING_START_EVENT:

            if (++depth > YAML_DEPTH) {
                rc = work_fail(r->error, r->file, event.start_mark.line + 1,
                               "nested deeper than %u levels", YAML_DEPTH);
            }

            break;

        case YAML_SEQUENCE_END_EVENT:
        case YAML_MAPPING_END_EVENT:
            depth--;
            break;

        case YAML_DOCUMENT_START_EVENT:

            if (++documents > 1) {
                rc = work_fail(r->error, r->file, event.start_mark.line + 1,
                               "a second document");
            }

            break;

        default:
            is_end = event.type == YAML_STREAM_END_EVENT;
            break;
        }

        yaml_event_delete(&event);
    }

    return rc;
}


static int
yaml_load(yaml_reader_t *r, yaml_parser_t *parser)
{
    yaml_node_t  *root;

    if (!yaml_parser_load(parser, &r->document)) {
        return work_fail(r->error, r->file, parser->problem_mark.line + 1,
                         "no YAML: %s", parser->problem != NULL
                         ? parser->problem : "no memory left");
    }

    root = yaml_document_get_root_node(&r->document);

    if (root == NULL) {
        yaml_document_delete(&r->document);
        return work_fail(r->error, r->file, 1, "empty: keys and values are "
                         "needed");
    }

    return 0;
}


int
work_yaml_parse(const work_yaml_field_t *table, void *values,
    const char *file, const char *bytes, size_t len, work_arena_t *arena,
    work_error_t *error)
{
    int             rc;
    yaml_parser_t   parser;
    yaml_reader_t   r;

    memset(&r, 0, sizeof(r));
    r.file = file;
    r.arena = arena;
    r.error = error;

    if (len > YAML_FILE_BYTES) {
        return work_fail(error, file, 0, "larger than %u bytes",
                         YAML_FILE_BYTES);
    }

    if (!yaml_parser_initialize(&parser)) {
        return work_fail(error, file, 0, "no memory left");
    }

    yaml_parser_set_input_string(&parser, (const unsigned char *) bytes, len);
    rc = yaml_scan(&r, &parser);
    yaml_parser_delete(&parser);

    if (rc != 0) {
        return rc;
    }

    if (!yaml_parser_initialize(&parser)) {
        return work_fail(error, file, 0, "no memory left");
    }

    yaml_parser_set_input_string(&parser, (const unsigned char *) bytes, len);
    rc = yaml_load(&r, &parser);

    if (rc == 0) {
        rc = read_mapping(&r, table, values,
                          yaml_document_get_root_node(&r.document));
        yaml_document_delete(&r.document);
    }

    yaml_parser_delete(&parser);

    return rc;
}


int
work_yaml_read(const work_yaml_field_t *table, void *values,
    const char *path, work_arena_t *arena, work_error_t *error)
{
    int      rc;
    char    *bytes;
    size_t   len;

    bytes = work_file_read(path, &len, error);

    if (bytes == NULL) {
        return -1;
    }

    rc = work_yaml_parse(table, values, path, bytes, len, arena, error);
    free(bytes);

    return rc;
}
