/* Does not report its bound address. */
#include "toy_transport.h"

TOY_TRANSPORT(loop.no_address = 1)
