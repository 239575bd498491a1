// Feeds whose memory changes while a step reads it, as that of a program does that writes to what it fed.
#pragma once
#include <cstdint>
#include <cstring>
#include <map>
#include <random>
#include <vector>

#include "tests/fuzz/handles.h"

namespace thalweg::fuzz {

// Gives feeds their memory, and is told when steps read it.
class Lender {
 public:
  virtual ~Lender() = default;
  // The same elements in memory of the lender's, at the same place each time it is asked; NULL: the value is to be fed as it is.
  virtual tw_tensor* Lend(tw_tensor* value) = 0;
  // Before and after a step. End says whether the step is to be run once more. succeeded: of the step.
  virtual void Begin() = 0;
  virtual bool End(bool succeeded) = 0;
};

// The memory of all feeds of a use, on pages of its own, with two contents: what was fed, and others for the same elements.
class LentMemory {
 public:
  explicit LentMemory(uint64_t seed);
  ~LentMemory();
  tw_tensor* Lend(tw_tensor* value);
  bool empty() const { return used_ == 0; }
  // Draws the other contents anew, and puts back what was fed.
  void Draw();

  static constexpr size_t kBytes = 1 << 18;
  char* data() const { return data_; }
  size_t bytes() const { return (used_ + 4095) / 4096 * 4096; }  // that are in use, in whole pages
  const char* fed() const { return fed_.data(); }
  const char* other() const { return other_.data(); }

 private:
  struct Part {
    size_t at = 0, bytes = 0;
    uint32_t dtype = 0;
  };
  std::mt19937_64 random_;
  char* data_;
  size_t used_ = 0;
  std::map<tw_tensor*, Part> parts_;
  std::vector<char> fed_, other_;
};

// Every access to the memory is seen, so the contents change at a chosen one: a step is run once to count its accesses, then once for each
// of some of them, and once with contents that change at every access. Accesses are seen where the processor can stop after an instruction.
class SteppingLender final : public Lender {
 public:
  explicit SteppingLender(uint64_t seed) : memory_(seed) {}
  ~SteppingLender() override;
  static bool Offered();
  tw_tensor* Lend(tw_tensor* value) override { return memory_.Lend(value); }
  void Begin() override;
  bool End(bool succeeded) override;
  uint64_t accesses() const { return accesses_; }  // of all steps
  uint64_t steps() const { return steps_; }
  bool lends() const { return !memory_.empty(); }
  bool succeeded() const { return succeeded_; }  // the first step, which read what was fed

 private:
  LentMemory memory_;
  uint64_t accesses_ = 0, steps_ = 0, counted_ = 0;
  bool succeeded_ = false;
};

// A thread writes to the memory while steps run.
class RacingLender final : public Lender {
 public:
  explicit RacingLender(uint64_t seed) : memory_(seed) {}
  ~RacingLender() override;
  tw_tensor* Lend(tw_tensor* value) override { return memory_.Lend(value); }
  void Begin() override;
  bool End(bool succeeded) override;
  uint64_t steps() const { return steps_; }
  uint64_t failures() const { return failures_; }

 private:
  struct Writer;
  LentMemory memory_;
  Writer* writer_ = nullptr;
  uint64_t steps_ = 0, failures_ = 0;
};

}  // namespace thalweg::fuzz
