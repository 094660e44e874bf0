
/*
 * Delivered: what the client has of a stream by now, as far as the next replica
 * has to know it (llmgateway.proto): the tokens' ids, their text, facts of the
 * prompt, the usage; and which choices are complete.
 *
 * Ids and text are kept in blocks of doubled size; the owner is asked for each.
 * If it has no room, ids and text are given up, for good.
 */

#ifndef LLMGW_DELIVERED_H
#define LLMGW_DELIVERED_H

#include <stddef.h>
#include <stdint.h>

#include "proto/token_message.h"


#define LLMGW_DELIVERED_BYTES    256    /* the first block */
#define LLMGW_DELIVERED_CHOICES  128    /* choices whose finish can be noted */


/*
 * The owner's account of memory, by number of bytes.  The bytes themselves come
 * from malloc().
 */
typedef struct {
    int   (*take)(void *owner, size_t bytes);       /* 0: no room */
    void  (*give)(void *owner, size_t bytes);
} llmgw_delivered_memory_t;

typedef struct {
    uint8_t  *data;
    size_t    len;
    size_t    size;
} llmgw_delivered_bytes_t;

typedef struct {
    const llmgw_delivered_memory_t  *memory;
    void                            *owner;
    llmgw_delivered_bytes_t          ids;           /* 4 bytes each */
    llmgw_delivered_bytes_t          text;

    uint64_t   prompt_hash;         /* 0: not known */
    uint32_t   prompt_tokens;
    uint32_t   completion_tokens;
    uint32_t   cached_tokens;

    uint32_t   nfinished;           /* choices that are complete */
    uint64_t   finished[LLMGW_DELIVERED_CHOICES / 64];

    unsigned   is_on:1;             /* ids or text were asked for at the
                                       start */
    unsigned   keeps_ids:1;
    unsigned   keeps_text:1;
    unsigned   has_begun:1;         /* the client has something */
    unsigned   has_more:1;          /* also something beside plain tokens */
    unsigned   has_prompt:1;
    unsigned   has_usage:1;
    unsigned   no_ids:1;            /* the replica says that ids are not
                                       enough */
    unsigned   never:1;             /* the replica says that neither ids nor
                                       text is enough */
    unsigned   no_memory:1;
} llmgw_delivered_t;


void llmgw_delivered_init(llmgw_delivered_t *delivered,
    const llmgw_delivered_memory_t *memory, void *owner, int keeps_ids,
    int keeps_text);

/*
 * Takes note of what goes to the client.  0: there was no memory, so ids and
 * text are given up; 0 is returned once.
 */
int llmgw_delivered_add(llmgw_delivered_t *delivered,
    const llmgw_token_t *token);

/* Gives the ids up; those that come later are not kept either. */
void llmgw_delivered_drop_ids(llmgw_delivered_t *delivered);

/*
 * Fills the message for the next replica: with ids, or else text.  The message
 * refers to the bytes of `delivered`.
 */
void llmgw_delivered_tell(const llmgw_delivered_t *delivered,
    Llmgateway__Delivered *message);

/*
 * Gives the memory of ids and text back; safe to call again.  Other facts stay.
 */
void llmgw_delivered_release(llmgw_delivered_t *delivered);

#endif /* LLMGW_DELIVERED_H */
