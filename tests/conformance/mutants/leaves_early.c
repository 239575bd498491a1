/* Closes an endpoint while calls are in progress. */
#include "toy_transport.h"

TOY_TRANSPORT(loop.leaves_early = 1)
