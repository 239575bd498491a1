// Feeds whose memory changes while a step reads it, as if the program wrote to its feeds.
#pragma once
#include <cstdint>
#include <cstring>
#include <map>
#include <random>
#include <vector>

#include "tests/fuzz/handles.h"

namespace thalweg::fuzz {

// Provides the memory of feeds, and is notified of the steps that read it.
class Lender {
 public:
  virtual ~Lender() = default;
  // Returns a tensor with the same elements in the lender's memory, at the same address each time;
  // NULL: feed `value` itself.
  virtual tw_tensor* Lend(tw_tensor* value) = 0;
  // Called before and after a step. End returns true to repeat the step. succeeded: the step's
  // result.
  virtual void Begin() = 0;
  virtual bool End(bool succeeded) = 0;
};

// The memory of all feeds of a use, on separate pages, with two contents: the fed values, and
// others for the same elements.
class LentMemory {
 public:
  explicit LentMemory(uint64_t seed);
  ~LentMemory();
  tw_tensor* Lend(tw_tensor* value);
  bool empty() const { return used_ == 0; }
  // Draws new other contents, and restores the fed values.
  void Draw();

  static constexpr size_t kBytes = 1 << 18;
  char* data() const { return data_; }
  size_t bytes() const { return (used_ + 4095) / 4096 * 4096; }  // used bytes, rounded up to whole pages
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

// Traps every access to the memory, so that the contents change at a chosen access. A step runs
// once to count its accesses, then once for each of some accesses, and once with a change at every
// access. Needs a processor that can trap after an instruction.
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
  bool succeeded() const { return succeeded_; }  // result of the first step, which read the fed values

 private:
  LentMemory memory_;
  uint64_t accesses_ = 0, steps_ = 0, counted_ = 0;
  bool succeeded_ = false;
};

// Writes to the memory from a thread while steps run.
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
