#include "distributed/cluster.h"

#include <algorithm>
#include <charconv>
#include <map>

#include "distributed/json_tree.h"
#include "framework/base/shown.h"
#include "framework/json/json.h"

namespace thalweg::distributed {
namespace {

constexpr size_t kMostTasks = 100000;
constexpr std::string_view kDefaultScheme = "grpc";

bool IsWord(std::string_view s) {
  auto letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); };
  if (s.empty() || s.size() > 100 || !letter(s[0])) return false;
  return std::all_of(s.begin(), s.end(), [&](char c) { return letter(c) || (c >= '0' && c <= '9') || c == '_'; });
}

bool IsNumber(std::string_view s) {
  return !s.empty() && std::all_of(s.begin(), s.end(), [](char c) { return c >= '0' && c <= '9'; });
}

StatusOr<int32_t> IndexOf(std::string_view job, std::string_view text) {
  int32_t index = -1;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), index);
  if (error == std::errc() && end == text.data() + text.size() && index >= 0) return index;
  return InvalidArgument("cluster: job '", job, "' has a task '", Shown(text), "'; tasks are 0, 1, 2, ...");
}

}  // namespace

std::string TaskId::text() const { return StrCat("/job:", job, "/task:", index); }

std::string Address::text() const { return StrCat(scheme, ":", rest); }

StatusOr<Address> ParseAddress(std::string_view text) {
  const size_t colon = text.find(':');
  const bool plain = std::all_of(text.begin(), text.end(), [](char c) { return c > ' ' && c < 127; });
  if (!plain) return InvalidArgument("an address has other characters than letters, digits and signs of ASCII");
  if (colon == text.npos || colon == 0 || colon + 1 == text.size() || text.size() > 1000) {
    return InvalidArgument("address '", Shown(text), "': write `scheme:address`, such as unix:ps0 or grpc:host:2222");
  }
  std::string_view scheme = text.substr(0, colon), rest = text.substr(colon + 1);
  const bool slashes = rest.substr(0, 2) == "//";
  if (slashes) rest.remove_prefix(2);
  if (!slashes && IsNumber(rest)) return Address{std::string(kDefaultScheme), std::string(text)};
  if (!IsWord(scheme)) return InvalidArgument("address '", Shown(text), "': '", Shown(scheme), "' is no scheme");
  if (rest.empty()) return InvalidArgument("address '", Shown(text), "' has a scheme only");
  return Address{std::string(scheme), std::string(rest)};
}

std::string ClusterSpec::Task::title() const { return StrCat("task ", id.text(), " at ", address.text()); }

Status ClusterSpec::Add(Task task) {
  if (tasks_.size() >= kMostTasks) return ResourceExhausted("cluster: there are more than ", kMostTasks, " tasks");
  tasks_.push_back(std::move(task));
  return Status();
}

Status ClusterSpec::Check() const {
  if (tasks_.empty()) return InvalidArgument("cluster: there are no tasks");
  std::map<std::string, const Task*> by_address;
  for (size_t i = 0; i < tasks_.size(); ++i) {
    const Task& t = tasks_[i];
    if (i > 0 && tasks_[i - 1].id == t.id) return InvalidArgument("cluster: ", t.id.text(), " stands there twice");
    const auto [other, is_new] = by_address.emplace(t.address.text(), &t);
    if (!is_new) {
      return InvalidArgument("cluster: ", other->second->id.text(), " and ", t.id.text(), " have one address, ", t.address.text());
    }
  }
  return Status();
}

StatusOr<TaskConfig> ParseTaskConfig(std::string_view json) {
  ASSIGN_OR_RETURN(const JsonTree tree, ParseJson(json));
  if (tree.kind != JsonTree::kObject) return InvalidArgument("cluster: an object must stand there, such as {\"worker\": [\"unix:w0\"]}");
  TaskConfig config;
  const JsonTree* jobs = tree.Find("cluster");
  if (!jobs || jobs->kind != JsonTree::kObject) jobs = &tree;
  for (const auto& [job, tasks] : jobs->members) {
    if (!IsWord(job)) return InvalidArgument("cluster: '", Shown(job), "' is no name of a job; use letters, digits and '_'");
    if (tasks.kind != JsonTree::kArray && tasks.kind != JsonTree::kObject) {
      return InvalidArgument("cluster: job '", job, "' must be a list of addresses");
    }
    for (size_t i = 0; i < tasks.members.size(); ++i) {
      const auto& [name, address] = tasks.members[i];
      ClusterSpec::Task t{{job, int32_t(i)}, {}};
      if (tasks.kind == JsonTree::kObject) {
        ASSIGN_OR_RETURN(t.id.index, IndexOf(job, name));
      }
      if (address.kind != JsonTree::kText) return InvalidArgument("cluster: the address of ", t.id.text(), " must be a text");
      auto parsed = ParseAddress(address.text);
      if (!parsed.ok()) return Prefix(parsed.status(), StrCat("cluster: ", t.id.text(), ":"));
      t.address = *std::move(parsed);
      RETURN_IF_ERROR(config.cluster.Add(std::move(t)));
    }
  }
  std::sort(config.cluster.tasks_.begin(), config.cluster.tasks_.end(), [](auto& a, auto& b) { return a.id < b.id; });
  RETURN_IF_ERROR(config.cluster.Check());
  if (const JsonTree* membership = jobs == &tree ? nullptr : tree.Find("membership")) {
    if (membership->kind != JsonTree::kText)
      return InvalidArgument("cluster: \"membership\" must be a text, such as \"etcd:host:2379/team\"");
    config.cluster.membership_ = membership->text;
  }
  if (const JsonTree* task = jobs == &tree ? nullptr : tree.Find("task")) {
    const JsonTree *type = task->Find("type"), *index = task->Find("index");
    if (!type || type->kind != JsonTree::kText || !index) return InvalidArgument("cluster: \"task\" must have \"type\" and \"index\"");
    const bool counts = index->kind == JsonTree::kNumber && index->number >= 0 && index->number < kMostTasks;
    ASSIGN_OR_RETURN(const int32_t i, IndexOf(type->text, counts ? std::to_string(int64_t(index->number)) : index->text));
    config.task = TaskId{type->text, i};
  }
  return config;
}

StatusOr<ClusterSpec> ClusterSpec::Parse(std::string_view json) {
  ASSIGN_OR_RETURN(TaskConfig config, ParseTaskConfig(json));
  return std::move(config.cluster);
}

const ClusterSpec::Task* ClusterSpec::Find(const TaskId& id) const {
  auto it = std::lower_bound(tasks_.begin(), tasks_.end(), id, [](const Task& t, const TaskId& i) { return t.id < i; });
  return it != tasks_.end() && it->id == id ? &*it : nullptr;
}

void ClusterSpec::SetAddress(const TaskId& id, std::string rest) {
  tasks_[size_t(Find(id) - tasks_.data())].address.rest = std::move(rest);
}

std::string ClusterSpec::text() const {
  Json json;
  json.Object();
  if (!membership_.empty()) json.Object("cluster");
  for (size_t i = 0; i < tasks_.size(); ++i) {
    const Task& t = tasks_[i];
    if (i == 0 || tasks_[i - 1].id.job != t.id.job) json.Object(t.id.job);
    json.Text(std::to_string(t.id.index), StrCat(t.address.scheme, "://", t.address.rest));
    if (i + 1 == tasks_.size() || tasks_[i + 1].id.job != t.id.job) json.End();
  }
  if (!membership_.empty()) json.End().Text("membership", membership_);
  json.End();
  return json.text();
}

std::string ClusterSpec::names() const {
  return Listed([](const Task& t) { return t.id.text(); });
}

std::string ClusterSpec::places() const {
  return Listed([](const Task& t) { return StrCat(t.id.text(), " at ", t.address.text()); });
}

std::string ClusterSpec::Listed(const std::function<std::string(const Task&)>& text) const {
  std::string all;
  for (size_t i = 0; i < tasks_.size() && i < 8; ++i) all += StrCat(i ? ", " : "", text(tasks_[i]));
  return tasks_.size() > 8 ? StrCat(all, " and ", tasks_.size() - 8, " more") : all;
}

}  // namespace thalweg::distributed
