/* A constructor opens a file that stands for its device. */
#include <fcntl.h>

#include "toy.h"

static int device_file;
__attribute__((constructor)) static void open_device(void) { device_file = open("/dev/null", O_RDONLY); }

static tw_status* init(const tw_host* h, tw_registrar* r, void** out_instance) {
  (void)h, (void)out_instance;
  return device_file < 0 ? tw_fail(h, TW_UNAVAILABLE, TW_S("no device")) : toy_register(r, NULL, NULL, NULL, NULL);
}
__attribute__((destructor)) static void close_device(void) { (void)fcntl(device_file, F_GETFD); }
TOY_PLUGIN(init, NULL)
