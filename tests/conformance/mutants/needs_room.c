/* Waits for a place that it will not get. */
#include "toy_transport.h"

TOY_TRANSPORT(loop.needs_room = loop.leaves_early = 1)
