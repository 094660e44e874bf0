
/*
 * Classes of requests, and their priorities.
 *
 * A class has a priority: more is more important, and below 0 a request may be
 * shed.  critical 4, standard 3, batch -1, sheddable -2, background -3; any
 * other name, and none, counts as standard's default, 3, which an override of
 * standard does not move.  (BLIS, after the Gateway API Inference Extension.)
 */

#ifndef LLMGW_CLASSES_H
#define LLMGW_CLASSES_H

#include <stddef.h>
#include <stdint.h>


#define LLMGW_CLASSES_MAX         32    /* five are built in */
#define LLMGW_CLASS_NAME_BYTES    64
#define LLMGW_CLASS_PRIORITY_MAX  100   /* the least is its negative */
#define LLMGW_CLASS_DEFAULT       3

typedef struct {
    char     name[LLMGW_CLASS_NAME_BYTES];
    size_t   len;
    int32_t  priority;
} llmgw_class_t;

typedef struct {
    uint32_t       n;
    llmgw_class_t  classes[LLMGW_CLASSES_MAX];
} llmgw_classes_t;

typedef enum {
    LLMGW_CLASSES_OK = 0,
    LLMGW_CLASSES_RANGE,        /* the priority is beyond its limits */
    LLMGW_CLASSES_LONG,         /* the name is too long */
    LLMGW_CLASSES_FULL
} llmgw_classes_rc_t;


void llmgw_classes_init(llmgw_classes_t *classes);

/* Overrides a class, or adds one. */
llmgw_classes_rc_t llmgw_classes_set(llmgw_classes_t *classes,
    const char *name, size_t len, int32_t priority);

/* The index of the class; LLMGW_CLASSES_MAX: there is no class of that name. */
uint32_t llmgw_classes_index(const llmgw_classes_t *classes, const char *name,
    size_t len);

#endif /* LLMGW_CLASSES_H */
