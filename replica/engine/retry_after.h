
/* What an HTTP answer's Retry-After asks for (RFC 9110, section 10.2.3). */

#ifndef RETRY_AFTER_H
#define RETRY_AFTER_H

#include <stddef.h>
#include <stdint.h>


#define RETRY_AFTER_MAX_MS  10000   /* whatever an engine asks for */

/*
 * The delay in milliseconds, from 0 to RETRY_AFTER_MAX_MS; -1: value is neither
 * a number of seconds nor a date.  value: the header's, without its name;
 * spaces around it are ignored.  now_s: since the epoch.
 */
int64_t retry_after_ms(const char *value, size_t len, int64_t now_s);

#endif /* RETRY_AFTER_H */
