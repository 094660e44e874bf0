
/*
 * Certificates of those who sign an engine's.
 */

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "replica/engine/ca.h"


static int
ca_has_certificate(FILE *file)
{
    char  line[128];

    static const char  begin[] = "-----BEGIN CERTIFICATE-----";

    while (fgets(line, sizeof(line), file) != NULL) {
        if (strncmp(line, begin, sizeof(begin) - 1) == 0) {
            return 1;
        }
    }

    return 0;
}


int
ca_check(const char *path, char error[CA_ERROR_BYTES])
{
    FILE        *file;
    const char  *why;

    errno = 0;
    file = fopen(path, "re");
    why = NULL;

    if (file == NULL || !ca_has_certificate(file)) {
        why = errno != 0 ? strerror(errno) : "it has no certificate in PEM";
        snprintf(error, CA_ERROR_BYTES, "CA file \"%.120s\": %s", path, why);
    }

    if (file != NULL) {
        fclose(file);
    }

    return why == NULL ? 0 : -1;
}
