
/*
 * The figures of a Prometheus page that an adapter asks for.
 */

#ifndef PROM_H
#define PROM_H

#include <stddef.h>
#include <stdint.h>


typedef enum {
    PROM_SUM,       /* over all labels: engines behind one server */
    PROM_MAX
} prom_join_t;

typedef struct {
    const char   *name;         /* NULL ends the table */
    int           field;        /* which value it is, from 0 */
    prom_join_t   join;
    const char   *label;        /* the number is this label's; NULL: the
                                   sample's */
} prom_name_t;

/*
 * Reads the names of the table.  Values are thousandths; -1: it is not on the
 * page.  What is no sample of these names is skipped.  -1: none was found.
 */
int prom_read(const char *text, size_t len, const prom_name_t *names,
    int64_t *values, int nvalues);

#endif /* PROM_H */
