#include "mlp_data.h"

#include <stdio.h>

#include "worker.h"

static void read_array(const char* folder, const char* name, void* out, size_t bytes) {
  char path[4096];
  snprintf(path, sizeof path, "%s/%s", folder, name);
  FILE* file = fopen(path, "rb");
  if (!file) worker_fail("cannot read '%s'", path);
  const int whole = fread(out, 1, bytes, file) == bytes && fgetc(file) == EOF;
  fclose(file);
  if (!whole) worker_fail("'%s' does not hold exactly %zu bytes", path, bytes);
}

void mlp_data_read(const char* folder, mlp_data* out_data) {
  read_array(folder, "x.f32", out_data->x, sizeof out_data->x);
  read_array(folder, "y.i32", out_data->y, sizeof out_data->y);
  read_array(folder, "w1.f32", out_data->w1, sizeof out_data->w1);
  read_array(folder, "b1.f32", out_data->b1, sizeof out_data->b1);
  read_array(folder, "w2.f32", out_data->w2, sizeof out_data->w2);
  read_array(folder, "b2.f32", out_data->b2, sizeof out_data->b2);
}
