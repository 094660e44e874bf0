
/* A usage record in which every field is set. */

#ifndef USAGE_SCENE_H
#define USAGE_SCENE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "proto/usage/record.h"


#define BIRTH  "0199a0000000aaaaaaaaaaaaaaaaaaaa"

static const llmgw_usage_source_t  source = { "gw1", BIRTH };

static const llmgw_usage_t  usage = {
    .n = 42, .ended_ms = 1795867200123ull, .took_ms = 1250, .prompt = 120,
    .completion = 31, .cached = 96, .reasoning = 5, .wasted = 7,
    .settled_by = LLMGW_SETTLED_BY_COUNT, .key = "alice", .tenant = "lab1",
    .slo_class = "interactive", .model = "qwen3", .served = "qwen3-8b",
    .replicas = "r1 r2", .outcome = "ok", .request_id = "abc"
};

static const char  line[] =
    "{\"time\":\"2026-11-28T12:00:00.123Z\",\"gateway\":\"gw1\","
    "\"birth\":\"" BIRTH "\",\"n\":42,\"request_id\":\"abc\","
    "\"key\":\"alice\",\"tenant\":\"lab1\",\"class\":\"interactive\","
    "\"model\":\"qwen3\",\"served_model\":\"qwen3-8b\","
    "\"replicas\":[\"r1\",\"r2\"],\"prompt_tokens\":120,"
    "\"completion_tokens\":31,\"cached_tokens\":96,\"reasoning_tokens\":5,"
    "\"wasted_tokens\":7,\"outcome\":\"ok\",\"seconds\":1.250,"
    "\"settled_by\":\"count\"}\n";

#endif /* USAGE_SCENE_H */
