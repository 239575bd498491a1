/* An answer waits for the answers of earlier calls. */
#include "toy_transport.h"

TOY_TRANSPORT(loop.in_order = loop.leaves_early = 1)
