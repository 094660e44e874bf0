
/*
 * A body's prompt as plain text, for replicas that read only a prompt.
 *
 * For messages: "role: text" and a newline each, and "assistant:" at the end.
 * Only parts with text count.  For completions: the prompt, or the first of
 * several.
 */

#ifndef LLMGW_OPENAI_PROMPT_TEXT_H
#define LLMGW_OPENAI_PROMPT_TEXT_H

#include "core/openai/body.h"


/*
 * The text, in memory of the body's allocator, which the caller frees; it may
 * contain NULs, and is not NUL terminated.  NULL: no memory, or there is no
 * text (a prompt of token ids: FEATURE_IDS_PROMPT).
 */
char *llmgw_openai_text(const llmgw_openai_body_t *body, size_t *len);

/* The number of bytes that llmgw_openai_text() would allocate; 0: no text. */
size_t llmgw_openai_text_room(const llmgw_openai_body_t *body);

/*
 * About how many bytes of text the request has, for an estimate of its prompt's
 * tokens: the strings of messages, parts and prompts as they are in the JSON,
 * with their escapes; 4 for each id of a prompt of token ids.  The length of
 * the whole body if it has nothing of that.  Reads the prompt once, and
 * allocates nothing.
 */
size_t llmgw_openai_text_bytes(const llmgw_openai_body_t *body);

#endif /* LLMGW_OPENAI_PROMPT_TEXT_H */
