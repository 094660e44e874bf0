
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sodium.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/keys/keyring_file.h"
#include "common/os/private_file.h"


/*
 * Longest line that is read at once: a key and its mark have 66 characters, the
 * rest is for a comment.
 */
#define KEYRING_LINE_BYTES  512

#define KEYRING_HEX_CHARS     (2 * KEYRING_KEY_BYTES)
#define KEYRING_BASE64_BYTES  45        /* for 32 bytes, with the NUL */


static int
keyring_fail(char *error, const char *path, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static int
keyring_fail(char *error, const char *path, const char *format, ...)
{
    int      n;
    va_list  args;

    n = snprintf(error, KEYRING_ERROR_BYTES, "keyring \"%.120s\": ", path);

    va_start(args, format);
    vsnprintf(error + n, KEYRING_ERROR_BYTES - n, format, args);
    va_end(args);

    return -1;
}


int
keyring_key_decode(keyring_key_t *key, const char *text)
{
    int            rc;
    size_t         len, n;
    uint8_t        hash[crypto_generichash_BYTES_MIN];
    keyring_key_t  decoded;

    len = strlen(text);

    if (len == KEYRING_HEX_CHARS) {
        rc = sodium_hex2bin(decoded.bytes, KEYRING_KEY_BYTES, text, len, NULL,
                            &n, NULL);
    } else {
        rc = sodium_base642bin(decoded.bytes, KEYRING_KEY_BYTES, text, len,
                               NULL, &n, NULL,
                               sodium_base64_VARIANT_ORIGINAL);
    }

    if (rc == 0 && n == KEYRING_KEY_BYTES) {
        crypto_generichash(hash, sizeof(hash), decoded.bytes,
                           KEYRING_KEY_BYTES, NULL, 0);
        memcpy(key->id, hash, KEYRING_ID_BYTES);
        memcpy(key->bytes, decoded.bytes, KEYRING_KEY_BYTES);

    } else {
        rc = -1;
    }

    sodium_memzero(&decoded, sizeof(decoded));

    return rc;
}


size_t
keyring_ring_find(const keyring_ring_t *ring, const uint8_t *id)
{
    size_t  i;

    for (i = 0; i < ring->n; i++) {
        if (memcmp(ring->keys[i].id, id, KEYRING_ID_BYTES) == 0) {
            break;
        }
    }

    return i;
}


static char *
keyring_trim(char *text)
{
    size_t  len;

    text += strspn(text, " \t");
    len = strlen(text);

    while (len > 0 && isspace((unsigned char) text[len - 1])) {
        text[--len] = '\0';
    }

    return text;
}


/* Takes a line.  Returns NULL, or the error in it. */
static const char *
keyring_take_line(keyring_ring_t *ring, char *line, int *has_primary)
{
    int             is_primary;
    keyring_key_t  *key;

    line = keyring_trim(line);

    if (line[0] == '\0' || line[0] == '#') {
        return NULL;
    }

    is_primary = line[0] == '*';

    if (is_primary && *has_primary) {
        return "a second primary";
    }

    if (ring->n == KEYRING_MAX_KEYS) {
        return "more than 8 keys";
    }

    key = &ring->keys[ring->n];

    if (keyring_key_decode(key, keyring_trim(line + is_primary)) != 0) {
        return "no key: 64 hexadecimal digits, or base64 of 32 bytes";
    }

    if (keyring_ring_find(ring, key->id) != ring->n) {
        return "this key is there already";
    }

    if (is_primary) {
        ring->primary = ring->n;
        *has_primary = 1;
    }

    ring->n++;

    return NULL;
}


/* A line longer than the buffer is read in pieces, none of which is a key. */
static int
keyring_read_lines(keyring_ring_t *ring, FILE *file, const char *path,
    char *error)
{
    int          has_primary;
    char         line[KEYRING_LINE_BYTES];
    unsigned     number;
    const char  *wrong;

    has_primary = 0;
    wrong = NULL;

    for (number = 1; fgets(line, sizeof(line), file) != NULL; number++) {
        wrong = keyring_take_line(ring, line, &has_primary);

        if (wrong != NULL) {
            break;
        }
    }

    sodium_memzero(line, sizeof(line));

    if (wrong != NULL) {
        return keyring_fail(error, path, "line %u: %s", number, wrong);
    }

    if (ferror(file)) {
        return keyring_fail(error, path, "it could not be read");
    }

    return ring->n > 0 ? 0 : keyring_fail(error, path, "no key in it");
}


static int
keyring_check_owner(FILE *file, const char *path, char *error)
{
    struct stat  st;

    if (fstat(fileno(file), &st) == -1) {
        return keyring_fail(error, path, "%s", strerror(errno));
    }

    if (st.st_uid != geteuid() && st.st_uid != 0) {
        return keyring_fail(error, path, "it is another user's");
    }

    return 0;
}


int
keyring_file_read(keyring_ring_t *ring, const char *path, char *error)
{
    int              rc;
    FILE            *file;
    keyring_ring_t   read;
    char             why[PRIVATE_FILE_WHY_BYTES];

    file = private_file_open(path, why);

    if (file == NULL) {
        return keyring_fail(error, path, "%s", why);
    }

    setvbuf(file, NULL, _IONBF, 0);     /* a buffer would leave keys in freed
                                           memory */
    memset(&read, 0, sizeof(read));

    rc = keyring_check_owner(file, path, error) != 0
         || keyring_read_lines(&read, file, path, error) != 0 ? -1 : 0;
    fclose(file);

    if (rc == 0) {
        *ring = read;
    }

    sodium_memzero(&read, sizeof(read));

    return rc;
}


static int
keyring_write_keys(const keyring_ring_t *ring, int fd)
{
    int     rc;
    char    text[KEYRING_BASE64_BYTES];
    size_t  i;

    rc = dprintf(fd, "# keys of llmgw-agent; '*': seals\n") < 0 ? -1 : 0;

    for (i = 0; i < ring->n && rc == 0; i++) {
        sodium_bin2base64(text, sizeof(text), ring->keys[i].bytes,
                          KEYRING_KEY_BYTES, sodium_base64_VARIANT_ORIGINAL);

        if (dprintf(fd, "%s%s\n", i == ring->primary ? "* " : "", text) < 0) {
            rc = -1;
        }
    }

    sodium_memzero(text, sizeof(text));

    return rc;
}


/* Syncs the file's directory, so that the rename outlasts a power cut. */
static void
keyring_sync_directory(const char *path)
{
    int          fd;
    char         directory[PATH_MAX];
    const char  *slash;

    slash = strrchr(path, '/');

    if (slash == NULL) {
        strcpy(directory, ".");

    } else {
        snprintf(directory, sizeof(directory), "%.*s",
                 (int) (slash - path + 1), path);
    }

    fd = open(directory, O_RDONLY|O_DIRECTORY|O_CLOEXEC);

    if (fd != -1) {
        fsync(fd);
        close(fd);
    }
}


int
keyring_file_write(const keyring_ring_t *ring, const char *path, char *error)
{
    int   fd, rc;
    char  temporary[PATH_MAX + 8];

    snprintf(temporary, sizeof(temporary), "%s.new", path);
    unlink(temporary);                  /* left by an agent that died here */

    fd = open(temporary, O_WRONLY|O_CREAT|O_EXCL|O_NOFOLLOW|O_CLOEXEC, 0600);
    if (fd == -1) {
        return keyring_fail(error, path, "it cannot be written anew: %s",
                            strerror(errno));
    }

    rc = keyring_write_keys(ring, fd) != 0 || fsync(fd) != 0 ? -1 : 0;
    close(fd);

    if (rc != 0 || rename(temporary, path) != 0) {
        keyring_fail(error, path, "it cannot be written anew: %s",
                     strerror(errno));
        unlink(temporary);
        return -1;
    }

    keyring_sync_directory(path);

    return 0;
}
