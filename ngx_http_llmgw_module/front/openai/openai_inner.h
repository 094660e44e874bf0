
/*
 * One request of OpenAI's API, from its walked body to its last byte.
 *
 *     openai.c       which request it is; what is no request for a model
 *     path.c         the paths of those for a model (path.h)
 *     receive.c      its body: received and walked (receive.h)
 *     chain.c        requests for a response, and those that continue one
 *     model_names.c  which models there are, and which pool serves one
 *     request.c      the body becomes what replicas are asked
 *     answer.c       the front's operations: from messages to an answer
 *     answer_json.c  the JSON of chunks and of whole answers
 *     reply.c        answers that are no stream, and their headers
 *     fault.c        errors: their JSON and their headers
 *
 * An engine's `data` and `raw` are passed to the client byte for byte.  From
 * text the front makes chunks itself, or one whole answer.
 */

#ifndef _NGX_HTTP_LLMGW_OPENAI_INNER_H_INCLUDED_
#define _NGX_HTTP_LLMGW_OPENAI_INNER_H_INCLUDED_


#include "core/openai/error.h"
#include "core/outcome.h"
#include "front/openai/receive.h"
#include "front/stream.h"


/* Which pool serves a request, and under which name of its model. */
typedef struct {
    ngx_http_llmgw_pool_t        *pool;
    ngx_str_t                     engine;       /* empty: as the client calls
                                                   it */
    unsigned                      is_named:1;   /* an llmgw_model line has it */
} ngx_http_llmgw_openai_model_t;


typedef struct {
    ngx_http_llmgw_openai_body_t *body;
    ngx_http_llmgw_openai_model_t model;
    ngx_str_t                     engine;       /* the engine's name of the
                                                   model */
    ngx_http_llmgw_replica_t     *only;         /* has the response that it
                                                   continues; NULL: any may
                                                   serve */
    char                         *method;       /* of a request without a
                                                   body */
    char                         *path;         /* with its query; of a request
                                                   without a body */
    Llmgateway__OpenaiRequest     request;
    ngx_http_llmgw_usage_t        usage;        /* for the usage record */

    ngx_str_t                     head;         /* begins all JSON written
                                                   here */
    ngx_uint_t                    nfinished;    /* choices that are finished */

    ngx_uint_t                    raw_status;   /* 0: no raw has come */
    ngx_str_t                     raw_type;

    ngx_str_t                     extra_answer; /* members that the engine */
    ngx_str_t                     extra_choice; /* adds to whole answers, as */
    ngx_str_t                     extra_usage;  /* `,"key":value`, by object */

    size_t                        held;         /* of the worker's memory */
    u_char                       *text_end;     /* end of the text in the
                                                   output's last event, to which
                                                   more may be added; or NULL */

    ngx_str_t                     prompt;       /* in the body's memory */

    llmgw_end_t                   verdict;      /* stream->verdict points
                                                   here */

    unsigned                      is_pass:1;    /* only raw can answer */
    unsigned                      has_role:1;   /* the client got it */
    unsigned                      has_more:1;   /* more than plain tokens
                                                   came */
    unsigned                      has_data:1;   /* chunks of the engine were
                                                   sent */
    unsigned                      has_text:1;   /* our own chunks were sent */
    unsigned                      has_usage:1;  /* the replica reported it */
    unsigned                      shows_usage:1; /* the client got it */
    unsigned                      shows_finish:1;
    unsigned                      has_extra:1;  /* even if it is empty */
    unsigned                      lacks_ids:1;  /* some tokens came without an
                                                   id: messages may be fewer
                                                   than tokens */
} ngx_http_llmgw_openai_t;


extern const ngx_http_llmgw_front_t  ngx_http_llmgw_openai_front;


/* Which methods a path has. */
typedef struct {
    ngx_uint_t                    methods;
    ngx_str_t                     allow;        /* methods as Allow lists
                                                   them */
} ngx_http_llmgw_openai_route_t;


/*
 * openai.c: counts a request that gets no stream, and answers it with the
 * error.
 */
ngx_int_t ngx_http_llmgw_openai_deny(ngx_http_request_t *r,
    const llmgw_openai_error_t *error);


/* chain.c */

/*
 * The methods of /responses/ID and of paths below it; sets *id.  NULL: the
 * request's path is none of these.
 */
const ngx_http_llmgw_openai_route_t *ngx_http_llmgw_openai_chain_route(
    ngx_http_request_t *r, ngx_str_t *id);

/* Answers such a request, as a content handler does. */
ngx_int_t ngx_http_llmgw_openai_chain_open(ngx_http_request_t *r,
    const ngx_str_t *id);

/*
 * To be called if the request continues an earlier response: sets o->only to
 * the replica that has it.  NGX_DECLINED: the response is unknown, and *error
 * is set.
 */
ngx_int_t ngx_http_llmgw_openai_chain_goes_on(ngx_http_llmgw_openai_t *o,
    llmgw_openai_error_t *error);

/*
 * From now on this response is known to be at the replica that serves the
 * stream.
 */
void ngx_http_llmgw_openai_chain_note(ngx_http_llmgw_stream_t *stream,
    const char *id);


/* reply.c */

/*
 * The request's id: the client's x-request-id, or else $request_id.  Empty:
 * no memory.
 */
ngx_str_t ngx_http_llmgw_openai_id(ngx_http_request_t *r);

/*
 * Sets status and content type, which may have parameters, and adds the
 * headers that each answer has.
 */
ngx_int_t ngx_http_llmgw_openai_header(ngx_http_request_t *r,
    ngx_uint_t status, const ngx_str_t *type);

/*
 * Answer as a content handler does, whose result they return: with a JSON text
 * that lives as long as the request, or with an error.
 */
ngx_int_t ngx_http_llmgw_openai_answer(ngx_http_request_t *r,
    ngx_uint_t status, const ngx_str_t *json);
ngx_int_t ngx_http_llmgw_openai_refuse(ngx_http_request_t *r,
    const llmgw_openai_error_t *error);

/*
 * Turn refusals by nginx or other rooms into an error
 * (ngx_http_llmgw_protocol_t).
 */
ngx_int_t ngx_http_llmgw_openai_refused(ngx_http_request_t *r,
    ngx_chain_t *body);
ngx_int_t ngx_http_llmgw_openai_end(ngx_http_request_t *r,
    const llmgw_end_t *end);


/* fault.c: NGX_ERROR: no memory */

/* How a stream ended, as an error. */
void ngx_http_llmgw_openai_error_of_end(llmgw_openai_error_t *error,
    const llmgw_end_t *end);

/* An error in the form that the request's clients know. */
ngx_int_t ngx_http_llmgw_openai_error_json(ngx_http_request_t *r,
    const llmgw_openai_error_t *error, ngx_str_t *json);

/*
 * An engine's error object in the same form: unchanged, or with missing members
 * added, or made from another text.
 */
ngx_int_t ngx_http_llmgw_openai_error_shape(ngx_http_request_t *r,
    ngx_uint_t status, const ngx_str_t *said, ngx_str_t *json);

/*
 * Adds the headers that go with an error: when to try again, or not to.
 * pushback_ms: as llmgw_end_t has it; 0: clients decide by the status.
 */
ngx_int_t ngx_http_llmgw_openai_error_headers(ngx_http_request_t *r,
    ngx_uint_t status, int pushback_ms);


/* model_names.c */

/*
 * The location's upstreams: first its own, then those of its llmgw_model
 * lines, of which one may come several times.  NULL: there are no more.
 */
ngx_http_upstream_srv_conf_t *ngx_http_llmgw_openai_model_upstream(
    ngx_http_llmgw_loc_conf_t *llcf, ngx_uint_t i);

/*
 * NGX_DECLINED: no replica reports that name; NGX_BUSY: some do, but their base
 * model has no pool; NGX_ERROR: no memory.
 */
ngx_int_t ngx_http_llmgw_openai_model_find(ngx_http_request_t *r,
    const ngx_str_t *name, ngx_http_llmgw_openai_model_t *model);

/* Answer GET .../models, and .../models/ID. */
ngx_int_t ngx_http_llmgw_openai_models(ngx_http_request_t *r);
ngx_int_t ngx_http_llmgw_openai_model_show(ngx_http_request_t *r,
    const ngx_str_t *name);

void ngx_http_llmgw_openai_model_unknown(llmgw_openai_error_t *error,
    const ngx_str_t *name);


/* request.c: the front's operation read() */
ngx_int_t ngx_http_llmgw_openai_read(ngx_http_llmgw_stream_t *stream);


/*
 * answer.c: as ngx_http_llmgw_output_room(), for all that this front writes; an
 * answer that is kept until its end counts in the worker's memory.
 */
ngx_buf_t *ngx_http_llmgw_openai_room(ngx_http_llmgw_stream_t *stream,
    size_t size);


/* answer_json.c: append to the stream's output; NGX_ERROR: no memory */
ngx_int_t ngx_http_llmgw_openai_head(ngx_http_llmgw_stream_t *stream);
ngx_int_t ngx_http_llmgw_openai_chunk_data(ngx_http_llmgw_stream_t *stream,
    const ProtobufCBinaryData *data);
/* Appends the token's text; token NULL: the finish reason. */
ngx_int_t ngx_http_llmgw_openai_chunk_choice(ngx_http_llmgw_stream_t *stream,
    const llmgw_token_t *token);
ngx_int_t ngx_http_llmgw_openai_chunk_usage(ngx_http_llmgw_stream_t *stream);

/* 1: the replica reported usage, or it can be counted here. */
ngx_uint_t ngx_http_llmgw_openai_knows_usage(ngx_http_llmgw_stream_t *stream);
ngx_int_t ngx_http_llmgw_openai_chunk_done(ngx_http_llmgw_stream_t *stream);
ngx_int_t ngx_http_llmgw_openai_chunk_error(ngx_http_llmgw_stream_t *stream,
    const ngx_str_t *json);

ngx_int_t ngx_http_llmgw_openai_whole_text(ngx_http_llmgw_stream_t *stream,
    const llmgw_token_t *token);
ngx_int_t ngx_http_llmgw_openai_whole_extra(ngx_http_llmgw_stream_t *stream,
    const Llmgateway__Extra *extra);
ngx_int_t ngx_http_llmgw_openai_whole_end(ngx_http_llmgw_stream_t *stream);


#endif /* _NGX_HTTP_LLMGW_OPENAI_INNER_H_INCLUDED_ */
