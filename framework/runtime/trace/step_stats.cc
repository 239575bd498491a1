#include "framework/runtime/trace/step_stats.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <unordered_map>

namespace thalweg {

void StepStats::Clear() {
  total_ = {};
  total_.size = sizeof total_;
  nodes_.clear();
  ops_.clear();
  waits_.clear();
  calls_.clear();
  spans_.clear();
  counts_.clear();
  span_records_.clear();
  count_records_.clear();
  trace_ = 0;
  threads_.clear();
  texts_.clear();
  node_texts_.clear();
  after_.clear();
}

const char* StepStats::Keep(std::string_view text) { return text.empty() ? "" : texts_.emplace(text).first->c_str(); }

uint32_t StepStats::NumberOf(std::thread::id thread) const {
  const auto at = std::find(threads_.begin(), threads_.end(), thread);
  return at == threads_.end() ? UINT32_MAX : uint32_t(at - threads_.begin());
}

void StepStats::RecordReports() {
  // A span is reported when it ends, so one that contains others comes after them.
  std::stable_sort(spans_.begin(), spans_.end(),
                   [](const auto& a, const auto& b) { return std::pair(a.start, -a.end) < std::pair(b.start, -b.end); });
  std::stable_sort(counts_.begin(), counts_.end(), [](const auto& a, const auto& b) { return a.at < b.at; });
  span_records_.reserve(spans_.size());
  for (const KernelSpan& s : spans_) {
    span_records_.push_back({sizeof(tw_step_span), 0, s.name, s.node, s.device, s.row, s.start, s.end, NumberOf(s.thread), 0});
  }
  count_records_.reserve(counts_.size());
  for (const KernelCount& c : counts_) {
    count_records_.push_back({sizeof(tw_step_count), 0, c.name, c.node, c.device, c.at, c.value, NumberOf(c.thread), 0});
  }
}

// Sums up by op. Nodes of one plan share the text of their op, those of several plans do not. There
// are few texts, so most are found in a small table of recent ones.
void StepStats::SumUp() {
  std::unordered_map<const char*, tw_step_op> by_text;
  std::array<std::pair<const char*, tw_step_op*>, 64> last{};
  for (const tw_step_node& n : nodes_) {
    auto& [text, found] = last[(reinterpret_cast<uintptr_t>(n.op) >> 4) % last.size()];
    if (!found || text != n.op) {
      text = n.op;
      found = &by_text[n.op];
    }
    tw_step_op& op = *found;
    ++op.count;
    op.busy_ns += n.busy_ns;
    op.output_bytes += n.output_bytes;
    op.allocated_bytes += n.allocated_bytes;
  }
  std::unordered_map<std::string_view, size_t> place;
  for (const auto& [text, sums] : by_text) {
    auto [it, is_new] = place.try_emplace(text, ops_.size());
    if (is_new) ops_.push_back({sizeof(tw_step_op), 0, text, 0, 0, 0, 0});
    tw_step_op& op = ops_[it->second];
    op.count += sums.count;
    op.busy_ns += sums.busy_ns;
    op.output_bytes += sums.output_bytes;
    op.allocated_bytes += sums.allocated_bytes;
    total_.allocated_bytes += sums.allocated_bytes;
  }
  std::sort(ops_.begin(), ops_.end(), [](const tw_step_op& a, const tw_step_op& b) {
    return a.busy_ns != b.busy_ns ? a.busy_ns > b.busy_ns : std::string_view(a.op) < b.op;
  });
}

namespace {

// Returns an id for a thread of another process that no thread here has, for rows of traces.
std::thread::id Foreign(size_t part, uint32_t thread) {
  static_assert(sizeof(std::thread::id) == sizeof(uint64_t));
  return std::bit_cast<std::thread::id>(uint64_t{part + 1} << 32 | (uint64_t{thread} + 1));
}

}  // namespace

void StepStats::Assemble(std::span<const Part> parts) {
  size_t n_after = 0;
  for (const Part& p : parts) {
    for (const tw_step_node& n : p.nodes) n_after += n.n_after;
  }
  trace_ = 0;                      // each task numbers its traces itself
  after_.reserve(n_after);         // the records point into it
  threads_ = {std::thread::id()};  // the caller's thread, which ran no node
  for (size_t k = 0; k < parts.size(); ++k) {
    const Part& p = parts[k];
    const auto first_id = uint32_t(nodes_.size()), first_thread = uint32_t(threads_.size());
    for (uint32_t t = 0; t < p.threads; ++t) threads_.push_back(Foreign(k, t));
    total_.left_out += p.total.left_out;
    total_.block_bytes += p.total.block_bytes;
    total_.flags |= p.total.flags & (TW_STEP_COUNTED | TW_STEP_PLANNED);
    for (tw_step_node n : p.nodes) {
      if (nodes_.size() >= limit_) {
        ++total_.left_out;
        continue;
      }
      for (const char** text : {&n.name, &n.op, &n.device, &n.kernel, &n.shapes, &n.to, &n.function, &n.frame, &n.queue})
        *text = Keep(*text);
      n.id += first_id;
      n.thread += first_thread;
      const uint32_t* after = n.after;
      n.after = after_.data() + after_.size();
      for (uint32_t i = 0; i < n.n_after; ++i) after_.push_back(first_id + after[i]);
      nodes_.push_back(n);
    }
    for (tw_step_wait w : p.waits) {
      w.name = Keep(w.name);
      w.what = Keep(w.what);
      if (w.thread != UINT32_MAX) w.thread += first_thread;
      if (waits_.size() < limit_) waits_.push_back(w);
    }
    for (size_t i = 0; i < p.calls.size(); ++i) {
      calls_.push_back(p.calls[i]);
      calls_.back().function = Keep(p.calls[i].function);
      calls_.back().thread = Foreign(k, p.call_threads[i]);
    }
    for (size_t i = 0; i < p.spans.size(); ++i) {
      KernelSpan s = p.spans[i];
      for (const char** text : {&s.node, &s.device, &s.name, &s.row}) *text = Keep(*text);
      s.thread = Foreign(k, p.span_threads[i]);
      if (spans_.size() < limit_)
        spans_.push_back(s);
      else
        ++total_.left_out;
    }
    for (size_t i = 0; i < p.counts.size(); ++i) {
      KernelCount c = p.counts[i];
      for (const char** text : {&c.node, &c.device, &c.name}) *text = Keep(*text);
      c.thread = Foreign(k, p.count_threads[i]);
      if (counts_.size() < limit_)
        counts_.push_back(c);
      else
        ++total_.left_out;
    }
  }
  const auto earlier = [](const auto& a, const auto& b) { return a.start_ns < b.start_ns; };
  std::stable_sort(nodes_.begin(), nodes_.end(), earlier);
  std::stable_sort(waits_.begin(), waits_.end(), earlier);
  RecordReports();
  total_.threads = uint32_t(threads_.size());
  total_.nodes = uint32_t(nodes_.size());
  if (total_.left_out) total_.flags |= TW_STEP_CUT;
  SumUp();
}

}  // namespace thalweg
