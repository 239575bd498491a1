/* Closes an endpoint with calls under way. */
#include "toy_transport.h"

TOY_TRANSPORT(loop.leaves_early = 1)
