
/*
 * Durations as people write them: "50ms", "2s", "1m", "1h", "0".
 */

#ifndef DURATION_H
#define DURATION_H

#include <stdint.h>


/* The longest duration that is accepted: a year. */
#define DURATION_MAX_MS  (365ULL * 24 * 3600 * 1000)

/*
 * Parses digits and one unit (ms s m h; without a unit only 0).  0 and *ms; or
 * -1, and *ms is unchanged: empty, negative, with a fraction, another unit, or
 * too long.
 */
int duration_parse(const char *text, uint64_t *ms);

/* Writes the shortest exact form ("1500ms", "2s", "1m"); buf: >= 24 bytes. */
void duration_format(char *buf, uint64_t ms);

#endif /* DURATION_H */
