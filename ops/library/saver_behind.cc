// A save in the background. A step's results are known at its end only, so a second step tells when
// the first has read the values: all reads come before a mark that the first step stages on a task,
// and the second step takes the mark. Marks have random numbers, because the staging area belongs to
// the task, and clients with equal graphs share it.
#include "ops/library/saver_behind.h"

#include <condition_variable>
#include <exception>
#include <mutex>
#include <new>
#include <random>
#include <utility>

#include "ops/library/saver_parts.h"
#include "ops/library/signature.h"
#include "ops/library/task.h"
#include "thalweg/op.h"
#include "thalweg/status.h"
#include "thalweg/tensor.h"

namespace thalweg::library {
namespace {

constexpr char kArea[] = "org.thalweg.saver";  // the staging area of marks

// An operation on the mark of a number.
OpenOp OnMark(tw_scope* scope, const char* type, tw_output number, tw_output which) {
  OpenOp op(scope, type);
  tw_op_add_input(op, number);
  tw_op_add_input(op, which);
  const uint32_t dtype = TW_BOOL;
  tw_op_set_types(op, "dtypes", &dtype, 1);
  tw_op_set_string(op, "shared_name", kArea, sizeof(kArea) - 1);
  return op;
}

tw_output SmallConstant(tw_scope* scope, uint32_t dtype, const void* value, uint64_t bytes, const int64_t* dims, uint32_t rank) {
  tw_tensor* t = nullptr;
  tw_scope_fail(scope, tw_tensor_create_copy(dtype, dims, rank, value, bytes, &t));
  const OwnedTensor owned(t);
  return Good(scope) ? tw_scope_constant(scope, t) : 0;
}

tw_status* AddMark(tw_saver* saver) {
  if (saver->stage_mark) return nullptr;
  tw_scope* scope = tw_scope_create(saver->graph, (saver->scope + "/behind").c_str());
  tw_output number = 0, mark = 0;
  const tw_operation* stage = nullptr;
  {
    const On on(scope, saver->tasks[0].device);
    number = tw_scope_placeholder(scope, "number", TW_INT64, nullptr, 0);
    const int64_t one = 1;
    const int32_t first = 0;
    const uint8_t yes = 1;
    const tw_output which = SmallConstant(scope, TW_INT32, &first, sizeof(first), &one, 1);
    OpenOp put = OnMark(scope, "MapStage", number, which);
    tw_op_add_input(put, SmallConstant(scope, TW_BOOL, &yes, sizeof(yes), nullptr, 0));
    for (const tw_output value : saver->values) {
      const tw_operation* reads = nullptr;
      tw_scope_fail(scope, tw_graph_producer(saver->graph, value, &reads, nullptr));
      if (reads) tw_op_add_control(put, reads);
    }
    stage = put.EndOperation();
    mark = OnMark(scope, "MapUnstage", number, which).End();
  }
  if (tw_status* failed = tw_scope_finish(scope)) return failed;
  saver->number = number;
  saver->mark = mark;
  saver->stage_mark = stage;
  return nullptr;
}

// A run that saves, of which another thread tells the end.
struct Saving {
  std::mutex mu;
  std::condition_variable changed;
  bool over = false;
  tw_status* status = nullptr;
  tw_cancel_token* unneeded = nullptr;  // cancels the wait for the mark

  ~Saving() { tw_cancel_token_destroy(unneeded); }
  static void End(void* user, tw_status* status, tw_tensor**) {
    auto& s = *static_cast<Saving*>(user);
    // A save that has ended well has staged its mark.
    if (status) tw_cancel_token_cancel(s.unneeded);
    std::lock_guard<std::mutex> lock(s.mu);
    s.status = status;
    s.over = true;
    s.changed.notify_all();
  }
  tw_status* Wait() {
    std::unique_lock<std::mutex> lock(mu);
    changed.wait(lock, [&] { return over; });
    return std::exchange(status, nullptr);
  }
};

int64_t RandomNumber() {
  std::random_device device;
  return int64_t(uint64_t{device()} << 31 ^ device());
}

tw_status* SaveAndTell(tw_saver* saver, tw_session* session, const std::string& prefix, const std::function<void()>& taken) {
  if (tw_status* failed = AddMark(saver)) return failed;
  tw_tensor *text = nullptr, *number = nullptr, *mark = nullptr;
  if (tw_status* failed = tw_tensor_create_string(prefix.data(), prefix.size(), &text)) return failed;
  const OwnedTensor owned_text(text);
  if (tw_status* failed = tw_tensor_create_int64(RandomNumber(), &number)) return failed;
  const OwnedTensor owned_number(number);
  Saving saving;
  if (tw_status* failed = tw_cancel_token_create(&saving.unneeded)) return failed;
  const tw_output fed[] = {saver->prefix, saver->number};
  const tw_operation* const targets[] = {saver->save, saver->stage_mark};
  tw_tensor* const values[] = {text, number};
  const tw_signature save = SignatureOf(fed, {}, targets);
  if (tw_status* failed = tw_session_run_async(session, &save, values, nullptr, Saving::End, &saving)) return failed;
  const tw_signature wait = SignatureOf({&saver->number, 1}, {&saver->mark, 1});
  tw_run_options options = {};
  options.size = sizeof(options);
  options.cancel = saving.unneeded;
  tw_status* waited = tw_session_run(session, &wait, &number, &options, &mark);
  tw_tensor_release(mark);
  // If only the wait failed, the values are taken at the end of the save.
  if (!waited) taken();
  tw_status_release(waited);
  return saving.Wait();
}

}  // namespace

tw_status* SaveBehind(tw_saver* saver, tw_session* session, const std::string& prefix, const std::function<void()>& taken) {
  try {
    return SaveAndTell(saver, session, prefix, taken);
  } catch (const std::bad_alloc&) {
    return tw_status_create(TW_RESOURCE_EXHAUSTED, "out of host memory for a save");
  } catch (const std::exception& e) {
    return tw_status_create(TW_INTERNAL, (std::string("a save: ") + e.what()).c_str());
  }
}

}  // namespace thalweg::library
