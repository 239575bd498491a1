// Defines the handles of eager contexts and tapes. Threads: as eager.h and tape.h say.
#pragma once
#include <memory>

#include "framework/eager/eager.h"
#include "framework/eager/tape.h"
#include "thalweg/tape.h"

struct tw_eager {
  std::shared_ptr<thalweg::Eager> eager;
};

struct tw_tape {
  explicit tw_tape(std::shared_ptr<thalweg::Eager> eager) : tape(std::move(eager)) {}
  thalweg::Tape tape;
};
