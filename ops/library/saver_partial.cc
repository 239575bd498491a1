// Partial restores: reads the file first, then one step assigns the values that fit.
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "ops/library/saver_parts.h"
#include "ops/library/signature.h"
#include "thalweg/checkpoint.h"
#include "thalweg/status.h"
#include "thalweg/tensor.h"

using namespace thalweg::library;

namespace {

struct Entry {
  uint32_t outcome = TW_RESTORE_DONE;
  std::string variable, name, text;
};

}  // namespace

struct tw_restore_report {
  std::vector<Entry> entries;
};

namespace {

struct CloseCheckpoint {
  void operator()(tw_checkpoint* c) const { tw_checkpoint_close(c); }
};

// Reports in the entry that a resource of another type was saved under that name.
tw_status* JudgeType(const VariableInfo& v, const std::string& who, tw_checkpoint* c, Entry* e, OwnedTensor* saved) {
  tw_tensor* t = nullptr;
  if (tw_status* failed = tw_checkpoint_read(c, e->name.c_str(), &t)) return failed;
  saved->reset(t);
  const auto& type = *static_cast<const tw_string*>(tw_tensor_data(t));
  if (v.resource.compare(0, std::string::npos, type.data, type.size) == 0) return nullptr;
  e->outcome = TW_RESTORE_OTHER_DTYPE;
  e->text = who + " left as it was: '" + e->name + "' in the file is a " + std::string(type.data, type.size);
  return nullptr;
}

// Decides the outcome for a variable or resource. saved: the saved contents of a resource, which
// alone tell its type.
tw_status* Judge(const VariableInfo& v, const std::string& name, tw_checkpoint* c, Entry* out, OwnedTensor* saved) {
  Entry& e = *out;
  e.variable = v.name;
  e.name = name;
  uint32_t dtype = 0;
  tw_shape shape = {};
  const std::string who = (v.resource.empty() ? "variable" : v.resource) + " '" + v.name + "'";
  if (tw_status* s = tw_checkpoint_describe(c, name.c_str(), &dtype, &shape, nullptr)) {
    tw_status_release(s);
    e.outcome = TW_RESTORE_MISSING;
    e.text = who + " left as it was: the file has no tensor '" + name + "'";
  } else if (dtype != v.dtype) {
    e.outcome = TW_RESTORE_OTHER_DTYPE;
    e.text = who + " left as it was: it is " + tw_dtype_name(v.dtype) + ", '" + name + "' in the file is " +
             (tw_dtype_name(dtype) ? tw_dtype_name(dtype) : "of an unknown type");
  } else if (!Fits(shape, v.shape())) {
    e.outcome = TW_RESTORE_OTHER_SHAPE;
    e.text = who + " left as it was: its shape is " + ShapeText(v.shape()) + ", '" + name + "' in the file has " + ShapeText(shape);
  } else {
    e.text = who + " restored from '" + name + "'";
    if (!v.resource.empty()) return JudgeType(v, who, c, out, saved);
  }
  return nullptr;
}

void AddUnused(const tw_checkpoint* c, tw_restore_report* report) {
  std::set<std::string> used;
  for (const Entry& e : report->entries) used.insert(e.name);
  for (uint32_t i = 0; i < tw_checkpoint_count(c); ++i) {
    const std::string name = tw_checkpoint_name(c, i);
    if (!used.count(name))
      report->entries.push_back({TW_RESTORE_UNUSED, "", name, "tensor '" + name + "' of the file: no variable is for it"});
  }
}

}  // namespace

// Adds assignments that set each variable from a feed, after one RestoreResources over all
// resources.
tw_status* thalweg::library::AddAssignments(tw_saver* saver) {
  if (!saver->feeds.empty()) return nullptr;
  tw_scope* scope = tw_scope_create(saver->graph, (saver->scope + "/partial").c_str());
  std::vector<tw_output> feeds, resources, saved;
  for (size_t i = 0; i < saver->handles.size() && Good(scope); ++i) {
    const VariableInfo& info = saver->infos[i];
    const bool variable = info.resource.empty();
    feeds.push_back(tw_scope_placeholder(scope, ("value/" + info.operation).c_str(), info.dtype, info.dims.data(),
                                         variable && info.known_rank ? int32_t(info.dims.size()) : -1));
    if (variable) continue;
    resources.push_back(saver->handles[i]);
    saved.push_back(feeds.back());
  }
  std::vector<const tw_operation*> before, assignments;
  if (!resources.empty()) before.push_back(AddRestoreResources(scope, std::move(resources), saved, {}));
  for (size_t i = 0; i < saver->handles.size() && Good(scope); ++i) {
    const bool variable = saver->infos[i].resource.empty();
    assignments.push_back(variable ? Assign(scope, saver->handles[i], saver->infos[i], feeds[i], before) : before[0]);
  }
  if (tw_status* failed = tw_scope_finish(scope)) return failed;
  saver->feeds = std::move(feeds);
  saver->assignments = std::move(assignments);
  return nullptr;
}

namespace {

// Reads all values that fit before any is assigned. tensors: one for each handle, those of
// resources read already.
tw_status* Assign(const tw_saver& saver, tw_session* session, tw_checkpoint* c, const tw_restore_report& report,
                  std::vector<OwnedTensor> tensors) {
  std::vector<tw_tensor*> values;
  std::vector<tw_output> feeds;
  std::vector<const tw_operation*> targets;
  for (size_t i = 0; i < saver.handles.size(); ++i) {
    const bool fits = report.entries[i].outcome == TW_RESTORE_DONE;
    if (!fits && saver.infos[i].resource.empty()) continue;
    const int64_t none = 0;  // an empty vector leaves a resource unchanged
    if (!fits || !tensors[i]) {
      tw_tensor* t = nullptr;
      tw_status* failed = fits ? tw_checkpoint_read(c, saver.names[i].c_str(), &t) : tw_tensor_create(TW_STRING, &none, 1, &t);
      if (failed) return failed;
      tensors[i].reset(t);
    }
    values.push_back(tensors[i].get());
    feeds.push_back(saver.feeds[i]);
    if (fits) targets.push_back(saver.assignments[i]);
  }
  if (targets.empty()) return nullptr;
  const tw_signature what = SignatureOf(feeds, {}, targets);
  return tw_session_run(session, &what, values.data(), nullptr, nullptr);
}

tw_status* RestorePartial(tw_saver* saver, tw_session* session, const char* prefix, tw_restore_report** out_report) {
  tw_checkpoint* opened = nullptr;
  if (tw_status* failed = tw_checkpoint_open(prefix, &opened)) return failed;
  const std::unique_ptr<tw_checkpoint, CloseCheckpoint> c(opened);
  auto report = std::make_unique<tw_restore_report>();
  std::vector<OwnedTensor> saved(saver->infos.size());
  for (size_t i = 0; i < saver->infos.size(); ++i) {
    tw_status* failed = Judge(saver->infos[i], saver->names[i], opened, &report->entries.emplace_back(), &saved[i]);
    if (failed) return failed;
  }
  if (tw_status* failed = AddAssignments(saver)) return failed;
  if (tw_status* failed = Assign(*saver, session, opened, *report, std::move(saved))) return failed;
  AddUnused(opened, report.get());
  if (out_report) *out_report = report.release();
  return nullptr;
}

const Entry* EntryOf(const tw_restore_report* report, uint32_t i) {
  return i < tw_restore_report_count(report) ? &report->entries[i] : nullptr;
}

}  // namespace

tw_status* tw_saver_restore_partial(tw_saver* saver, tw_session* session, const char* prefix, tw_restore_report** out_report) {
  if (out_report) *out_report = nullptr;
  if (!saver || !session || !prefix) {
    return tw_status_create(TW_INVALID_ARGUMENT, "tw_saver_restore_partial: saver, session or prefix is NULL");
  }
  try {
    return RestorePartial(saver, session, prefix, out_report);
  } catch (const std::bad_alloc&) {
    return tw_status_create(TW_RESOURCE_EXHAUSTED, "out of host memory for a restore");
  }
}

void tw_restore_report_destroy(tw_restore_report* report) { delete report; }

uint32_t tw_restore_report_count(const tw_restore_report* report) { return report ? uint32_t(report->entries.size()) : 0; }

uint32_t tw_restore_report_outcome(const tw_restore_report* report, uint32_t i) {
  const Entry* e = EntryOf(report, i);
  return e ? e->outcome : uint32_t(TW_RESTORE_MISSING);
}

const char* tw_restore_report_variable(const tw_restore_report* report, uint32_t i) {
  const Entry* e = EntryOf(report, i);
  return e && e->outcome != TW_RESTORE_UNUSED ? e->variable.c_str() : nullptr;
}

const char* tw_restore_report_name(const tw_restore_report* report, uint32_t i) {
  const Entry* e = EntryOf(report, i);
  return e ? e->name.c_str() : nullptr;
}

const char* tw_restore_report_text(const tw_restore_report* report, uint32_t i) {
  const Entry* e = EntryOf(report, i);
  return e ? e->text.c_str() : nullptr;
}
