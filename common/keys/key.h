
/*
 * The key that an engine asks for, from a file that only its owner reads.
 */

#ifndef KEY_H
#define KEY_H


#define KEY_BYTES        4096
#define KEY_ERROR_BYTES  256

/*
 * Reads the file's first line.  0; or -1 and a reason, which contains no part
 * of the key.
 */
int key_read(const char *path, char key[KEY_BYTES],
    char error[KEY_ERROR_BYTES]);

#endif /* KEY_H */
