/* Plain TCP over loopback: each of `servers` processes answers four bytes with a given number of
 * bytes. Sends all requests, then reads all replies. */
#define _GNU_SOURCE
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "machine_worker.h"

enum { kMostServers = 16, kFans = 8 };

typedef struct fan {
  int servers;
  long long bytes;
  int sockets[kMostServers];
  char* into;
} fan;

static void serve(int listener, long long bytes) {
  const int fd = accept(listener, NULL, NULL), one = 1;
  char* data = calloc(1, (size_t)bytes);
  char question[4];
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
  while (recv(fd, question, sizeof question, MSG_WAITALL) == sizeof question) {
    for (long long at = 0; at < bytes;) {
      const ssize_t n = write(fd, data + at, (size_t)(bytes - at));
      if (n <= 0) _exit(1);
      at += n;
    }
  }
  _exit(0);
}

static int start_server(long long bytes) {
  struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  socklen_t size = sizeof at;
  const int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), one = 1;
  if (bind(listener, (struct sockaddr*)&at, size) != 0 || listen(listener, 1) != 0 ||
      getsockname(listener, (struct sockaddr*)&at, &size) != 0)
    worker_fail("cannot listen");
  const pid_t pid = fork();
  if (pid < 0) worker_fail("cannot fork");
  if (pid == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    serve(listener, bytes);
  }
  close(listener);
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (connect(fd, (struct sockaddr*)&at, size) != 0) worker_fail("cannot connect");
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
  return fd;
}

static void ask_all(void* user) {
  const fan* f = user;
  for (int i = 0; i < f->servers; ++i)
    if (write(f->sockets[i], "ask", 4) != 4) worker_fail("a server is gone");
  for (int i = 0; i < f->servers; ++i)
    if (recv(f->sockets[i], f->into, (size_t)f->bytes, MSG_WAITALL) != (ssize_t)f->bytes) worker_fail("a server is gone");
}

void answer_tcp(const char* argument) {
  static fan fans[kFans];
  int servers, samples;
  long long bytes;
  if (sscanf(argument, "%d %lld %d", &servers, &bytes, &samples) != 3 || servers > kMostServers) worker_fail("SERVERS BYTES SAMPLES");
  fan* f = fans;
  while (f->servers && (f->servers != servers || f->bytes != bytes)) ++f;
  if (f == fans + kFans - 1) worker_fail("too many servers");
  if (!f->servers) {
    *f = (fan){.servers = servers, .bytes = bytes, .into = malloc((size_t)bytes)};
    for (int i = 0; i < servers; ++i) f->sockets[i] = start_server(bytes);
  }
  worker_reply_time(ask_all, f, samples, 1, 1);
}
