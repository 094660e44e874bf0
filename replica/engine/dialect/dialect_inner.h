
/*
 * A call: what the files of this folder share.
 *
 * An HTTP request is one of a call's steps.  The engine's answer is sent on in
 * one of three forms:
 *
 *   OUT_DATA    chunks as the engine wrote them, with our id, created, model
 *   OUT_TEXT    text, ids, finish, usage: the front writes all JSON
 *   OUT_WHOLE   nothing but an answer in one piece, at the end
 *
 * A stream that is resumed by ids, or that is requested as the completion of a
 * rendered chat, is OUT_TEXT, since the engine's chunks are not those of the
 * chat.
 */

#ifndef DIALECT_INNER_H
#define DIALECT_INNER_H

#include "proto/grpc/session.h"
#include "proto/json/check.h"
#include "proto/json/scan.h"
#include "proto/json/text.h"
#include "replica/engine/dialect/buf.h"
#include "replica/engine/dialect/dialect.h"


#define CALL_MAX_CHOICES    128     /* OpenAI's own limit of n */
#define CALL_MAX_FINISH     16      /* choices that end in one event */
#define CALL_MAX_EVENT_IDS  (1 << 20)   /* a prompt's, too: a long context */
#define CALL_MAX_TOKENS     (1 << 30)


typedef enum {
    STEP_PIECES,        /* ids of which only the text is known */
    STEP_DETOKENIZE,    /* whether the delivered ids end inside a character */
    STEP_RENDER,        /* the prompt as text or ids */
    STEP_GENERATE,      /* a stream of events */
    STEP_WHOLE,         /* an answer in one piece, as the client asked */
    STEP_PASS           /* any other API: bytes are passed on as they are */
} step_t;

typedef enum {
    OUT_DATA,
    OUT_TEXT,
    OUT_WHOLE
} out_t;

typedef struct assembly_s assembly_t;   /* whole.c */
typedef struct extra_s extra_t;         /* extra.c */

/* The choices that end in one event. */
typedef struct {
    Llmgateway__Finish   finish[CALL_MAX_FINISH];
    Llmgateway__Finish  *list[CALL_MAX_FINISH];
    size_t               reason_at[CALL_MAX_FINISH];
} finishes_t;

/* The last event, kept to recognize further ones like it (again.c). */
typedef struct {
    size_t    begin;
    size_t    end;
    int       is_text;          /* 0: it is ids */
} again_span_t;

typedef struct {
    buf_t         event;
    again_span_t  spans[2];     /* text and ids in it, in their order */
    size_t        nspans;       /* 0: no event is kept */
    size_t        chunk_text;   /* where the text begins in the chunk */
    size_t        chunk_end;    /* where the part after the text begins */
    size_t        chunk_len;

    /* of the event that is being read */
    llmgw_json_t  text;
    llmgw_json_t  ids;
    int           is_odd;       /* it cannot be kept */
} again_t;

/* Units that are counted in an answer that is passed on. */
typedef enum {
    PASS_INPUT = 0,
    PASS_CACHE_READ,        /* of the prompt, not included in the input */
    PASS_CACHE_WRITTEN,     /* the same */
    PASS_OUTPUT,
    PASS_TOTAL,             /* input and output, if only their sum is given */
    PASS_CACHED,            /* of the input */
    PASS_REASONING,         /* of the output */
    PASS_NUNITS
} pass_unit_t;

typedef struct {
    unsigned  known;        /* a bit for each unit */
    uint32_t  n[PASS_NUNITS];
} pass_counts_t;

/* What pass.c reads of an answer that is passed on. */
typedef struct {
    unsigned           is_events:1;
    unsigned           is_data:1;       /* of the current line */
    unsigned           was_cr:1;
    unsigned           has_ended:1;     /* the event's or the answer's text has
                                           ended */
    unsigned           has_text:1;      /* the event has text: it is a token */
    unsigned           has_usage:1;     /* call->usage, not reported yet */
    unsigned           has_id:1;        /* id is known, not reported yet */
    unsigned           column;          /* in the current line, up to a limit */
    llmgw_json_scan_t  scan;            /* of the event, or of the answer */
    char               type[64];        /* of the event */
    const char        *object;          /* where its counts were found */
    pass_counts_t      found;           /* in the event, or in the answer */
    pass_counts_t      counts;
    uint32_t           tokens;          /* received and not reported yet */
    char               id[129];         /* of a response */
} pass_t;

struct dialect_call_s {
    const dialect_t                    *dialect;
    const dialect_facts_t              *facts;
    const Llmgateway__GenerateRequest  *request;    /* NULL: not needed */

    /* what is kept of the request */
    Llmgateway__Api   api;
    unsigned          want;
    uint32_t          features;
    unsigned          is_infer:1;
    unsigned          is_plain:1;       /* the caller reads nothing but
                                           tokens */
    unsigned          is_stream:1;      /* the client reads a stream */
    unsigned          include_usage:1;
    unsigned          keeps_ids:1;      /* the client itself asked for them */
    unsigned          is_rendered:1;    /* requested as a rendered prompt */
    unsigned          goes_on:1;        /* something was delivered before */
    unsigned          by_text:1;        /* it may be resumed by text, if ids are
                                           missing */
    buf_t             id;               /* as JSON, with quotes */
    buf_t             model;
    int64_t           created;
    uint32_t          nchoices;         /* of the request; 0: unknown */
    uint32_t          nalike;           /* choices of each prompt */
    Llmgateway__ResumeBy  resume_by;

    /* what was delivered before */
    uint32_t          base_tokens;
    uint32_t          base_prompt;
    uint64_t          base_hash;
    uint32_t          base_cached;
    const uint32_t   *given;            /* the request's, or given_ids */
    uint32_t         *given_ids;
    size_t            nkept;            /* of the ids whose text is known */
    buf_t             engine_model;     /* as JSON; empty: as in the body */
    buf_t             path;             /* of another pass; ends with NUL */
    buf_t             type;             /* of its body; the same */

    /* the HTTP request under way and its answer */
    step_t            step;
    dialect_http_t    http;
    buf_t             body;
    unsigned          status;
    char              content_type[64];
    unsigned          reads_events:1;
    unsigned          passes:1;         /* its bytes are passed on as they
                                           come */
    unsigned          is_open:1;        /* its length is not given */
    unsigned          is_bare:1;        /* a request without a body: what its
                                           answer counts was counted before */
    pass_t            pass;
    buf_t             answer;

    /* the rendered prompt */
    buf_t             prompt;           /* as JSON: a string, or ids */
    uint32_t          prompt_tokens;
    uint64_t          prompt_hash;
    uint32_t          context;          /* 0: unknown */

    /* what has come */
    uint64_t          tokens;
    uint64_t          engine_tokens;    /* as the engine counts them */
    uint64_t          begun[CALL_MAX_CHOICES / 64];     /* bit set: a chunk of
                                                           that choice was
                                                           sent */
    uint64_t          finished[CALL_MAX_CHOICES / 64];
    uint32_t          nfinished;
    uint32_t          ncounted;         /* choices whose usage has come */
    Llmgateway__Usage counted;          /* their sum */
    unsigned          has_prompt:1;     /* known, and not reported yet */
    unsigned          has_reasoned:1;
    unsigned          has_called:1;     /* a tool was called */
    unsigned          has_text:1;
    unsigned          said_prompt:1;
    unsigned          said_head:1;      /* the head of a raw answer was sent */
    out_t             out;
    assembly_t       *assembly;
    extra_t          *extra;            /* NULL: nothing is kept */

    /* the current message */
    Llmgateway__GenerateResponse  message;
    Llmgateway__GenerateResponse  raw_message;
    Llmgateway__Prompt            message_prompt;
    Llmgateway__Usage             usage;
    finishes_t                   *finishes;     /* NULL: none has come yet */
    Llmgateway__Failure           failure;
    Llmgateway__Raw               raw;
    Llmgateway__Extra             message_extra;
    buf_t             data;
    again_t           again;
    buf_t             token;
    buf_t             reasons;
    uint32_t         *ids;
    size_t            nids;             /* with those that are withheld */
    size_t            ids_size;
    unsigned          has_message:1;
    unsigned          has_final:1;
    const char       *raw_at;           /* what is still to be sent */
    size_t            raw_left;

    int               grpc_status;
    char             *why;              /* NULL: nothing failed, or no memory */
};

/* What becomes of a key of the client's body in a request of another kind. */
typedef enum {
    KEY_UNKNOWN = 0,    /* not known: such a request cannot be made */
    KEY_KEEP,           /* is kept, in a completion too */
    KEY_DROP,           /* is dropped: it has no meaning there, or is written
                           anew */
    KEY_RENDER          /* shapes the prompt: rendering has to know it */
} key_rule_t;

/* Which engine's rules: a column of the table in can.c. */
typedef enum {
    KEYS_NONE = 0,      /* knows no keys */
    KEYS_VLLM,
    KEYS_SGLANG,
    KEYS_LLAMACPP,
    KEYS_COLUMNS = KEYS_LLAMACPP
} keys_column_t;

struct dialect_ops_s {
    keys_column_t  keys;            /* keys that a rendered request may have */

    const char  *render_path;       /* renders a chat; NULL: the engine
                                       cannot */
    const char  *completion_path;   /* of a rendered prompt */
    const char  *detokenize_path;   /* NULL: an event has one token */
    const char  *tokenize_path;     /* of pieces (piece.c); NULL: it has none */
    const char  *detokenized;       /* the key of its answer */
    int32_t      completion_tokens; /* without max_tokens; 0: no limit */

    unsigned  has_ids:1;            /* return_token_ids at completions */
    unsigned  has_chat_ids:1;       /* and at chat */
    unsigned  continues:1;          /* knows continue_final_message */
    unsigned  prefills:1;           /* continues a last assistant message */
    unsigned  has_min_tokens:1;
    unsigned  counts_prompt:1;      /* penalties count the prompt, too */
    unsigned  counts_choices:1;     /* each choice has a usage of its own */
    unsigned  holds_stops:1;        /* withholds what may begin a stop string */
    unsigned  always_streams:1;     /* a whole answer is requested as a
                                       stream */
    unsigned  assembles:1;          /* a whole answer is requested as a stream
                                       if nothing is lost by that */
    unsigned  renders_text:1;       /* to text, which it tokenizes itself; 0: to
                                       ids */
    unsigned  says_context:1;       /* when it renders */

    int       priority;     /* as in dialect_facts_t, for an engine that does
                               not report it */
    int32_t   context_margin;       /* tokens of the context that are never
                                       used */

    /* Writes the keys of a completion after its prompt; NULL: OpenAI's. */
    void         (*generate)(dialect_call_t *call, buf_t *body);
    /* Reads an event of the answer to a rendered prompt; NULL: OpenAI's
       chunks. */
    dialect_do_t (*event)(dialect_call_t *call, llmgw_json_t event);
    /* Whether an answer of 5xx is the request's own fault; may be NULL. */
    int          (*is_fault)(unsigned status, const char *message);
};


/* --- call.c */

/* Ends the call; the text is for people. */
dialect_do_t call_fail(dialect_call_t *call, int grpc_status,
    const char *text, ...) __attribute__((format(printf, 3, 4)));

/* Ends the call for a malformed answer: another replica may do better. */
dialect_do_t call_malformed(dialect_call_t *call, const char *what);

/* Every choice has its finish_reason. */
int call_is_complete(const dialect_call_t *call);

/* Begins a step: clears the body of its HTTP request. */
void call_step(dialect_call_t *call, step_t step, const char *path);


/* --- edit.c: bodies */

typedef struct {
    const char  *name;      /* the key; NULL ends a list */
    llmgw_json_t      value;     /* what replaces it; absent: it is dropped */
} edit_t;

/*
 * Writes the client's body with some members dropped, and new ones after the
 * rest.  0, or -1: its Members do not fit it.
 */
int edit_body(const Llmgateway__OpenaiRequest *openai, const edit_t *edits,
    buf_t *to);

/* The last of the Members, which fit the body, with this name; absent if there
   is none. */
llmgw_json_t edit_find(const Llmgateway__OpenaiRequest *openai,
    const char *name);

/* Whether the Members fit the body. */
int edit_is_sound(const Llmgateway__OpenaiRequest *openai);


/* --- plan.c: which steps a call takes */

dialect_do_t plan_start(dialect_call_t *call);

/* Take the answers of 2xx to these steps. */
dialect_do_t plan_pieces(dialect_call_t *call, llmgw_json_t answer);
dialect_do_t plan_detokenized(dialect_call_t *call, llmgw_json_t answer);
dialect_do_t plan_rendered(dialect_call_t *call, llmgw_json_t answer);

/* The step was refused.  0 and *next, if the call can continue without it; else
   -1. */
int plan_without(dialect_call_t *call, unsigned status, dialect_do_t *next);


/* --- can.c: whether a request can be served so; NULL: yes; else why not */

const char *can_ids(dialect_call_t *call);
const char *can_text(dialect_call_t *call);

/* Whether a whole answer can be made from a stream's texts without a loss. */
int can_assemble(const dialect_call_t *call);

/* The rule of a key of the client's body. */
key_rule_t can_key(keys_column_t column, const char *name);


/* --- ask.c: the requests' bodies */

dialect_do_t ask_pass(dialect_call_t *call);
dialect_do_t ask_form(dialect_call_t *call);        /* of ask_pass.c */
dialect_do_t ask_bare(dialect_call_t *call);        /* the same */
dialect_do_t ask_whole(dialect_call_t *call);

/* The path of the call's API; NULL: there is none.  Of ask_pass.c */
const char *ask_path(dialect_call_t *call);

/* DIALECT_ASK, unless the body could not be written. */
dialect_do_t ask_ready(dialect_call_t *call);
dialect_do_t ask_direct(dialect_call_t *call);
dialect_do_t ask_pieces(dialect_call_t *call);
dialect_do_t ask_detokenize(dialect_call_t *call);
dialect_do_t ask_render(dialect_call_t *call);
dialect_do_t ask_rendered(dialect_call_t *call);

/* What is left of the limit of tokens; -1: there is no limit. */
int64_t ask_tokens_left(const dialect_call_t *call);


/* --- message.c: what goes to the gateway */

/* Empties the current message; withheld ids stay. */
void message_begin(dialect_call_t *call);

void message_ids(dialect_call_t *call, llmgw_json_t ids, int *is_wrong);

/* Ids are missing from here on: neither they nor what needs them is sent any
   more. */
void message_without_ids(dialect_call_t *call);

/* 0, or -1: reason is no string, there are too many, or out of memory. */
int message_finish(dialect_call_t *call, uint32_t index, llmgw_json_t reason);

/* Sets the usage.  counted: by the engine, for what it was asked. */
void message_usage(dialect_call_t *call, const Llmgateway__Usage *counted);

/* Writes the same as OpenAI's object, with other members of the engine's
   usage. */
void message_usage_write(const dialect_call_t *call, llmgw_json_t usage,
    buf_t *to);

/* The message is whole.  has_data: call->data holds its chunk. */
dialect_do_t message_end(dialect_call_t *call, int has_data);

/* Hash a prompt's ids, or its text; -1: they are not ids. */
int message_hash_ids(llmgw_json_t ids, uint32_t *count, uint64_t *hash);

uint64_t message_hash_text(const void *text, size_t len);

/* Reports the prompt, which is known now. */
void message_prompt(dialect_call_t *call, uint32_t tokens, uint64_t hash);


/* Adds an id.  0, or -1: out of memory, or too many. */
int message_id(dialect_call_t *call, uint32_t id);


/* --- extra.c: what is kept for the end of a whole answer */

/* Keep a member of the answer, or of one of its choices. */
void extra_answer(dialect_call_t *call, llmgw_json_t key, llmgw_json_t value);
void extra_choice(dialect_call_t *call, uint32_t index, llmgw_json_t key,
    llmgw_json_t value);

/* The buffer for the usage; NULL: it is not kept. */
buf_t *extra_usage(dialect_call_t *call);

/* Append the members that are kept, each after a comma. */
void extra_write_answer(const dialect_call_t *call, buf_t *to);
void extra_write_choice(const dialect_call_t *call, uint32_t index, buf_t *to);

/* 0: there is none. */
int extra_write_usage(const dialect_call_t *call, buf_t *to);

/* Puts all that is kept into the last message. */
void extra_fill(dialect_call_t *call);
void extra_free(dialect_call_t *call);


/* --- piece.c: ids of which only the text is known */

/* Puts `missing` ids before the last one.  0, or -1: its text does not fit
   them. */
int piece_fill(dialect_call_t *call, uint64_t missing);

int piece_is_one(uint32_t id);

/* Writes what is to be tokenized: a list of strings and ids between them. */
void piece_write(const dialect_call_t *call, buf_t *to);

/* Reads the ids of that list into call->given.  0, or -1: they are not the ids
   that were meant. */
int piece_read(dialect_call_t *call, llmgw_json_t ids);


/* --- again.c: events like the last one */

/* 1: the event is like the last one, and *next is what follows.  0: it has to
   be parsed. */
int again_event(dialect_call_t *call, const char *data, size_t len,
    dialect_do_t *next);

/* To be called before, during and after the parsing of an event: where its text
   and its ids are. */
void again_begin(dialect_call_t *call);
void again_text(dialect_call_t *call, llmgw_json_t text);
void again_ids(dialect_call_t *call, llmgw_json_t ids);
void again_keep(dialect_call_t *call, llmgw_json_t event);


/* --- chunk.c: events of OpenAI's kind */

dialect_do_t chunk_event(dialect_call_t *call, llmgw_json_t event);

/* 0: usage is no usage, or others have to be added to it. */
int chunk_usage(dialect_call_t *call, llmgw_json_t usage);


/* --- whole.c: answers in one piece */

/* 0, or -1: out of memory, or the answer is too long. */
int whole_delta(dialect_call_t *call, uint32_t index, llmgw_json_t choice);
dialect_do_t whole_end(dialect_call_t *call);
dialect_do_t whole_answer(dialect_call_t *call);
void whole_free(dialect_call_t *call);


/* --- pass.c: counts the tokens of an answer that is passed on */

/* The answer's head has come. */
void pass_begin(dialect_call_t *call);
void pass_bytes(dialect_call_t *call, const char *data, size_t len);

/* Adds what was found since the last message to one with bytes. */
void pass_fill(dialect_call_t *call, Llmgateway__GenerateResponse *message);


/* --- fault.c: errors */

/* An answer that is not 2xx; its body is in call->answer. */
dialect_do_t fault_answer(dialect_call_t *call);

/* An event that is an error. */
int fault_is_event(llmgw_json_t event);
dialect_do_t fault_event(dialect_call_t *call, llmgw_json_t event);



/* --- the dialects */

extern const dialect_t  dialect_openai;
extern const dialect_t  dialect_vllm;
extern const dialect_t  dialect_sglang;
extern const dialect_t  dialect_llamacpp;

#endif /* DIALECT_INNER_H */
