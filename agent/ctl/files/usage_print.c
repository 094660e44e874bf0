
/* Prints sums of usage. */

#include <string.h>

#include "ctl/main.h"
#include "ctl/files/usage_print.h"


typedef struct {
    const ctl_usage_query_t  *query;
    FILE                     *out;
    json_t                   *groups;               /* array for JSON */
    int                       widths[CTL_NBY];      /* columns of a table */
} print_t;


/* A table: labels on the left, numbers on the right, the total at the end. */

/* The number of characters, not bytes, of a text in UTF-8. */
static int
print_width(const char *text)
{
    int  n;

    for (n = 0; *text != '\0'; text++) {
        n += ((*text & 0xc0) != 0x80);
    }

    return n;
}


static void
print_measure(const ctl_usage_group_t *group, void *data)
{
    int       width;
    uint32_t  i;
    print_t  *print = data;

    for (i = 0; i < print->query->nby; i++) {
        width = print_width(group->labels[i]);

        if (width > print->widths[i]) {
            print->widths[i] = width;
        }
    }
}


static void
print_label(const print_t *print, uint32_t i, const char *label)
{
    fprintf(print->out, "%s%*s  ", label,
            print->widths[i] - print_width(label), "");
}


static void
print_sums(const print_t *print, const ctl_usage_group_t *group)
{
    ctl_sum_t  i;

    for (i = 0; i < CTL_NSUMS; i++) {
        fprintf(print->out, "%s%*llu", i > 0 ? "  " : "",
                (int) strlen(ctl_usage_sum_name(i)),
                (unsigned long long) group->sums[i]);
    }

    fputc('\n', print->out);
}


static void
print_row(const ctl_usage_group_t *group, void *data)
{
    uint32_t        i;
    const print_t  *print = data;

    for (i = 0; i < print->query->nby; i++) {
        print_label(print, i, group->labels[i][0] ? group->labels[i] : "-");
    }

    print_sums(print, group);
}


static void
print_table(const ctl_usage_sum_t *sum, const ctl_usage_query_t *query,
    FILE *out)
{
    uint32_t   i;
    print_t    print = { .query = query, .out = out };
    ctl_sum_t  k;

    for (i = 0; i < query->nby; i++) {
        print.widths[i] = (int) strlen("gateway");
    }

    ctl_usage_sum_each(sum, print_measure, &print);

    for (i = 0; i < query->nby; i++) {
        print_label(&print, i, ctl_usage_by_name(query->by[i]));
    }

    for (k = 0; k < CTL_NSUMS; k++) {
        fprintf(out, "%s%s", k > 0 ? "  " : "", ctl_usage_sum_name(k));
    }

    fputc('\n', out);
    ctl_usage_sum_each(sum, print_row, &print);

    for (i = 0; i < query->nby; i++) {
        print_label(&print, i, i == 0 ? "total" : "");
    }

    print_sums(&print, ctl_usage_sum_total(sum));
}


/* CSV by RFC 4180: each label in quotes; quotes within are doubled. */

static void
print_csv_row(const ctl_usage_group_t *group, void *data)
{
    uint32_t        i;
    ctl_sum_t       k;
    const char     *c;
    const print_t  *print = data;

    for (i = 0; i < print->query->nby; i++) {
        fputc('"', print->out);

        for (c = group->labels[i]; *c != '\0'; c++) {
            fprintf(print->out, *c == '"' ? "\"\"" : "%c", *c);
        }

        fputs("\",", print->out);
    }

    for (k = 0; k < CTL_NSUMS; k++) {
        fprintf(print->out, "%s%llu", k > 0 ? "," : "",
                (unsigned long long) group->sums[k]);
    }

    fputs("\r\n", print->out);
}


static void
print_csv(const ctl_usage_sum_t *sum, const ctl_usage_query_t *query,
    FILE *out)
{
    uint32_t   i;
    print_t    print = { .query = query, .out = out };
    ctl_sum_t  k;

    for (i = 0; i < query->nby; i++) {
        fprintf(out, "%s,", ctl_usage_by_name(query->by[i]));
    }

    for (k = 0; k < CTL_NSUMS; k++) {
        fprintf(out, "%s%s", k > 0 ? "," : "", ctl_usage_sum_name(k));
    }

    fputs("\r\n", out);
    ctl_usage_sum_each(sum, print_csv_row, &print);
}


/* JSON: an array with an object for each group. */

static json_t *
print_object(const ctl_usage_group_t *group, const ctl_usage_query_t *query)
{
    json_t     *object;
    uint32_t    i;
    ctl_sum_t   k;

    object = json_object();

    for (i = 0; i < (group->labels[0] ? query->nby : 0); i++) {
        json_object_set_new(object, ctl_usage_by_name(query->by[i]),
                            json_string(group->labels[i]));
    }

    for (k = 0; k < CTL_NSUMS; k++) {
        json_object_set_new(object, ctl_usage_sum_name(k),
                            json_integer((json_int_t) group->sums[k]));
    }

    return object;
}


static void
print_json_group(const ctl_usage_group_t *group, void *data)
{
    const print_t  *print = data;

    json_array_append_new(print->groups, print_object(group, print->query));
}


static void
print_json(const ctl_usage_sum_t *sum, const ctl_usage_query_t *query,
    FILE *out)
{
    json_t   *object;
    print_t   print = { .query = query, .out = out, .groups = json_array() };

    ctl_usage_sum_each(sum, print_json_group, &print);

    object = json_pack("{s:o,s:o,s:I}", "groups", print.groups, "total",
                       print_object(ctl_usage_sum_total(sum), query),
                       "doubles", (json_int_t) ctl_usage_sum_doubles(sum));

    json_dumpf(object, out, JSON_COMPACT);
    fputc('\n', out);
    json_decref(object);
}


ctl_usage_print_pt
ctl_usage_format(const char *name)
{
    return strcmp(name, "table") == 0 ? print_table
           : strcmp(name, "csv") == 0 ? print_csv
           : strcmp(name, "json") == 0 ? print_json : NULL;
}
