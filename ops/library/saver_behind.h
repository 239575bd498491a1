// Saves whose values are read at once and written later, each value on its own task. The values are
// held by the step that saves, so no task keeps them if the client dies.
#pragma once
#include <functional>
#include <string>

#include "thalweg/saver.h"
#include "thalweg/session.h"

namespace thalweg::library {

// As tw_saver_save, and calls `taken` once when every task has read its values: updates that begin
// after that do not change what is saved. If the save fails before, `taken` is not called. Blocks
// until the save has ended. The first call adds operations to the graph. Threads: one save of a
// saver at a time; other runs of the session go on.
tw_status* SaveBehind(tw_saver* saver, tw_session* session, const std::string& prefix, const std::function<void()>& taken);

}  // namespace thalweg::library
