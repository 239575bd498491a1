/* Waits for a peer that does not exist. */
#include "toy_transport.h"

TOY_TRANSPORT(loop.waits_for_nobody = loop.leaves_early = 1)
