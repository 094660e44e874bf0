
/*
 * The file of certificates that may sign an engine's.  libcurl reads it when
 * it connects; what can be wrong with it is said at the start.
 */

#ifndef CA_H
#define CA_H


#define CA_ERROR_BYTES  256

/* 0; or -1 and a reason: it cannot be read, or has no certificate (PEM). */
int ca_check(const char *path, char error[CA_ERROR_BYTES]);

#endif /* CA_H */
