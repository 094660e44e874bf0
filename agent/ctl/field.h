
/*
 * Fields of an answer's objects.  A field that is missing, or of another type,
 * reads as 0, or as an empty text.
 */

#ifndef CTL_FIELD_H
#define CTL_FIELD_H

#include <jansson.h>


static inline json_int_t
ctl_number(const json_t *object, const char *name)
{
    return json_integer_value(json_object_get(object, name));
}


static inline const char *
ctl_text(const json_t *object, const char *name)
{
    const char  *text;

    text = json_string_value(json_object_get(object, name));

    return text != NULL ? text : "";
}


/* A text for people; "-" if there is none. */
static inline const char *
ctl_word(const json_t *object, const char *name)
{
    const char  *text;

    text = ctl_text(object, name);

    return text[0] != '\0' ? text : "-";
}

#endif /* CTL_FIELD_H */
