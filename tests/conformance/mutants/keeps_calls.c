/* Goes on with the calls of a peer that was closed. */
#include "toy_transport.h"

TOY_TRANSPORT(loop.keeps_calls = loop.leaves_early = 1)
