/* The part of the native library that is written by hand: memory, and objects of Java as callbacks. */
#include <jni.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <thalweg/thalweg.h>

static JavaVM* machine;
static jmethodID call_method; /* long Callback.call(int what, long a, long b) */

JNIEXPORT jint JNICALL JNI_OnLoad(JavaVM* vm, void* reserved) {
  JNIEnv* env = NULL;
  (void)reserved;
  machine = vm;
  if ((*vm)->GetEnv(vm, (void**)&env, JNI_VERSION_1_8) != JNI_OK) return JNI_ERR;
  jclass callback = (*env)->FindClass(env, "org/thalweg/Callback");
  if (!callback) return JNI_ERR;
  call_method = (*env)->GetMethodID(env, callback, "call", "(IJJ)J");
  return call_method ? JNI_VERSION_1_8 : JNI_ERR;
}

/* ---- Memory ---- */

JNIEXPORT jlong JNICALL Java_org_thalweg_Memory_allocate(JNIEnv* env, jclass self, jlong bytes) {
  (void)env, (void)self;
  return (jlong)(uintptr_t)calloc(1, bytes > 0 ? (size_t)bytes : 1);
}
JNIEXPORT void JNICALL Java_org_thalweg_Memory_free(JNIEnv* env, jclass self, jlong address) {
  (void)env, (void)self;
  free((void*)(uintptr_t)address);
}
/* A direct buffer over memory of C. */
JNIEXPORT jobject JNICALL Java_org_thalweg_Memory_buffer(JNIEnv* env, jclass self, jlong address, jlong bytes) {
  (void)self;
  return (*env)->NewDirectByteBuffer(env, (void*)(uintptr_t)address, bytes);
}
/* The address of a direct buffer's first byte; 0 for another buffer. */
JNIEXPORT jlong JNICALL Java_org_thalweg_Memory_address(JNIEnv* env, jclass self, jobject buffer) {
  (void)self;
  return (jlong)(uintptr_t)(*env)->GetDirectBufferAddress(env, buffer);
}
/* The bytes of a text that ends with zero; null for NULL. */
JNIEXPORT jbyteArray JNICALL Java_org_thalweg_Memory_text(JNIEnv* env, jclass self, jlong address) {
  const char* text = (const char*)(uintptr_t)address;
  (void)self;
  if (!text) return NULL;
  const jsize n = (jsize)strlen(text);
  jbyteArray bytes = (*env)->NewByteArray(env, n);
  if (bytes) (*env)->SetByteArrayRegion(env, bytes, 0, n, (const jbyte*)text);
  return bytes;
}

/* ---- Callbacks ---- */

enum { kNext, kReset, kAfterStep, kEpochEnd, kRelease };

/* Calls the object of Java; threads that Java has not seen become daemons of it. Callback.call throws nothing, it keeps what was thrown. */
static jlong call_back(void* user, jint what, const void* a, jlong b) {
  JNIEnv* env = NULL;
  if ((*machine)->GetEnv(machine, (void**)&env, JNI_VERSION_1_8) != JNI_OK &&
      (*machine)->AttachCurrentThreadAsDaemon(machine, (void**)&env, NULL) != JNI_OK)
    return (jlong)(uintptr_t)tw_status_create(TW_INTERNAL, "the thread cannot be attached to Java");
  const jlong status = (*env)->CallLongMethod(env, (jobject)user, call_method, what, (jlong)(uintptr_t)a, b);
  if (!(*env)->ExceptionCheck(env)) return status;
  (*env)->ExceptionClear(env);
  return (jlong)(uintptr_t)tw_status_create(TW_UNKNOWN, "a callback threw");
}

static tw_status* next(void* user, tw_tensor** out, uint32_t* end) {
  return (tw_status*)(uintptr_t)call_back(user, kNext, out, (jlong)(uintptr_t)end);
}
static tw_status* reset(void* user, int64_t epoch) { return (tw_status*)(uintptr_t)call_back(user, kReset, NULL, epoch); }
static tw_status* after_step(void* user, const tw_fit_progress* at, uint32_t* stop) {
  return (tw_status*)(uintptr_t)call_back(user, kAfterStep, at, (jlong)(uintptr_t)stop);
}
static tw_status* epoch_end(void* user, const tw_fit_progress* at, uint32_t* stop) {
  return (tw_status*)(uintptr_t)call_back(user, kEpochEnd, at, (jlong)(uintptr_t)stop);
}
static void release(void* user) {
  JNIEnv* env = NULL;
  if ((*machine)->GetEnv(machine, (void**)&env, JNI_VERSION_1_8) != JNI_OK &&
      (*machine)->AttachCurrentThreadAsDaemon(machine, (void**)&env, NULL) != JNI_OK)
    return; /* Java has ended; its memory ends with the process */
  (*env)->DeleteGlobalRef(env, (jobject)user);
}

/* Keeps an object of Java and returns its `user`. */
JNIEXPORT jlong JNICALL Java_org_thalweg_Memory_keep(JNIEnv* env, jclass self, jobject object) {
  (void)self;
  return (jlong)(uintptr_t)(*env)->NewGlobalRef(env, object);
}
JNIEXPORT void JNICALL Java_org_thalweg_Memory_forget(JNIEnv* env, jclass self, jlong user) {
  (void)self;
  (*env)->DeleteGlobalRef(env, (jobject)(uintptr_t)user);
}
/* The address of a function that calls an object. */
JNIEXPORT jlong JNICALL Java_org_thalweg_Memory_function(JNIEnv* env, jclass self, jint what) {
  (void)env, (void)self;
  switch (what) {
    case kNext: return (jlong)(uintptr_t)next;
    case kReset: return (jlong)(uintptr_t)reset;
    case kAfterStep: return (jlong)(uintptr_t)after_step;
    case kEpochEnd: return (jlong)(uintptr_t)epoch_end;
    default: return (jlong)(uintptr_t)release;
  }
}
