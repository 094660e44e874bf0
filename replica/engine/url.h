
/*
 * The URL of an engine, as people write it.
 */

#ifndef URL_H
#define URL_H


#define URL_BYTES        1024
#define URL_ERROR_BYTES  256

/*
 * Accepts http or https with a host, without user, query or fragment.  A "/v1"
 * at the end is cut off, since the paths that are appended have their own.  0,
 * or -1 and a reason.
 */
int url_read(const char *text, char url[URL_BYTES],
    char error[URL_ERROR_BYTES]);

#endif /* URL_H */
