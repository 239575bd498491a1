/* Moves no more than 64 KiB of a body. */
#include "toy_transport.h"

TOY_TRANSPORT(loop.cuts_bodies = 1)
