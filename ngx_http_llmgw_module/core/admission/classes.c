
/* Classes and their priorities.  classes.h has the rules. */

#include <string.h>

#include "core/admission/classes.h"


void
llmgw_classes_init(llmgw_classes_t *classes)
{
    size_t  i;

    static const struct {
        const char  *name;
        int32_t      priority;
    } built_in[] = {
        { "critical", 4 },
        { "standard", 3 },
        { "batch", -1 },
        { "sheddable", -2 },
        { "background", -3 }
    };

    classes->n = 0;

    for (i = 0; i < sizeof(built_in) / sizeof(built_in[0]); i++) {
        (void) llmgw_classes_set(classes, built_in[i].name,
                                 strlen(built_in[i].name),
                                 built_in[i].priority);
    }
}


llmgw_classes_rc_t
llmgw_classes_set(llmgw_classes_t *classes, const char *name, size_t len,
    int32_t priority)
{
    uint32_t        i;
    llmgw_class_t  *class;

    if (priority < -LLMGW_CLASS_PRIORITY_MAX
        || priority > LLMGW_CLASS_PRIORITY_MAX)
    {
        return LLMGW_CLASSES_RANGE;
    }

    if (len > LLMGW_CLASS_NAME_BYTES) {
        return LLMGW_CLASSES_LONG;
    }

    i = llmgw_classes_index(classes, name, len);

    if (i == LLMGW_CLASSES_MAX) {
        if (classes->n == LLMGW_CLASSES_MAX) {
            return LLMGW_CLASSES_FULL;
        }

        i = classes->n++;
        class = &classes->classes[i];
        class->len = len;
        memcpy(class->name, name, len);
    }

    classes->classes[i].priority = priority;

    return LLMGW_CLASSES_OK;
}


uint32_t
llmgw_classes_index(const llmgw_classes_t *classes, const char *name,
    size_t len)
{
    uint32_t              i;
    const llmgw_class_t  *class;

    for (i = 0; i < classes->n; i++) {
        class = &classes->classes[i];

        if (class->len == len && memcmp(class->name, name, len) == 0) {
            return i;
        }
    }

    return LLMGW_CLASSES_MAX;
}
