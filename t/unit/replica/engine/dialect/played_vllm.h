
/* Events in the form of vLLM 0.11. */

#ifndef PLAYED_VLLM_H
#define PLAYED_VLLM_H

#include "t/unit/replica/engine/dialect/played.h"


#define CHUNK(choice, more) \
    "{\"id\":\"chatcmpl-x\",\"object\":\"chat.completion.chunk\"," \
    "\"created\":5,\"model\":\"m\",\"choices\":[" choice "]" more "}"

#define DELTA(delta, reason, ids) \
    "{\"index\":0,\"delta\":" delta ",\"logprobs\":null,\"finish_reason\":" \
    reason ",\"token_ids\":" ids "}"

#define OURS(choice) \
    "{\"id\":\"chatcmpl-1\",\"created\":1700000000,\"model\":\"alias\"," \
    "\"object\":\"chat.completion.chunk\",\"choices\":[" choice "]}"

#define ROLE  CHUNK(DELTA("{\"role\":\"assistant\",\"content\":\"\"}", \
                          "null", "null"), \
                    ",\"prompt_token_ids\":[1,2,3]")

#endif /* PLAYED_VLLM_H */
