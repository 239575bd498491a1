/* Continues the calls of a closed peer. */
#include "toy_transport.h"

TOY_TRANSPORT(loop.keeps_calls = loop.leaves_early = 1)
