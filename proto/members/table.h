
/*
 * The writer's table in memory: what one buffer of the file is to hold, and the
 * loads from which it was made.
 */

#ifndef LLMGW_MEMBERS_TABLE_H
#define LLMGW_MEMBERS_TABLE_H

#include "proto/members/layout.h"


typedef struct {
    llmgw_members_buffer_t  *header;
    llmgw_member_t          *records;   /* behind the header, as in the file */
    llmgw_member_load_t     *loads;
    llmgw_members_slot_t    *slots;     /* likewise as in the file */
    uint32_t                *sorted;    /* for the k-th record: index of its
                                           member in the publish */
} llmgw_members_table_t;

/* Allocates a table of zeros.  0, or -1. */
int llmgw_members_table_init(llmgw_members_table_t *table, uint32_t capacity);
void llmgw_members_table_done(llmgw_members_table_t *table);

/* Bytes of header and records, and of load records, that are in use. */
size_t llmgw_members_table_bytes(const llmgw_members_table_t *table);
size_t llmgw_members_table_slots_bytes(const llmgw_members_table_t *table);

/*
 * Members become records, in the order of ids.  Records that `before` has too,
 * which is the table in use, are not checked again.  loads NULL: none is known.
 * 0, or -1: a reader would refuse one of the records.
 */
int llmgw_members_table_build(llmgw_members_table_t *table,
    const llmgw_members_table_t *before, const llmgw_member_t *const *members,
    const llmgw_member_load_t *const *loads, size_t n);

/* Replaces the load of one record. */
void llmgw_members_table_set_load(llmgw_members_table_t *table, size_t k,
    const llmgw_member_load_t *load);

/* Fills the buffer's header, for the publish that this head belongs to. */
void llmgw_members_table_seal(llmgw_members_table_t *table,
    const llmgw_members_head_t *head, size_t n, uint32_t flags);

/* 1: b, with n records and these flags, leads to the same routing as a. */
int llmgw_members_table_routes_alike(const llmgw_members_table_t *a,
    const llmgw_members_table_t *b, size_t n, uint32_t flags);

/* The index of the record with this id; -1: there is none. */
ssize_t llmgw_members_table_find(const llmgw_members_table_t *table,
    const char *id);

#endif /* LLMGW_MEMBERS_TABLE_H */
