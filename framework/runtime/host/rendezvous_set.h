// The optional set "rendezvous" of the host table: implements plugin/rendezvous.h with the
// rendezvous of the step.
#pragma once
#include "thalweg/plugin/rendezvous.h"

namespace thalweg {

const tw_rendezvous_api* RendezvousSet();

}  // namespace thalweg
