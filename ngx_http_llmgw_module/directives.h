
/* The table of directives. */

#ifndef _NGX_HTTP_LLMGW_DIRECTIVES_H_INCLUDED_
#define _NGX_HTTP_LLMGW_DIRECTIVES_H_INCLUDED_


#include "conf/conf.h"


extern ngx_command_t  ngx_http_llmgw_commands[];


#endif /* _NGX_HTTP_LLMGW_DIRECTIVES_H_INCLUDED_ */
