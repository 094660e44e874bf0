
/* Times of chunks, read, written, and found by request. */

#include "sim/work/trace/itl.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/work/arena.h"
#include "sim/work/csv.h"
#include "sim/work/file.h"


void
work_itl_add(work_itl_t *itl, int64_t request_id, uint32_t chunk,
    int64_t at_us)
{
    work_grow(&itl->chunks, &itl->max, itl->n + 1, sizeof(work_chunk_t));

    itl->chunks[itl->n].request_id = request_id;
    itl->chunks[itl->n].chunk = chunk;
    itl->chunks[itl->n++].at_us = at_us;
}


void
work_itl_done(work_itl_t *itl)
{
    free(itl->chunks);
    memset(itl, 0, sizeof(*itl));
}


static int
read_number(const work_csv_t *csv, size_t column, int64_t max, int64_t *value,
    work_error_t *error)
{
    char         *end;
    const char   *text;
    long long     number;

    text = csv->fields[column];
    errno = 0;
    number = strtoll(text, &end, 10);

    if (end == text || *end != '\0' || errno != 0 || number < 0
        || number > max)
    {
        return work_fail(error, csv->file, csv->line,
                         "\"%.40s\" is no whole number from 0 to %lld", text,
                         (long long) max);
    }

    *value = number;

    return 0;
}


static int
read_row(work_itl_t *itl, const work_csv_t *csv, work_error_t *error)
{
    int64_t  id, chunk, at_us;

    if (csv->n != 3) {
        return work_fail(error, csv->file, csv->line,
                         "%zu columns where 3 are needed", csv->n);
    }

    if (itl->n == WORK_MAX_CHUNKS) {
        return work_fail(error, csv->file, csv->line, "more than %d chunks",
                         WORK_MAX_CHUNKS);
    }

    if (read_number(csv, 0, INT64_MAX, &id, error) != 0
        || read_number(csv, 1, UINT32_MAX, &chunk, error) != 0
        || read_number(csv, 2, INT64_C(1) << 53, &at_us, error) != 0)
    {
        return -1;
    }

    work_itl_add(itl, id, (uint32_t) chunk, at_us);

    return 0;
}


static int
read_rows(work_itl_t *itl, work_csv_t *csv, work_error_t *error)
{
    int     rc;
    size_t  i;

    static const char *const  columns[] = { "request_id", "chunk_index",
                                            "timestamp_us" };

    rc = work_csv_next(csv, error);

    for (i = 0; rc > 0 && i < 3; i++) {
        if (csv->n != 3 || strcmp(csv->fields[i], columns[i]) != 0) {
            return work_fail(error, csv->file, csv->line, "the columns are "
                             "not request_id,chunk_index,timestamp_us");
        }
    }

    if (rc == 0) {
        return work_fail(error, csv->file, 1,
                         "empty: a row of columns is needed");
    }

    while (rc > 0 && (rc = work_csv_next(csv, error)) > 0) {
        if (read_row(itl, csv, error) != 0) {
            return -1;
        }
    }

    return rc;
}


/* By request, chunk, time. */
static int
chunk_order(const void *a, const void *b)
{
    const work_chunk_t  *x, *y;

    x = a;
    y = b;

    if (x->request_id != y->request_id) {
        return x->request_id < y->request_id ? -1 : 1;
    }

    if (x->chunk != y->chunk) {
        return x->chunk < y->chunk ? -1 : 1;
    }

    return x->at_us < y->at_us ? -1 : x->at_us > y->at_us;
}


int
work_itl_read(work_itl_t *itl, const char *path, work_error_t *error)
{
    int          rc;
    char        *bytes;
    size_t       len;
    work_csv_t   csv;

    bytes = work_file_read(path, &len, error);

    if (bytes == NULL) {
        return -1;
    }

    work_csv_init(&csv, path, bytes, len);
    rc = read_rows(itl, &csv, error);
    free(bytes);

    if (rc == 0 && itl->n > 0) {
        qsort(itl->chunks, itl->n, sizeof(itl->chunks[0]), chunk_order);
    }

    return rc;
}


int
work_itl_write(const work_itl_t *itl, const char *path, work_error_t *error)
{
    int      failed;
    FILE    *f;
    size_t   i;

    f = fopen(path, "wb");

    if (f == NULL) {
        return work_fail(error, path, 0, "%s", strerror(errno));
    }

    fputs("request_id,chunk_index,timestamp_us\n", f);

    for (i = 0; i < itl->n; i++) {
        fprintf(f, "%lld,%u,%lld\n", (long long) itl->chunks[i].request_id,
                itl->chunks[i].chunk, (long long) itl->chunks[i].at_us);
    }

    failed = ferror(f);
    failed |= fclose(f) != 0;

    return failed ? work_fail(error, path, 0, "%s", strerror(errno)) : 0;
}


const work_chunk_t *
work_itl_of(const work_itl_t *itl, int64_t request_id, size_t *n)
{
    size_t  low, high, middle, end;

    low = 0;
    high = itl->n;

    while (low < high) {
        middle = low + (high - low) / 2;

        if (itl->chunks[middle].request_id < request_id) {
            low = middle + 1;

        } else {
            high = middle;
        }
    }

    for (end = low; end < itl->n
         && itl->chunks[end].request_id == request_id; end++)
    {
    }

    *n = end - low;

    return &itl->chunks[low];
}
