
/*
 * Days and months of UTC, and times as RFC 3339 writes them.  Times are in ms
 * since 1970, below LLMGW_DATE_MAX_MS.
 */

#ifndef LLMGW_DATE_H
#define LLMGW_DATE_H

#include <stddef.h>
#include <stdint.h>

#include "proto/limits.h"


#define LLMGW_DAY_MS       86400000ull
#define LLMGW_DATE_MAX_MS  253402300800000ull       /* the year 10,000 */
#define LLMGW_DATE_BYTES   25                       /* with the NUL */


/*
 * The number of the day or month that a time is in: greater for a later one,
 * and never 0 for a month.
 */
uint32_t llmgw_period_number(llmgw_period_t period, uint64_t unix_ms);

/* When the day or month that contains this time ends. */
uint64_t llmgw_period_end_ms(llmgw_period_t period, uint64_t unix_ms);

/* Writes a time in the form "2026-11-28T08:24:29.123Z". */
void llmgw_date_write(char date[LLMGW_DATE_BYTES], uint64_t unix_ms);

/*
 * Reads a date in the form that llmgw_date_write() writes, or the first part of
 * one: "2026-11-28", "2026-11-28T08:24Z", "2026-11-28T08:24:29Z".  0, and
 * *unix_ms is set; -1: it is no date.
 */
int llmgw_date_read(const char *text, size_t len, uint64_t *unix_ms);

#endif /* LLMGW_DATE_H */
