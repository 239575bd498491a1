/* Calls `done` twice. */
#include "toy_transport.h"

TOY_TRANSPORT(loop.answers_twice = 1)
