
/*
 * Finds values by their paths in a JSON text that comes in pieces.
 *
 * It is meant for text that is passed through: only the path and the current
 * value are stored, so the memory does not depend on the text's length. For
 * text in memory use walk.h.
 *
 * A path is the keys of objects within each other, joined by dots:
 * "usage.input_tokens".  A value has none if it stands in an array, deeper
 * than LLMGW_JSON_SCAN_LEVELS objects, or under a key that has a dot or an
 * escape, or that makes the path longer than LLMGW_JSON_SCAN_PATH.
 *
 * It is not check.h: brackets, commas and colons have to be in their places,
 * but digits may be in any order, and bytes need not be UTF-8.
 */

#ifndef LLMGW_JSON_SCAN_H
#define LLMGW_JSON_SCAN_H

#include "proto/json/walk.h"


#define LLMGW_JSON_SCAN_LEVELS  8
#define LLMGW_JSON_SCAN_PATH    128     /* with its NUL */
#define LLMGW_JSON_SCAN_TEXT    64      /* longest value, or key, that is kept
                                           whole */


/*
 * Gets a value that is a string, a number, true, false or null and has a path.
 * Path and value are valid until the function returns.  A string longer than
 * LLMGW_JSON_SCAN_TEXT is cut at the end.
 */
typedef void (*llmgw_json_scan_pt)(void *arg, const char *path,
    llmgw_json_t value);

typedef struct {
    llmgw_json_scan_pt   on_value;
    void                *arg;

    /* private to scan.c */
    unsigned             state;
    unsigned             depth;
    unsigned             known;     /* levels of objects whose keys are known */
    uint64_t             objects;   /* one bit a level: 1: object, 0: array */
    unsigned             is_key:1;
    unsigned             is_escaped:1;
    unsigned             is_cut:1;
    unsigned             has_path:1;
    uint8_t              ends[LLMGW_JSON_SCAN_LEVELS];  /* where each level's
                                                           path ends */
    uint8_t              path_len;
    uint8_t              text_len;
    char                 path[LLMGW_JSON_SCAN_PATH];
    uint8_t              text[LLMGW_JSON_SCAN_TEXT];
} llmgw_json_scan_t;


/* Prepares for the beginning of a text. */
void llmgw_json_scan_init(llmgw_json_scan_t *scan, llmgw_json_scan_pt on_value,
    void *arg);

/*
 * Reads the next piece.  0: the text continues; 1: it is complete; -1: it is
 * not JSON, or deeper than LLMGW_JSON_MAX_DEPTH.  After 1 or -1 nothing more is
 * read, and the same result is returned.
 */
int llmgw_json_scan(llmgw_json_scan_t *scan, const void *bytes, size_t len);

#endif /* LLMGW_JSON_SCAN_H */
