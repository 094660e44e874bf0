
/*
 * The URL of an engine, as people write it.
 */

#ifndef URL_H
#define URL_H


#define URL_BYTES        1024
#define URL_ERROR_BYTES  256

/*
 * http or https, a host, no user, query or fragment.  A "/v1" at its end is
 * cut off: the paths that are put behind it have their own.  0, or -1 and a
 * reason.
 */
int url_read(const char *text, char url[URL_BYTES],
    char error[URL_ERROR_BYTES]);

#endif /* URL_H */
