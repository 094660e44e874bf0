
/* How llmgwctl usage shows its sums: for people, spreadsheets and programs. */

#ifndef CTL_USAGE_PRINT_H
#define CTL_USAGE_PRINT_H

#include <stdio.h>

#include "ctl/files/usage_sum.h"


typedef void (*ctl_usage_print_pt)(const ctl_usage_sum_t *sum,
    const ctl_usage_query_t *query, FILE *out);

/* The function for "table", "csv" or "json"; NULL: there is no such format. */
ctl_usage_print_pt ctl_usage_format(const char *name);

#endif /* CTL_USAGE_PRINT_H */
