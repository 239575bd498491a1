/* wake does not end the wait of a lent thread. */
#include "toy_transport.h"

TOY_TRANSPORT(loop.sleeps_on = 1)
