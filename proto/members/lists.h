
/*
 * The writer's half of the names area: which list is in which place.
 *
 * A list is held for publishes, each of which declares the lists that it needs.
 * A place is reused when its list is needed neither by the table in use nor by
 * the next one, so no record of a table in use names a list that has been
 * removed.
 */

#ifndef LLMGW_MEMBERS_LISTS_H
#define LLMGW_MEMBERS_LISTS_H

#include "proto/members/layout.h"


typedef struct {
    llmgw_members_directory_t  directory;       /* as it stands in the file */
    char                      *names[LLMGW_MEMBERS_LISTS];
    uint64_t                   held[LLMGW_MEMBERS_LISTS];
    uint64_t                   publishes;       /* number of publishes so far */
} llmgw_members_lists_t;

/* A zeroed struct has no lists. */
void llmgw_members_lists_done(llmgw_members_lists_t *lists);

/* llmgw_members_hold_list() for these lists; fd -1: there is no file. */
llmgw_members_rc_t llmgw_members_lists_hold(llmgw_members_lists_t *lists,
    int fd, const llmgw_members_head_t *head, const char *names, size_t bytes,
    uint64_t *list);

/* 1: the list is held for the next publish. */
int llmgw_members_lists_holds(const llmgw_members_lists_t *lists,
    uint64_t list);

/* llmgw_members_held_list() for these lists. */
const char *llmgw_members_lists_names(const llmgw_members_lists_t *lists,
    uint64_t list, size_t *bytes);

/*
 * Takes over the lists that a predecessor left in the file, as held for the
 * table that it left.
 */
void llmgw_members_lists_adopt(llmgw_members_lists_t *lists, int fd,
    const llmgw_members_head_t *head);

/* Writes all lists into a new file.  0, or -1 with errno. */
int llmgw_members_lists_write(const llmgw_members_lists_t *lists, int fd,
    const llmgw_members_head_t *head);

/* Whether the file has all that was written. */
int llmgw_members_lists_stand(const llmgw_members_lists_t *lists, int fd,
    const llmgw_members_head_t *head);

#endif /* LLMGW_MEMBERS_LISTS_H */
