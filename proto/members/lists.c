
#include <stdlib.h>
#include <string.h>

#include "proto/members/file.h"
#include "proto/members/lists.h"


void
llmgw_members_lists_done(llmgw_members_lists_t *lists)
{
    size_t  i;

    for (i = 0; i < LLMGW_MEMBERS_LISTS; i++) {
        free(lists->names[i]);
    }

    memset(lists, 0, sizeof(*lists));
}


/* A place that neither the table in use nor the next one needs; -1: none. */
static ssize_t
place_unused(const llmgw_members_lists_t *lists)
{
    ssize_t  i;

    for (i = LLMGW_MEMBERS_LISTS - 1; i >= 0; i--) {
        if (lists->directory.entries[i].list == 0
            || lists->held[i] < lists->publishes)
        {
            break;
        }
    }

    return i;
}


static int
place_take(llmgw_members_lists_t *lists, size_t i, uint64_t list,
    const char *names, size_t bytes)
{
    char  *copy;

    copy = malloc(bytes);
    if (copy == NULL) {
        return -1;
    }

    memcpy(copy, names, bytes);
    free(lists->names[i]);
    lists->names[i] = copy;
    lists->directory.entries[i].list = list;
    lists->directory.entries[i].bytes = (uint32_t) bytes;

    return 0;
}


static void
place_free(llmgw_members_lists_t *lists, size_t i)
{
    free(lists->names[i]);
    lists->names[i] = NULL;
    memset(&lists->directory.entries[i], 0, sizeof(llmgw_members_entry_t));
}


static off_t
entry_at(const llmgw_members_head_t *head, size_t i)
{
    return llmgw_members_directory_at(head)
           + (off_t) (i * sizeof(llmgw_members_entry_t));
}


/*
 * Writes the names before the directory's entry: an entry whose names were not
 * written is detected by its hash.
 */
static int
place_write(const llmgw_members_lists_t *lists, size_t i, int fd,
    const llmgw_members_head_t *head)
{
    const llmgw_members_entry_t  *entry;

    entry = &lists->directory.entries[i];

    if (llmgw_members_pwrite(fd, lists->names[i], entry->bytes,
                             llmgw_members_list_at(head, i)) == -1)
    {
        return -1;
    }

    return llmgw_members_pwrite(fd, entry, sizeof(*entry), entry_at(head, i));
}


llmgw_members_rc_t
llmgw_members_lists_hold(llmgw_members_lists_t *lists, int fd,
    const llmgw_members_head_t *head, const char *names, size_t bytes,
    uint64_t *list)
{
    ssize_t   i;
    uint64_t  hash;

    if (!llmgw_members_list_is_valid(names, bytes)) {
        return LLMGW_MEMBERS_REFUSED;
    }

    hash = llmgw_members_list_hash(names, bytes);

    i = llmgw_members_directory_find(&lists->directory, hash);

    if (i == -1) {
        i = place_unused(lists);
        if (i == -1) {
            return LLMGW_MEMBERS_EFULL;
        }

        if (place_take(lists, i, hash, names, bytes) == -1) {
            return LLMGW_MEMBERS_ESYSTEM;
        }

        if (fd != -1 && place_write(lists, i, fd, head) == -1) {
            place_free(lists, i);
            return LLMGW_MEMBERS_ESYSTEM;
        }
    }

    lists->held[i] = lists->publishes + 1;
    *list = hash;

    return LLMGW_MEMBERS_DONE;
}


int
llmgw_members_lists_holds(const llmgw_members_lists_t *lists, uint64_t list)
{
    ssize_t  i;

    i = llmgw_members_directory_find(&lists->directory, list);

    return i != -1 && lists->held[i] > lists->publishes;
}


const char *
llmgw_members_lists_names(const llmgw_members_lists_t *lists, uint64_t list,
    size_t *bytes)
{
    ssize_t  i;

    i = llmgw_members_directory_find(&lists->directory, list);
    if (i == -1) {
        return NULL;
    }

    *bytes = lists->directory.entries[i].bytes;

    return lists->names[i];
}


/* A place whose list does not match its hash counts as free. */
void
llmgw_members_lists_adopt(llmgw_members_lists_t *lists, int fd,
    const llmgw_members_head_t *head)
{
    char                       names[LLMGW_MEMBERS_LIST_BYTES];
    size_t                     i, bytes;
    uint64_t                   list;
    llmgw_members_directory_t  found;

    if (llmgw_members_pread(fd, &found, sizeof(found),
                            llmgw_members_directory_at(head))
        != 1)
    {
        return;
    }

    for (i = 0; i < LLMGW_MEMBERS_LISTS; i++) {
        list = found.entries[i].list;

        if (list != 0
            && llmgw_members_list_fetch(fd, head, list, names, &bytes)
               == LLMGW_MEMBERS_DONE
            && place_take(lists, i, list, names, bytes) == 0)
        {
            lists->held[i] = lists->publishes;
        }
    }
}


int
llmgw_members_lists_write(const llmgw_members_lists_t *lists, int fd,
    const llmgw_members_head_t *head)
{
    size_t  i;

    for (i = 0; i < LLMGW_MEMBERS_LISTS; i++) {
        if (lists->directory.entries[i].list != 0
            && place_write(lists, i, fd, head) == -1)
        {
            return -1;
        }
    }

    return 0;
}


int
llmgw_members_lists_stand(const llmgw_members_lists_t *lists, int fd,
    const llmgw_members_head_t *head)
{
    size_t                        i;
    const llmgw_members_entry_t  *entry;

    for (i = 0; i < LLMGW_MEMBERS_LISTS; i++) {
        entry = &lists->directory.entries[i];

        if (entry->list != 0
            && !(llmgw_members_file_has(fd, entry, sizeof(*entry),
                                        entry_at(head, i))
                 && llmgw_members_file_has(fd, lists->names[i], entry->bytes,
                                           llmgw_members_list_at(head, i))))
        {
            return 0;
        }
    }

    return 1;
}
