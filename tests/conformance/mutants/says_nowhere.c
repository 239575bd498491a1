/* Does not say where it is reached. */
#include "toy_transport.h"

TOY_TRANSPORT(loop.no_address = 1)
