/* wake does not end the wait of a thread that is lent. */
#include "toy_transport.h"

TOY_TRANSPORT(loop.sleeps_on = 1)
