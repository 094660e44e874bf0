
/* Bytes as a line on the control socket: no crash, and the answer is always a
   JSON object. */

#include <assert.h>
#include <stdlib.h>

#include "t/unit/agent/control/control_scene.h"


int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    char             *text;
    json_t           *answer;
    control_scene_t   scene;

    scene_init(&scene);
    answer = command_answer(&scene.env, &scene.peer, (const char *) data,
                            len);

    if (answer == NULL) {
        assert(scene.nreports == 1 || scene.peer.waits_for_end
               || scene.drained[0] != '\0' || scene.switched[0] != '\0');

    } else {
        text = json_dumps(answer, JSON_COMPACT);
        assert(json_is_boolean(json_object_get(answer, "ok"))
               || scene.peer.wants_events);
        free(text);
        json_decref(answer);
    }


    return 0;
}
