
#include <string.h>

#include <curl/curl.h>

#include "replica/engine/retry_after.h"


#define RETRY_AFTER_BYTES  64   /* more than any form of a date has */


static int64_t
retry_after_bound(int64_t seconds)
{
    if (seconds <= 0) {
        return 0;
    }

    return seconds > RETRY_AFTER_MAX_MS / 1000 ? RETRY_AFTER_MAX_MS
                                               : seconds * 1000;
}


static int
retry_after_is_space(char c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}


int64_t
retry_after_ms(const char *value, size_t len, int64_t now_s)
{
    char     text[RETRY_AFTER_BYTES];
    size_t   i;
    time_t   date;
    int64_t  seconds;

    for ( /* void */ ; len > 0 && retry_after_is_space(*value); len--) {
        value++;
    }

    for ( /* void */ ; len > 0 && retry_after_is_space(value[len - 1]); len--)
    {
        /* void */
    }

    if (len == 0 || len >= sizeof(text)) {
        return -1;
    }

    memcpy(text, value, len);
    text[len] = '\0';
    seconds = 0;

    for (i = 0; text[i] >= '0' && text[i] <= '9'; i++) {
        seconds = seconds > RETRY_AFTER_MAX_MS
                  ? seconds : seconds * 10 + (text[i] - '0');
    }

    if (text[i] == '\0') {
        return retry_after_bound(seconds);
    }

    date = curl_getdate(text, NULL);

    return date == -1 ? -1 : retry_after_bound((int64_t) date - now_s);
}
