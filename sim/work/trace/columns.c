
/* The columns of a trace, with kinds and limits. */

#include "sim/work/trace/columns.h"

#define AT(field)  offsetof(work_record_t, field)
#define US         ((double) WORK_MAX_US)
#define TOKENS     ((double) WORK_MAX_TOKENS)


/* Optional columns are at the places where BLIS writes them. */
const column_t  work_columns[WORK_NCOLUMNS] = {
    { "request_id", COLUMN_I64, AT(request_id), 0, 1e15 },
    { "client_id", COLUMN_NAME, AT(client), 0, 0 },
    { "tenant_id", COLUMN_NAME, AT(tenant), 0, 0 },
    { "slo_class", COLUMN_NAME, AT(slo_class), 0, 0 },
    { "vllm_priority", COLUMN_I32, AT(vllm_priority), 1, 1e9 },
    { "session_id", COLUMN_NAME, AT(session), 0, 0 },
    { "round_index", COLUMN_U32, AT(round), 0, 1e9 },
    { "prefix_group", COLUMN_NAME, AT(prefix_group), 0, 0 },
    { "prefix_length", COLUMN_U32, AT(prefix_length), 0, TOKENS },
    { "streaming", COLUMN_BOOL, AT(streaming), 0, 0 },
    { "input_tokens", COLUMN_U32, AT(input_tokens), 0, TOKENS },
    { "output_tokens", COLUMN_U32, AT(output_tokens), 0, TOKENS },
    { "text_tokens", COLUMN_U32, AT(text_tokens), 0, TOKENS },
    { "image_tokens", COLUMN_U32, AT(image_tokens), 0, TOKENS },
    { "audio_tokens", COLUMN_U32, AT(audio_tokens), 0, TOKENS },
    { "video_tokens", COLUMN_U32, AT(video_tokens), 0, TOKENS },
    { "reason_ratio", COLUMN_RATIO, AT(reason_ratio), 0, 1 },
    { "model", COLUMN_NAME, AT(model), 0, 0 },
    { "deadline_us", COLUMN_I64, AT(deadline_us), 0, US },
    { "slo_target_us", COLUMN_I64, AT(slo_target_us), 1, US },
    { "server_input_tokens", COLUMN_U32, AT(server_input_tokens), 0, TOKENS },
    { "arrival_time_us", COLUMN_I64, AT(arrival_us), 0, US },
    { "send_time_us", COLUMN_I64, AT(send_us), 0, US },
    { "first_chunk_time_us", COLUMN_I64, AT(first_chunk_us), 0, US },
    { "last_chunk_time_us", COLUMN_I64, AT(last_chunk_us), 0, US },
    { "num_chunks", COLUMN_U32, AT(num_chunks), 0, TOKENS },
    { "status", COLUMN_NAME, AT(status), 0, 0 },
    { "error_message", COLUMN_TEXT, AT(error_message), 0, 0 },
    { "finish_reason", COLUMN_NAME, AT(finish_reason), 0, 0 },
    { "x_request_id", COLUMN_TEXT, AT(x_request_id), 1, 0 },
    { "adapter", COLUMN_NAME, AT(adapter), 1, 0 },
    { "think_time_us", COLUMN_I64, AT(think_time_us), 1, US },
};
