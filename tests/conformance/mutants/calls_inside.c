/* Calls `done` from inside cancel. */
#include "toy_transport.h"

TOY_TRANSPORT(loop.inside = loop.leaves_early = 1)
