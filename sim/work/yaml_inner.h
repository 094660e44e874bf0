
/*
 * What yaml.c and yaml_scalar.c share.  Each reader takes a field of a table,
 * the place of its value, and the node.  It returns 0, or -1 and *error.
 */

#ifndef WORK_YAML_INNER_H
#define WORK_YAML_INNER_H

#include <yaml.h>

#include "sim/work/yaml.h"


typedef struct {
    yaml_document_t   document;
    const char       *file;
    work_arena_t     *arena;
    work_error_t     *error;
    size_t            nvalues;
} yaml_reader_t;

static inline size_t
yaml_line(const yaml_node_t *node)
{
    return node->start_mark.line + 1;
}

int yaml_is_null(const yaml_node_t *node);
int yaml_read_double(yaml_reader_t *r, const work_yaml_field_t *f,
    double *value, const yaml_node_t *node);
int yaml_read_int(yaml_reader_t *r, const work_yaml_field_t *f,
    int64_t *value, const yaml_node_t *node);
int yaml_read_uint32(yaml_reader_t *r, const work_yaml_field_t *f,
    uint32_t *value, const yaml_node_t *node);

/* Reads a number; *value is `parts` times the number, rounded. */
int yaml_read_parts(yaml_reader_t *r, const work_yaml_field_t *f,
    double parts, int64_t *value, const yaml_node_t *node);
int yaml_read_word(yaml_reader_t *r, const work_yaml_field_t *f, int *value,
    const yaml_node_t *node);
int yaml_read_bool(yaml_reader_t *r, const work_yaml_field_t *f, int *value,
    const yaml_node_t *node);
int yaml_read_text(yaml_reader_t *r, const work_yaml_field_t *f,
    const char **value, const yaml_node_t *node);

#endif /* WORK_YAML_INNER_H */
