#include "repository.h"

#include <algorithm>
#include <filesystem>

#include "framework/base/meant.h"
#include "http_error.h"
#include "utf8.h"

namespace thalweg::cli::serve {

Repository::Repository(bool all_versions, Labels labels, Load load, Metrics* metrics, Log log)
    : all_versions_(all_versions), labels_(std::move(labels)), load_(std::move(load)), metrics_(metrics), log_(std::move(log)) {}

Repository::~Repository() {
  Stop();
  if (watcher_.joinable()) watcher_.join();
}

std::string Repository::Stop() {
  const std::lock_guard<std::mutex> lock(mutex_);
  stopped_ = true;
  stop_.notify_all();
  for (const auto& [name, entry] : models_) {
    if (entry.loading) return "model '" + name + "' version " + std::to_string(*entry.loading);
  }
  return "";
}

void Repository::Announce(const std::map<std::string, Versions>& models) {
  const std::lock_guard<std::mutex> lock(mutex_);
  for (const auto& [name, versions] : models) {
    Entry& entry = models_[name];
    if (!versions.empty() && entry.served.empty() && entry.failed.empty()) entry.next = versions.rbegin()->first;
  }
}

void Repository::Add(const std::string& name, const std::string& path) {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    Entry& entry = models_[name];
    entry.loading = 1;
    entry.next.reset();
  }
  std::shared_ptr<ServedModel> model = load_(name, 1, path);
  metrics_->Load(name, true);
  const std::lock_guard<std::mutex> lock(mutex_);
  Entry& entry = models_[name];
  entry.loading.reset();
  entry.served.emplace(1, std::move(model));
}

// Returns NULL after a failure, which the status then has, and after Stop.
std::shared_ptr<ServedModel> Repository::TryLoad(const std::string& name, uint64_t version, const std::string& path) {
  const std::string fingerprint = Fingerprint(path);
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    Entry& entry = models_[name];
    const auto failed = entry.failed.find(version);
    if (failed != entry.failed.end() && failed->second.fingerprint == fingerprint) return nullptr;
    if (stopped_) return nullptr;
    entry.loading = version;
    entry.next.reset();
  }
  std::shared_ptr<ServedModel> model;
  Failure failure = {TW_UNKNOWN, "", fingerprint};
  try {
    model = load_(name, version, path);
  } catch (const tw::StatusError& e) {
    failure.code = e.code();
    failure.text = e.what();
  } catch (const std::bad_alloc&) {
    failure.code = TW_RESOURCE_EXHAUSTED;
    failure.text = "there is not enough memory";
  } catch (const std::exception& e) {
    failure.code = TW_INVALID_ARGUMENT;
    failure.text = e.what();
  }
  metrics_->Load(name, model != nullptr);
  log_("model '" + name + "' version " + std::to_string(version) + (model ? ": loaded" : " was not loaded: " + failure.text));
  const std::lock_guard<std::mutex> lock(mutex_);
  Entry& entry = models_[name];
  entry.loading.reset();
  entry.failed.erase(version);
  if (!model) entry.failed.emplace(version, std::move(failure));
  return model;
}

void Repository::ScanModel(const std::string& name, const Versions& versions) {
  decltype(Entry::served) before, after;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    before = models_[name].served;
  }
  for (auto it = versions.rbegin(); it != versions.rend() && (all_versions_ || after.empty()); ++it) {
    const auto served = before.find(it->first);
    std::shared_ptr<ServedModel> model = served != before.end() ? served->second : TryLoad(name, it->first, it->second);
    if (model) after.emplace(it->first, std::move(model));
  }
  // If no version can be loaded, the old ones stay, even if their files are gone.
  if (after.empty() && !versions.empty()) after = before;
  for (const auto& [version, model] : before) {
    if (!after.count(version)) log_("model '" + name + "' version " + std::to_string(version) + ": no longer served");
  }
  const std::lock_guard<std::mutex> lock(mutex_);
  Entry& entry = models_[name];
  entry.served = std::move(after);
  entry.next.reset();
  std::erase_if(entry.failed, [&](const auto& failed) { return !versions.count(failed.first); });
}  // `before` goes here without the lock: the last reference to a version may take long

void Repository::Scan(const std::string& folder) {
  const std::lock_guard<std::mutex> one(scanning_);
  const auto found = ListModels(folder);
  Announce(found);
  for (const auto& [name, versions] : found) ScanModel(name, versions);
  std::vector<Entry> gone;
  const std::lock_guard<std::mutex> lock(mutex_);
  for (auto it = models_.begin(); it != models_.end();) {
    const auto at = it++;
    if (found.count(at->first)) continue;
    log_("model '" + at->first + "': no longer served");
    gone.push_back(std::move(at->second));
    models_.erase(at);
  }
}

void Repository::Watch(const std::string& folder, std::chrono::milliseconds every) {
  watcher_ = std::thread([this, folder, every] {
    std::unique_lock<std::mutex> lock(mutex_);
    std::string last_error;
    while (!stop_.wait_for(lock, every, [&] { return stopped_; })) {
      lock.unlock();
      std::string error;
      try {
        Scan(folder);
      } catch (const std::filesystem::filesystem_error& e) {
        error = "'" + e.path1().string() + "': " + e.code().message();
      } catch (const std::exception& e) {
        error = e.what();
      }
      if (!error.empty() && error != last_error) log_(error + "; the models stay as they are");
      last_error = error;
      lock.lock();
    }
  });
}

const Repository::Entry& Repository::At(const std::string& name) const {
  const auto it = models_.find(name);
  if (it != models_.end()) return it->second;
  Meant meant(name);
  for (const auto& [known, entry] : models_) meant.Consider(known);
  throw HttpError(404, "model '" + OneLine(name) + "' is not served" + meant.text());
}

std::string Repository::Pending(const Entry& entry, const std::string& version) {
  const auto is = [&](const std::optional<uint64_t>& v) { return v && (version.empty() || std::to_string(*v) == version); };
  if (is(entry.loading)) return "version " + std::to_string(*entry.loading) + " is being loaded; try again";
  if (is(entry.next)) return "version " + std::to_string(*entry.next) + " will be loaded; try again";
  return "";
}

std::shared_ptr<ServedModel> Repository::Find(const std::string& name, const std::string& version) const {
  const std::lock_guard<std::mutex> lock(mutex_);
  const Entry& entry = At(name);
  const std::string pending = Pending(entry, version);
  if (version.empty() && entry.served.empty()) {
    const std::string why = !pending.empty() ? pending
                            : entry.failed.empty()
                                ? "it has no version"
                                : "version " + std::to_string(entry.failed.rbegin()->first) + ": " + entry.failed.rbegin()->second.text;
    throw HttpError(503, "model '" + name + "' is not ready: " + why);
  }
  if (version.empty()) return entry.served.begin()->second;
  std::string known;
  for (const auto& [number, model] : entry.served) {
    if (model->version() == version) return model;
    known += (known.empty() ? "" : ", ") + model->version();
  }
  if (!pending.empty()) throw HttpError(503, "model '" + name + "' is not ready: " + pending);
  throw HttpError(404, "model '" + name + "' has no version '" + OneLine(version) + "' that is served; " +
                           (known.empty() ? "none is" : "these are: " + known));
}

std::shared_ptr<ServedModel> Repository::FindLabel(const std::string& name, const std::string& label) const {
  const auto model = labels_.find(name);
  if (model != labels_.end() && model->second.count(label)) return Find(name, std::to_string(model->second.at(label)));
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    At(name);
  }
  throw HttpError(404, "model '" + name + "' has no label '" + OneLine(label) + "'; --label gives it one");
}

std::vector<std::string> Repository::Served(const std::string& name) const {
  const std::lock_guard<std::mutex> lock(mutex_);
  std::vector<std::string> versions;
  for (const auto& [number, model] : At(name).served) versions.push_back(model->version());
  return versions;
}

std::vector<Repository::Status> Repository::Report(const std::string& name) const {
  const std::lock_guard<std::mutex> lock(mutex_);
  const Entry& entry = At(name);
  std::vector<Status> all;
  for (const auto& [version, model] : entry.served) all.push_back({version, "AVAILABLE", TW_OK, ""});
  for (const auto& [version, failure] : entry.failed) {
    if (!entry.served.count(version)) all.push_back({version, "END", failure.code, failure.text});
  }
  const auto add = [&](const std::optional<uint64_t>& version, const char* state) {
    if (!version || entry.served.count(*version)) return;
    std::erase_if(all, [&](const Status& s) { return s.version == *version; });
    all.push_back({*version, state, TW_OK, ""});
  };
  add(entry.loading, "LOADING");
  add(entry.next, "START");
  std::sort(all.begin(), all.end(), [](const Status& a, const Status& b) { return a.version > b.version; });
  return all;
}

std::vector<std::string> Repository::Names() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  std::vector<std::string> names;
  for (const auto& [name, entry] : models_) names.push_back(name);
  return names;
}

bool Repository::ready() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return std::all_of(models_.begin(), models_.end(), [](const auto& model) { return !model.second.served.empty(); });
}

}  // namespace thalweg::cli::serve
