
/* Names and texts of orders' answers: swim/order/order.h. */

#include "swim/order/order.h"


static const char *const  order_names[ORDER_NRC] = {
#define X(id, name, text)  name,
    ORDER_ANSWERS(X)
#undef X
};

static const char *const  order_texts[ORDER_NRC] = {
#define X(id, name, text)  text,
    ORDER_ANSWERS(X)
#undef X
};


const char *
order_rc_name(order_rc_t rc)
{
    return order_names[rc];
}


const char *
order_rc_text(order_rc_t rc)
{
    return order_texts[rc];
}
