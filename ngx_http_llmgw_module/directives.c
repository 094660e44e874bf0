
/*
 * The table of directives: the function that nginx calls for each, and where it
 * may stand.
 */

#include "attempt/asking.h"
#include "choice/log.h"
#include "conf/admit.h"
#include "conf/param.h"
#include "core/resume.h"
#include "directives.h"
#include "fleet/ssl.h"
#include "front/grpc.h"
#include "front/openai/openai.h"
#include "keys/keys.h"
#include "native/native.h"
#include "pages/pages.h"


static ngx_conf_num_bounds_t  ngx_http_llmgw_tries_bounds = {
    ngx_conf_check_num_bounds, 1, 100
};


static ngx_conf_enum_t  ngx_http_llmgw_resume_modes[] = {
    { ngx_string("off"), LLMGW_RESUME_OFF },
    { ngx_string("ids"), LLMGW_RESUME_IDS },
    { ngx_string("text"), LLMGW_RESUME_TEXT },
    { ngx_null_string, 0 }
};


static ngx_conf_num_bounds_t  ngx_http_llmgw_max_tokens_bounds = {
    ngx_conf_check_num_bounds, 1, NGX_MAX_INT32_VALUE
};


ngx_command_t  ngx_http_llmgw_commands[] = {

    { ngx_string("llmgw_members"),
      NGX_HTTP_UPS_CONF|NGX_CONF_TAKE12,
      ngx_http_llmgw_conf_members,
      NGX_HTTP_SRV_CONF_OFFSET,
      0,
      (void *) ngx_http_llmgw_members_params },

    { ngx_string("llmgw_zone"),
      NGX_HTTP_UPS_CONF|NGX_CONF_TAKE1,
      ngx_http_llmgw_conf_zone,
      NGX_HTTP_SRV_CONF_OFFSET,
      0,
      NULL },

    { ngx_string("llmgw_hash"),
      NGX_HTTP_UPS_CONF|NGX_CONF_NOARGS|NGX_CONF_TAKE1234,
      ngx_http_llmgw_conf_hash,
      NGX_HTTP_SRV_CONF_OFFSET,
      0,
      (void *) ngx_http_llmgw_hash_params },

    { ngx_string("llmgw_ssl"),
      NGX_HTTP_UPS_CONF|NGX_CONF_FLAG,
      ngx_http_llmgw_ssl_conf_flag,
      NGX_HTTP_SRV_CONF_OFFSET,
      offsetof(ngx_http_llmgw_srv_conf_t, ssl.enable),
      NULL },

    { ngx_string("llmgw_ssl_certificate"),
      NGX_HTTP_UPS_CONF|NGX_CONF_TAKE1,
      ngx_conf_set_str_slot,
      NGX_HTTP_SRV_CONF_OFFSET,
      offsetof(ngx_http_llmgw_srv_conf_t, ssl.certificate),
      NULL },

    { ngx_string("llmgw_ssl_certificate_key"),
      NGX_HTTP_UPS_CONF|NGX_CONF_TAKE1,
      ngx_conf_set_str_slot,
      NGX_HTTP_SRV_CONF_OFFSET,
      offsetof(ngx_http_llmgw_srv_conf_t, ssl.certificate_key),
      NULL },

    { ngx_string("llmgw_ssl_trusted_certificate"),
      NGX_HTTP_UPS_CONF|NGX_CONF_TAKE1,
      ngx_conf_set_str_slot,
      NGX_HTTP_SRV_CONF_OFFSET,
      offsetof(ngx_http_llmgw_srv_conf_t, ssl.trusted_certificate),
      NULL },

    { ngx_string("llmgw_ssl_verify"),
      NGX_HTTP_UPS_CONF|NGX_CONF_FLAG,
      ngx_conf_set_flag_slot,
      NGX_HTTP_SRV_CONF_OFFSET,
      offsetof(ngx_http_llmgw_srv_conf_t, ssl.verify),
      NULL },

    { ngx_string("llmgw_ssl_name"),
      NGX_HTTP_UPS_CONF|NGX_CONF_TAKE1,
      ngx_conf_set_str_slot,
      NGX_HTTP_SRV_CONF_OFFSET,
      offsetof(ngx_http_llmgw_srv_conf_t, ssl.name),
      NULL },

    { ngx_string("llmgw_ssl_session_reuse"),
      NGX_HTTP_UPS_CONF|NGX_CONF_FLAG,
      ngx_conf_set_flag_slot,
      NGX_HTTP_SRV_CONF_OFFSET,
      offsetof(ngx_http_llmgw_srv_conf_t, ssl.session_reuse),
      NULL },

    { ngx_string("llmgw_policy"),
      NGX_HTTP_UPS_CONF|NGX_CONF_TAKE12,
      ngx_http_llmgw_conf_policy,
      NGX_HTTP_SRV_CONF_OFFSET,
      0,
      NULL },

    { ngx_string("llmgw_trace_decisions"),
      NGX_HTTP_UPS_CONF|NGX_CONF_TAKE1234|NGX_CONF_TAKE5,
      ngx_http_llmgw_log_conf,
      NGX_HTTP_SRV_CONF_OFFSET,
      0,
      NULL },

    { ngx_string("llmgw_queue"),
      NGX_HTTP_UPS_CONF|NGX_CONF_ANY,
      ngx_http_llmgw_conf_queue,
      NGX_HTTP_SRV_CONF_OFFSET,
      0,
      (void *) ngx_http_llmgw_queue_params },

    { ngx_string("llmgw_breaker"),
      NGX_HTTP_UPS_CONF|NGX_CONF_NOARGS|NGX_CONF_TAKE1234
                       |NGX_CONF_TAKE5|NGX_CONF_TAKE6,
      ngx_http_llmgw_conf_breaker,
      NGX_HTTP_SRV_CONF_OFFSET,
      0,
      (void *) ngx_http_llmgw_breaker_params },

    { ngx_string("llmgw_hedge"),
      NGX_HTTP_UPS_CONF|NGX_CONF_NOARGS|NGX_CONF_TAKE12,
      ngx_http_llmgw_conf_hedge,
      NGX_HTTP_SRV_CONF_OFFSET,
      0,
      (void *) ngx_http_llmgw_hedge_params },

    { ngx_string("llmgw_prefix_index"),
      NGX_HTTP_UPS_CONF|NGX_CONF_NOARGS|NGX_CONF_TAKE1234,
      ngx_http_llmgw_index_conf,
      NGX_HTTP_SRV_CONF_OFFSET,
      0,
      (void *) ngx_http_llmgw_index_params },

    { ngx_string("llmgw_slo"),
      NGX_HTTP_UPS_CONF|NGX_CONF_TAKE1234|NGX_CONF_TAKE5,
      ngx_http_llmgw_conf_slo,
      NGX_HTTP_SRV_CONF_OFFSET,
      0,
      NULL },

    { ngx_string("llmgw_admission"),
      NGX_HTTP_UPS_CONF|NGX_CONF_TAKE123,
      ngx_http_llmgw_conf_admission,
      NGX_HTTP_SRV_CONF_OFFSET,
      0,
      NULL },

    { ngx_string("llmgw_tenant_budget"),
      NGX_HTTP_UPS_CONF|NGX_CONF_1MORE,
      ngx_http_llmgw_conf_budgets,
      NGX_HTTP_SRV_CONF_OFFSET,
      0,
      NULL },

    { ngx_string("llmgw_class"),
      NGX_HTTP_MAIN_CONF|NGX_HTTP_SRV_CONF|NGX_HTTP_LOC_CONF|NGX_CONF_TAKE12,
      ngx_http_llmgw_conf_name_source,
      NGX_HTTP_LOC_CONF_OFFSET,
      offsetof(ngx_http_llmgw_loc_conf_t, class),
      (void *) ngx_http_llmgw_class_headers },

    { ngx_string("llmgw_tenant"),
      NGX_HTTP_MAIN_CONF|NGX_HTTP_SRV_CONF|NGX_HTTP_LOC_CONF|NGX_CONF_TAKE12,
      ngx_http_llmgw_conf_name_source,
      NGX_HTTP_LOC_CONF_OFFSET,
      offsetof(ngx_http_llmgw_loc_conf_t, tenant),
      (void *) ngx_http_llmgw_tenant_headers },

    { ngx_string("llmgw_keys"),
      NGX_HTTP_MAIN_CONF|NGX_HTTP_SRV_CONF|NGX_HTTP_LOC_CONF|NGX_CONF_TAKE1234,
      ngx_http_llmgw_keys_conf,
      NGX_HTTP_LOC_CONF_OFFSET,
      0,
      NULL },

    { ngx_string("llmgw_identity"),
      NGX_HTTP_MAIN_CONF|NGX_HTTP_SRV_CONF|NGX_HTTP_LOC_CONF|NGX_CONF_TAKE1234,
      ngx_http_llmgw_identity_conf,
      NGX_HTTP_LOC_CONF_OFFSET,
      0,
      NULL },

    { ngx_string("llmgw_usage_log"),
      NGX_HTTP_MAIN_CONF|NGX_CONF_TAKE12,
      ngx_http_llmgw_usage_log_conf,
      NGX_HTTP_MAIN_CONF_OFFSET,
      0,
      NULL },

    { ngx_string("llmgw_coalesce"),
      NGX_HTTP_MAIN_CONF|NGX_CONF_TAKE1,
      ngx_http_llmgw_conf_line,
      NGX_HTTP_MAIN_CONF_OFFSET,
      0,
      (void *) ngx_http_llmgw_coalesce_params },

    { ngx_string("llmgw_body_memory"),
      NGX_HTTP_MAIN_CONF|NGX_CONF_TAKE12,
      ngx_http_llmgw_conf_line,
      NGX_HTTP_MAIN_CONF_OFFSET,
      0,
      (void *) ngx_http_llmgw_body_memory_params },

    { ngx_string("llmgw_pass"),
      NGX_HTTP_LOC_CONF|NGX_HTTP_LIF_CONF|NGX_CONF_TAKE1,
      ngx_http_llmgw_conf_pass,
      NGX_HTTP_LOC_CONF_OFFSET,
      0,
      (void *) &ngx_http_llmgw_grpc_protocol },

    { ngx_string("llmgw_openai"),
      NGX_HTTP_LOC_CONF|NGX_HTTP_LIF_CONF|NGX_CONF_TAKE1,
      ngx_http_llmgw_openai_conf,
      NGX_HTTP_LOC_CONF_OFFSET,
      0,
      (void *) &ngx_http_llmgw_openai_protocol },

    { ngx_string("llmgw_model"),
      NGX_HTTP_LOC_CONF|NGX_CONF_TAKE1234,
      ngx_http_llmgw_conf_model,
      NGX_HTTP_LOC_CONF_OFFSET,
      0,
      NULL },

    { ngx_string("llmgw_openai_path"),
      NGX_HTTP_LOC_CONF|NGX_CONF_TAKE1,
      ngx_http_llmgw_openai_path_conf,
      NGX_HTTP_LOC_CONF_OFFSET,
      0,
      NULL },

    { ngx_string("llmgw_sse_keepalive"),
      NGX_HTTP_MAIN_CONF|NGX_HTTP_SRV_CONF|NGX_HTTP_LOC_CONF|NGX_CONF_TAKE12,
      ngx_http_llmgw_conf_line,
      NGX_HTTP_LOC_CONF_OFFSET,
      0,
      (void *) ngx_http_llmgw_keepalive_params },

    { ngx_string("llmgw_default_max_tokens"),
      NGX_HTTP_MAIN_CONF|NGX_HTTP_SRV_CONF|NGX_HTTP_LOC_CONF|NGX_CONF_TAKE1,
      ngx_conf_set_num_slot,
      NGX_HTTP_LOC_CONF_OFFSET,
      offsetof(ngx_http_llmgw_loc_conf_t, default_max_tokens),
      &ngx_http_llmgw_max_tokens_bounds },

    { ngx_string("llmgw_timeout_header"),
      NGX_HTTP_MAIN_CONF|NGX_HTTP_SRV_CONF|NGX_HTTP_LOC_CONF|NGX_CONF_TAKE1,
      ngx_conf_set_str_slot,
      NGX_HTTP_LOC_CONF_OFFSET,
      offsetof(ngx_http_llmgw_loc_conf_t, timeout_header),
      NULL },

    { ngx_string("llmgw_key"),
      NGX_HTTP_MAIN_CONF|NGX_HTTP_SRV_CONF|NGX_HTTP_LOC_CONF|NGX_CONF_TAKE12,
      ngx_http_llmgw_native_conf_key,
      NGX_HTTP_LOC_CONF_OFFSET,
      0,
      (void *) ngx_http_llmgw_key_params },

    { ngx_string("llmgw_tries"),
      NGX_HTTP_MAIN_CONF|NGX_HTTP_SRV_CONF|NGX_HTTP_LOC_CONF|NGX_CONF_TAKE1,
      ngx_conf_set_num_slot,
      NGX_HTTP_LOC_CONF_OFFSET,
      offsetof(ngx_http_llmgw_loc_conf_t, tries),
      &ngx_http_llmgw_tries_bounds },

    { ngx_string("llmgw_resume"),
      NGX_HTTP_MAIN_CONF|NGX_HTTP_SRV_CONF|NGX_HTTP_LOC_CONF|NGX_CONF_TAKE1,
      ngx_conf_set_enum_slot,
      NGX_HTTP_LOC_CONF_OFFSET,
      offsetof(ngx_http_llmgw_loc_conf_t, resume),
      &ngx_http_llmgw_resume_modes },

    { ngx_string("llmgw_connect_timeout"),
      NGX_HTTP_MAIN_CONF|NGX_HTTP_SRV_CONF|NGX_HTTP_LOC_CONF|NGX_CONF_TAKE1,
      ngx_conf_set_msec_slot,
      NGX_HTTP_LOC_CONF_OFFSET,
      offsetof(ngx_http_llmgw_loc_conf_t, connect_timeout),
      NULL },

    { ngx_string("llmgw_first_token_timeout"),
      NGX_HTTP_MAIN_CONF|NGX_HTTP_SRV_CONF|NGX_HTTP_LOC_CONF|NGX_CONF_TAKE1,
      ngx_conf_set_msec_slot,
      NGX_HTTP_LOC_CONF_OFFSET,
      offsetof(ngx_http_llmgw_loc_conf_t, first_token_timeout),
      NULL },

    { ngx_string("llmgw_token_timeout"),
      NGX_HTTP_MAIN_CONF|NGX_HTTP_SRV_CONF|NGX_HTTP_LOC_CONF|NGX_CONF_TAKE1,
      ngx_conf_set_msec_slot,
      NGX_HTTP_LOC_CONF_OFFSET,
      offsetof(ngx_http_llmgw_loc_conf_t, token_timeout),
      NULL },

    { ngx_string("llmgw_metrics"),
      NGX_HTTP_LOC_CONF|NGX_CONF_NOARGS|NGX_CONF_TAKE1,
      ngx_http_llmgw_page_conf,
      NGX_HTTP_LOC_CONF_OFFSET,
      0,
      (void *) &ngx_http_llmgw_export_kind },

    { ngx_string("llmgw_status"),
      NGX_HTTP_LOC_CONF|NGX_CONF_NOARGS|NGX_CONF_TAKE1,
      ngx_http_llmgw_page_conf,
      NGX_HTTP_LOC_CONF_OFFSET,
      0,
      (void *) &ngx_http_llmgw_status_kind },

    { ngx_string("llmgw_dashboard"),
      NGX_HTTP_LOC_CONF|NGX_CONF_NOARGS|NGX_CONF_TAKE12,
      ngx_http_llmgw_page_conf,
      NGX_HTTP_LOC_CONF_OFFSET,
      0,
      (void *) &ngx_http_llmgw_dashboard_kind },

    { ngx_string("llmgw_ready"),
      NGX_HTTP_LOC_CONF|NGX_CONF_NOARGS|NGX_CONF_TAKE1,
      ngx_http_llmgw_page_conf,
      NGX_HTTP_LOC_CONF_OFFSET,
      0,
      (void *) &ngx_http_llmgw_ready_kind },

      ngx_null_command
};

_Static_assert(sizeof(ngx_http_llmgw_commands) / sizeof(ngx_command_t) <= 64,
               "each directive has a bit of ngx_http_llmgw_given_t");
