
/*
 * The adapter that reports to the agent: by its command line, which engine it
 * asks, and with which files.
 */

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "ctl/doctor/gather_inner.h"


#define GATHER_WORDS_BYTES  (256u << 10)
#define GATHER_ADAPTER      "llmgw-replica"


/*
 * The value of "--name value" or "--name=value" among words that end with a NUL
 * each.
 */
static const char *
gather_option(const char *words, size_t bytes, const char *name)
{
    size_t       len;
    const char  *word, *end;

    len = strlen(name);
    end = words + bytes;

    for (word = words; word < end; word += strlen(word) + 1) {

        if (strncmp(word, name, len) != 0) {
            continue;
        }

        if (word[len] == '=') {
            return word + len + 1;
        }

        if (word[len] == '\0' && word + len + 1 < end) {
            return word + len + 1;
        }
    }

    return NULL;
}


static int
gather_is_same_file(const char *a, const char *b)
{
    struct stat  st[2];

    return strcmp(a, b) == 0
           || (stat(a, &st[0]) == 0 && stat(b, &st[1]) == 0
               && st[0].st_dev == st[1].st_dev
               && st[0].st_ino == st[1].st_ino);
}


static int
gather_is_adapter(const char *words, size_t bytes, const char *socket)
{
    const char  *name, *agent;

    if (bytes == 0) {
        return 0;
    }

    name = strrchr(words, '/');
    name = name != NULL ? name + 1 : words;
    agent = gather_option(words, bytes, "--agent");

    return strcmp(name, GATHER_ADAPTER) == 0 && agent != NULL
           && gather_is_same_file(agent, socket)
           && gather_option(words, bytes, "--engine-url") != NULL;
}


int
gather_adapter(const char *socket, gather_adapter_t *adapter)
{
    DIR            *proc;
    char            path[64];
    size_t          bytes;
    struct dirent  *entry;

    proc = opendir("/proc");
    adapter->words = NULL;

    while (proc != NULL && adapter->words == NULL
           && (entry = readdir(proc)) != NULL)
    {
        if (atoi(entry->d_name) <= 0) {
            continue;
        }

        snprintf(path, sizeof(path), "/proc/%.32s/cmdline", entry->d_name);
        bytes = 0;
        adapter->words = gather_read(path, GATHER_WORDS_BYTES, &bytes);

        if (adapter->words != NULL
            && !gather_is_adapter(adapter->words, bytes, socket))
        {
            free(adapter->words);
            adapter->words = NULL;
        }
    }

    if (proc != NULL) {
        closedir(proc);
    }

    if (adapter->words == NULL) {
        return 0;
    }

    adapter->url = gather_option(adapter->words, bytes, "--engine-url");
    adapter->key_file = gather_option(adapter->words, bytes,
                                      "--engine-key-file");
    adapter->ca_file = gather_option(adapter->words, bytes,
                                     "--engine-ca-file");

    return 1;
}
