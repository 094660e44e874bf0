
/*
 * A small CA: a key and a certificate in a directory, and certificates that it
 * signs for the processes of a fleet.
 *
 *   ca.key    its key, which only issuing needs, mode 0600
 *   ca.crt    its certificate, which every process is given
 *   NAME.key  a process's key, mode 0600
 *   NAME.crt  its certificate: for clients and servers, since most processes
 *             are both, with NAME as a subjectAltName, DNS:NAME
 *
 * Keys are of P-256.  Each file appears whole, by a rename.
 */

#ifndef CTL_AUTHORITY_H
#define CTL_AUTHORITY_H


#define AUTHORITY_ERROR_BYTES  512

typedef struct {
    const char  *dir;
    int          days;          /* validity of a certificate */
    int          is_forced;     /* existing files are replaced */
} authority_t;


/* Return 0, or -1 and one line in error (AUTHORITY_ERROR_BYTES). */
int authority_init(const authority_t *authority, char *error);

/* names, ips: further names and addresses, separated by commas; NULL: none. */
int authority_issue(const authority_t *authority, const char *name,
    const char *names, const char *ips, char *error);

#endif /* CTL_AUTHORITY_H */
