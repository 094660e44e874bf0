
/*
 * The layers of each slice, as given by an operator.
 */

#ifndef RANGES_H
#define RANGES_H

#include <stddef.h>
#include <stdint.h>


#define RANGES_MAX          64          /* slices of one run */
#define RANGES_ERROR_BYTES  160
#define RANGES_GAPS_BYTES   ((RANGES_MAX + 1) * (5 + 1 + 5 + 1))

typedef struct {
    uint32_t  first;
    uint32_t  last;
} range_t;

typedef struct {
    range_t  ranges[RANGES_MAX];
    size_t   n;
} ranges_t;

/*
 * All functions return 0, or -1 and the valid values; layers are numbered from
 * 0.
 *
 * even    n slices, in order, whose numbers of layers differ by one at most
 * cuts    "4,8,12": where slices other than the first begin
 * parse   "0-7,4-11,15": the range of each; they may overlap
 */
int ranges_even(ranges_t *r, uint32_t layers, uint32_t n,
    char error[RANGES_ERROR_BYTES]);
int ranges_cuts(ranges_t *r, uint32_t layers, const char *text,
    char error[RANGES_ERROR_BYTES]);
int ranges_parse(ranges_t *r, uint32_t layers, const char *text,
    char error[RANGES_ERROR_BYTES]);

/* Writes the layers that no slice has, as "4,8-9", and returns their number. */
uint32_t ranges_gaps(const ranges_t *r, uint32_t layers,
    char text[RANGES_GAPS_BYTES]);

#endif /* RANGES_H */
