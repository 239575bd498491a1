/* Two toys with all optional sets: pinned memory, peer copies, events, statistics, recordings, a
 * profile, and memory of other libraries. */
#ifndef MUTANTS_TOY_SETS_H
#define MUTANTS_TOY_SETS_H
#include "toy_stream.h"

static UNUSED int toy_selves[2];

static UNUSED tw_status* toy_enumerate_two(const tw_host* h, void* user, tw_device_list* to) {
  const tw_device_info a = {TW_SIZED(tw_device_info), TW_S("toy-0"), TW_S("memory that plays a device"), &toy_selves[0], 0, 0};
  const tw_device_info b = {TW_SIZED(tw_device_info), TW_S("toy-1"), TW_S("memory that plays another"), &toy_selves[1], 0, 0};
  (void)h, (void)user;
  TW_TRY(to->add(to, &a));
  return to->add(to, &b);
}

/* ---- pinned memory ---- */

static UNUSED tw_status* toy_pin(const tw_host* h, void* self, const tw_allocation* a, void** out_address) {
  return toy_allocate(h, self, a, out_address);
}
static UNUSED tw_pinned_set toy_pinned(void) { return (tw_pinned_set){TW_SIZED(tw_pinned_set), toy_pin, toy_release}; }

/* ---- peers ---- */

static UNUSED uint32_t toy_reaches(const tw_host* h, void* self, void* other) {
  (void)h, (void)self, (void)other;
  return 1;
}
static UNUSED tw_status* toy_peer_copy(const tw_host* h, void* self, void* other, const tw_copy* c) {
  (void)other;
  return toy_copy(h, self, c);
}
static UNUSED tw_peer_set toy_peer(void) { return (tw_peer_set){TW_SIZED(tw_peer_set), toy_reaches, toy_peer_copy}; }

/* ---- events ---- */

typedef struct toy_event {
  pthread_mutex_t mu;
  pthread_cond_t changed;
  int reached;
} toy_event;

static UNUSED void toy_event_reach(void* arg) {
  toy_event* e = arg;
  pthread_mutex_lock(&e->mu);
  e->reached = 1;
  pthread_cond_broadcast(&e->changed);
  pthread_mutex_unlock(&e->mu);
}
static UNUSED void toy_event_await(void* arg) {
  toy_event* e = arg;
  pthread_mutex_lock(&e->mu);
  while (!e->reached) pthread_cond_wait(&e->changed, &e->mu);
  pthread_mutex_unlock(&e->mu);
}
static UNUSED toy_event* toy_event_make(void) {
  toy_event* e = calloc(1, sizeof *e);
  pthread_mutex_init(&e->mu, NULL);
  pthread_cond_init(&e->changed, NULL);
  return e;
}
static UNUSED tw_status* toy_event_record(const tw_host* h, void* stream, void** out_event) {
  toy_event* e = toy_event_make();
  *out_event = e;
  return toy_enqueue(h, stream, (toy_job){.work = TOY_CALL, .call = toy_event_reach, .arg = e});
}
static UNUSED tw_status* toy_event_wait(const tw_host* h, void* stream, void* event) {
  return toy_enqueue(h, stream, (toy_job){.work = TOY_CALL, .call = toy_event_await, .arg = event});
}
static UNUSED void toy_event_release(const tw_host* h, void* self, void* event) {
  (void)h, (void)self;
  free(event);
}
static UNUSED tw_event_set toy_events(void) {
  return (tw_event_set){TW_SIZED(tw_event_set), TW_S("toy"), toy_event_wait, toy_event_record, toy_event_release, NULL};
}

/* ---- statistics ---- */

static UNUSED tw_status* toy_read_numbers(const tw_host* h, void* self, tw_number_list* to) {
  (void)h, (void)self;
  TW_TRY(to->add(to, TW_S("memory_used"), 0));
  return to->add(to, TW_S("busy"), 50);
}
static UNUSED tw_statistics_set toy_statistics(void) { return (tw_statistics_set){TW_SIZED(tw_statistics_set), toy_read_numbers}; }

/* ---- profile ---- */

static struct {
  pthread_mutex_t mu;
  tw_span_list* to;
} profile = {PTHREAD_MUTEX_INITIALIZER, NULL};

static UNUSED tw_status* toy_profile_start(const tw_host* h, void* self, tw_span_list* to) {
  (void)h, (void)self;
  pthread_mutex_lock(&profile.mu);
  profile.to = to;
  pthread_mutex_unlock(&profile.mu);
  return NULL;
}
static UNUSED void toy_profile_stop(const tw_host* h, void* self) { (void)toy_profile_start(h, self, NULL); }
static UNUSED tw_profile_set toy_profile(void) { return (tw_profile_set){TW_SIZED(tw_profile_set), toy_profile_start, toy_profile_stop}; }

/* ---- copies, which may be recorded and profiled ---- */

typedef struct toy_copies {
  struct toy_copies* next; /* next of the recording */
  uint64_t part;           /* of the recording; 0: none */
  const tw_host* host;
  tw_copy copy;
} toy_copies;

static UNUSED void toy_copy_run(void* arg) {
  const toy_copies* c = arg;
  const int64_t begin = c->host->run->now(c->host);
  toy_copy(c->host, NULL, &c->copy);
  const tw_span span = {TW_SIZED(tw_span), TW_S("copies"), TW_S("copy"), begin, c->host->run->now(c->host)};
  pthread_mutex_lock(&profile.mu);
  if (profile.to) profile.to->add(profile.to, &span);
  pthread_mutex_unlock(&profile.mu);
}
static UNUSED void toy_copy_run_once(void* arg) {
  toy_copy_run(arg);
  free(arg);
}

static toy_copies* recording;
static int is_recording;
static uint64_t recorded_part;

static UNUSED tw_status* toy_sets_copy(const tw_host* h, void* self, const tw_copy* c) {
  (void)self;
  toy_copies* copy = calloc(1, sizeof *copy);
  copy->host = h;
  copy->copy = *c;
  if (!c->stream) {
    toy_copy_run_once(copy);
  } else if (is_recording) {
    copy->part = recorded_part;
    copy->next = recording;
    recording = copy;
  } else {
    return toy_enqueue(h, c->stream, (toy_job){.work = TOY_CALL, .call = toy_copy_run_once, .arg = copy});
  }
  return NULL;
}

static UNUSED tw_status* toy_capture_begin(const tw_host* h, const tw_capture_config* c) {
  (void)h, (void)c;
  is_recording = 1;
  recorded_part = 0;
  return NULL;
}
static UNUSED tw_status* toy_capture_end(const tw_host* h, void* stream, void** out_recording) {
  (void)h, (void)stream;
  *out_recording = recording;
  recording = NULL;
  is_recording = 0;
  return NULL;
}
static UNUSED tw_status* toy_replay(const tw_host* h, void* stream, void* recorded) {
  for (toy_copies* c = recorded; c; c = c->next)
    TW_TRY(toy_enqueue(h, stream, (toy_job){.work = TOY_CALL, .call = toy_copy_run, .arg = c}));
  return NULL;
}
static UNUSED void toy_capture_release(const tw_host* h, void* self, void* recorded) {
  (void)h, (void)self;
  for (toy_copies *c = recorded, *next; c; c = next) {
    next = c->next;
    free(c);
  }
}
static UNUSED tw_status* toy_mark(const tw_host* h, void* stream, uint64_t part) {
  (void)h, (void)stream;
  recorded_part = part;
  return NULL;
}
static UNUSED tw_status* toy_update(const tw_host* h, void* stream, void* recorded, uint64_t part) {
  (void)h, (void)stream, (void)recorded, (void)part;
  is_recording = 1;
  return NULL;
}
static UNUSED tw_status* toy_updated(const tw_host* h, void* stream, void* recorded, uint64_t part) {
  toy_copies* next = recording;
  (void)stream;
  is_recording = 0;
  for (toy_copies* c = recorded; c; c = c->next) {
    if (c->part != part) continue;
    if (!next) break;
    c->copy = next->copy;
    next = next->next;
  }
  toy_capture_release(h, NULL, recording);
  recording = NULL;
  return NULL;
}
static UNUSED tw_capture_set toy_capture(void) {
  return (tw_capture_set){TW_SIZED(tw_capture_set),
                          toy_capture_begin,
                          toy_capture_end,
                          toy_replay,
                          toy_capture_release,
                          NULL,
                          toy_mark,
                          toy_update,
                          toy_updated};
}

/* ---- memory of other libraries: any of at most the toy's size ---- */

static UNUSED int32_t toy_number(const tw_host* h, void* self) {
  (void)h;
  return (int32_t)((int*)self - toy_selves);
}
static UNUSED tw_status* toy_take(const tw_host* h, void* self, void* memory, uint64_t offset, uint64_t bytes, void* queue) {
  (void)self, (void)memory, (void)queue;
  if (offset + bytes >= (uint64_t)1 << 40) return tw_fail(h, TW_INVALID_ARGUMENT, TW_S("no toy has so much memory"));
  return NULL;
}
static UNUSED tw_dlpack_set toy_dlpack(void) { return (tw_dlpack_set){TW_SIZED(tw_dlpack_set), 12, 1, toy_number, toy_take}; }

/* ---- all sets ---- */

typedef struct toy_sets {
  tw_stream_set streams;
  tw_pinned_set pinned;
  tw_peer_set peer;
  tw_event_set events;
  tw_statistics_set statistics;
  tw_capture_set capture;
  tw_profile_set profile;
  tw_dlpack_set dlpack;
} toy_sets;

static UNUSED toy_sets toy_all_sets(void) {
  return (toy_sets){toy_streams(), toy_pinned(), toy_peer(), toy_events(), toy_statistics(), toy_capture(), toy_profile(), toy_dlpack()};
}
static UNUSED tw_status* toy_register_sets(tw_registrar* r, const toy_sets* s) {
  tw_device_def d = toy_device();
  d.enumerate = toy_enumerate_two;
  d.copy = toy_sets_copy;
  d.streams = &s->streams;
  d.pinned = &s->pinned;
  d.peer = &s->peer;
  d.events = &s->events;
  d.statistics = &s->statistics;
  d.capture = &s->capture;
  d.profile = &s->profile;
  d.dlpack = &s->dlpack;
  return tw_add_device(r, &d);
}
#endif
