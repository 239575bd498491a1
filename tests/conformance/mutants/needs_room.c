/* Waits for destination memory that the host does not provide. */
#include "toy_transport.h"

TOY_TRANSPORT(loop.needs_room = loop.leaves_early = 1)
