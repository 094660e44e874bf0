
/* Random bodies of chat completions, with texts of many kinds. */

#ifndef RANDOM_BODY_H
#define RANDOM_BODY_H

#include "t/unit/core/openai/openai_scene.h"


static const char *const  words[] = {
    "a", "model", "role", "\"", "\\", "\n\t", "\u00e9\u20ac", "\U0001f600",
    "", "/path/", "text", "0"
};


static inline json_t *
random_text(scene_out_t *chance)
{
    char      text[1000] = "";
    unsigned  n;

    for (n = scene_chance(chance, 8); n > 0; n--) {
        strcat(text, words[scene_chance(chance, 12)]);
    }

    return json_string(text);
}


static inline json_t *
random_value(scene_out_t *chance, unsigned depth)
{
    char      key[16];
    json_t   *value;
    unsigned  n;

    switch (scene_chance(chance, depth ? 7 : 5)) {

    case 0:
        return json_null();
    case 1:
        return json_boolean(scene_chance(chance, 2));
    case 2:
        return json_integer(scene_chance(chance, 1000));
    case 3:
    case 4:
        return random_text(chance);

    case 5:
        value = json_array();

        for (n = scene_chance(chance, 5); n > 0; n--) {
            json_array_append_new(value, random_value(chance, depth - 1));
        }

        return value;

    default:
        value = json_object();

        for (n = scene_chance(chance, 5); n > 0; n--) {
            sprintf(key, "k\"%u", n);
            json_object_set_new(value, key, random_value(chance, depth - 1));
        }

        return value;
    }
}


static inline json_t *
random_message(scene_out_t *chance, const char *role)
{
    json_t  *message;

    message = json_object();
    json_object_set_new(message, "role", json_string(role));
    json_object_set_new(message, "content", random_text(chance));
    json_object_set_new(message, "name", random_value(chance, 2));

    return message;
}


static inline json_t *
random_body(scene_out_t *chance)
{
    json_t  *body, *messages;

    messages = json_array();
    json_array_append_new(messages, random_message(chance, "system"));
    json_array_append_new(messages, random_message(chance, "developer"));
    json_array_append_new(messages, random_message(chance, "user"));
    json_array_append_new(messages, random_message(chance, "assistant"));

    body = json_object();
    json_object_set_new(body, "model", json_string("m\"\u00e9"));
    json_object_set_new(body, "messages", messages);
    json_object_set_new(body, "tools", json_pack("[o]",
                                                 random_value(chance, 4)));
    json_object_set_new(body, "cache_salt", random_text(chance));
    json_object_set_new(body, "k", random_value(chance, 4));

    return body;
}

#endif /* RANDOM_BODY_H */
