#include "client_watch.h"

#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <system_error>

#include <sys/epoll.h>
#include <sys/eventfd.h>

namespace thalweg::cli::serve {
namespace {

[[noreturn]] void Failed(const char* what) { throw std::system_error(errno, std::generic_category(), what); }

}  // namespace

ClientWatch::ClientWatch() {
  epoll_ = epoll_create1(EPOLL_CLOEXEC);
  if (epoll_ < 0) Failed("cannot watch connections");
  stop_ = eventfd(0, EFD_CLOEXEC);
  epoll_event event = {};
  event.events = EPOLLIN;
  if (stop_ < 0 || epoll_ctl(epoll_, EPOLL_CTL_ADD, stop_, &event) != 0) {
    const int error = errno;
    if (stop_ >= 0) close(stop_);
    close(epoll_);
    errno = error;
    Failed("cannot watch connections");
  }
  thread_ = std::thread([this] { Wait(); });
}

ClientWatch::~ClientWatch() {
  const uint64_t one = 1;
  if (write(stop_, &one, sizeof(one)) != ssize_t(sizeof(one))) {
    std::perror("thalweg serve: cannot wake the thread that watches connections");
    std::abort();  // a counter that is 0 takes 1 without waiting
  }
  thread_.join();
  close(stop_);
  close(epoll_);
}

void ClientWatch::Wait() {
  std::array<epoll_event, 64> events;
  for (;;) {
    const int n = epoll_wait(epoll_, events.data(), int(events.size()), -1);
    if (n < 0 && errno != EINTR) {
      std::perror("thalweg serve: cannot wait for connections");
      std::abort();  // the descriptor is ours and open
    }
    for (int i = 0; i < n; ++i) {
      if (events[size_t(i)].data.u64 == 0) return;
      Left(events[size_t(i)].data.u64);
    }
  }
}

// A client whose connection the server has closed meanwhile is not in the table any more.
void ClientWatch::Left(uint64_t id) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto client = clients_.find(id);
  if (client == clients_.end()) return;
  client->second->left_ = true;
  if (client->second->request_) client->second->request_->Cancel(Cancellation::Cause::kClientLeft);
}

void ClientWatch::CancelAll() {
  const std::lock_guard<std::mutex> lock(mutex_);
  ending_ = true;
  for (const auto& [id, client] : clients_) {
    if (client->request_) client->request_->Cancel(Cancellation::Cause::kServerEnds);
  }
}

ClientWatch::Client::Client(ClientWatch* watch, int socket) : watch_(watch), socket_(socket) {
  {
    const std::lock_guard<std::mutex> lock(watch_->mutex_);
    id_ = watch_->next_id_++;
    watch_->clients_.emplace(id_, this);
  }
  epoll_event event = {};
  event.events = EPOLLRDHUP | EPOLLET;
  event.data.u64 = id_;
  if (epoll_ctl(watch_->epoll_, EPOLL_CTL_ADD, socket_, &event) == 0) return;
  const int error = errno;
  {
    const std::lock_guard<std::mutex> lock(watch_->mutex_);
    watch_->clients_.erase(id_);
  }
  errno = error;
  Failed("cannot watch a connection");
}

ClientWatch::Client::~Client() {
  epoll_ctl(watch_->epoll_, EPOLL_CTL_DEL, socket_, nullptr);
  const std::lock_guard<std::mutex> lock(watch_->mutex_);
  watch_->clients_.erase(id_);
}

ClientWatch::Serving::Serving(Client* client, Cancellation* request) : client_(client) {
  const std::lock_guard<std::mutex> lock(client_->watch_->mutex_);
  client_->request_ = request;
  if (client_->watch_->ending_) request->Cancel(Cancellation::Cause::kServerEnds);
  if (client_->left_) request->Cancel(Cancellation::Cause::kClientLeft);
}

ClientWatch::Serving::~Serving() {
  const std::lock_guard<std::mutex> lock(client_->watch_->mutex_);
  client_->request_ = nullptr;
}

}  // namespace thalweg::cli::serve
