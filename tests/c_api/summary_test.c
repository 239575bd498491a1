/* Summary writers: what each call accepts, and that files hold whole records behind one another. Python's
 * summaries_test.py reads what is in them. */
#define _XOPEN_SOURCE 700
#include "check.h"
#include "folder.h"

static char folder[256];

static void begin(void) { CHECK(make_folder(folder, sizeof folder, "summary") == 0); }
static void end(tw_summary_writer* w) {
  tw_summary_writer_destroy(w);
  CHECK(remove_folder(folder) == 0);
}

static tw_summary_writer* make(void) {
  begin();
  tw_summary_writer* w = NULL;
  OK(tw_summary_writer_create(folder, NULL, &w));
  return w;
}

/* The bytes of the file that a writer writes. The caller frees them. */
static unsigned char* contents(const tw_summary_writer* w, size_t* out_bytes) {
  tw_buffer* path = NULL;
  OK(tw_summary_writer_path(w, &path));
  FILE* file = fopen(tw_buffer_data(path), "rb");
  CHECK(file != NULL);
  tw_buffer_release(path);
  unsigned char* bytes = malloc(1 << 20);
  *out_bytes = file ? fread(bytes, 1, 1 << 20, file) : 0;
  if (file) fclose(file);
  return bytes;
}

/* The number of records, or -1 if they do not end where the file does. */
static int records(const tw_summary_writer* w) {
  size_t n = 0, at = 0;
  int found = 0;
  unsigned char* bytes = contents(w, &n);
  while (at + 16 <= n) {
    uint64_t length = 0;
    for (int i = 0; i < 8; ++i) length |= (uint64_t)bytes[at + (size_t)i] << 8 * i;
    at += 16 + (size_t)length;
    ++found;
  }
  free(bytes);
  return at == n ? found : -1;
}

static void AFlushedFileHoldsAllRecords(void) {
  tw_summary_writer* w = make();
  CHECK(records(w) == 1); /* the version */
  for (int i = 0; i < 100; ++i) OK(tw_summary_writer_scalar(w, "loss", i, i));
  OK(tw_summary_writer_flush(w));
  CHECK(records(w) == 101);
  OK(tw_summary_writer_text(w, "note", 1, "text"));
  OK(tw_summary_writer_close(w));
  OK(tw_summary_writer_close(w));
  CHECK(records(w) == 102);
  FAILS(tw_summary_writer_scalar(w, "loss", 1, 1), TW_FAILED_PRECONDITION, "is closed");
  FAILS(tw_summary_writer_flush(w), TW_FAILED_PRECONDITION, "is closed");
  end(w);
}

static void TensorsAreCheckedWhenTheyAreGiven(void) {
  tw_summary_writer* w = make();
  const int64_t dims[] = {2, 3, 1}, bad[] = {2, 3, 2};
  tw_tensor *image = NULL, *two = NULL, *text = NULL;
  OK(tw_tensor_create(TW_UINT8, dims, 3, &image));
  OK(tw_tensor_create(TW_UINT8, bad, 3, &two));
  OK(tw_tensor_create(TW_STRING, dims, 1, &text));
  OK(tw_summary_writer_images(w, "x", 1, image, 1));
  OK(tw_summary_writer_histogram(w, "h", 1, image));
  OK(tw_summary_writer_tensor(w, "t", 1, text, "text", NULL, 0));
  tw_tensor_release(image); /* the writer keeps it */
  FAILS(tw_summary_writer_images(w, "x", 1, two, 1), TW_INVALID_ARGUMENT, "summary 'x': images are uint8 [2, 3, 2]");
  FAILS(tw_summary_writer_images(w, "x", 1, two, 0), TW_INVALID_ARGUMENT, "summary 'x'");
  FAILS(tw_summary_writer_histogram(w, "h", 1, text), TW_INVALID_ARGUMENT, "real numbers, not of string");
  FAILS(tw_summary_writer_audio(w, "a", 1, two, 8000, 1), TW_INVALID_ARGUMENT, "sounds are uint8");
  FAILS(tw_summary_writer_scalar(w, "", 1, 1), TW_INVALID_ARGUMENT, "is empty");
  FAILS(tw_summary_writer_scalar(w, "\xff", 1, 1), TW_INVALID_ARGUMENT, "no UTF-8");
  OK(tw_summary_writer_flush(w));
  CHECK(records(w) == 4);
  tw_tensor_release(two);
  tw_tensor_release(text);
  end(w);
}

static void HyperParametersAreGivenOnce(void) {
  tw_summary_writer* w = make();
  const tw_hparam good[] = {{"rate", NULL, 0.1, TW_HPARAM_NUMBER, 0}, {"kind", "adam", 0, TW_HPARAM_TEXT, 0}};
  const tw_hparam twice[] = {{"rate", NULL, 0.1, TW_HPARAM_NUMBER, 0}, {"rate", NULL, 1, TW_HPARAM_BOOL, 0}};
  const tw_hparam none = {"kind", NULL, 0, TW_HPARAM_TEXT, 0}, unknown = {"kind", NULL, 0, 9, 0};
  FAILS(tw_summary_writer_hparams(w, twice, 2, NULL, 0), TW_INVALID_ARGUMENT, "'rate' of a hyper-parameter");
  FAILS(tw_summary_writer_hparams(w, &none, 1, NULL, 0), TW_INVALID_ARGUMENT, "hparams[0] has no text");
  FAILS(tw_summary_writer_hparams(w, &unknown, 1, NULL, 0), TW_INVALID_ARGUMENT, "is of kind 9");
  OK(tw_summary_writer_hparams(w, good, 2, NULL, 0));
  FAILS(tw_summary_writer_hparams(w, good, 2, NULL, 0), TW_FAILED_PRECONDITION, "already");
  OK(tw_summary_writer_end(w, 0));
  OK(tw_summary_writer_close(w));
  CHECK(records(w) == 3);
  end(w);
}

static void OptionsAreChecked(void) {
  begin();
  tw_summary_writer* w = NULL;
  tw_summary_writer_options options;
  tw_summary_writer_options_init(&options);
  options.flush_seconds = -1;
  FAILS(tw_summary_writer_create(folder, &options, &w), TW_INVALID_ARGUMENT, "flush_seconds is -1");
  options.flush_seconds = 0;
  options.suffix = "a/b";
  FAILS(tw_summary_writer_create(folder, &options, &w), TW_INVALID_ARGUMENT, "has a '/'");
  options.size = 8;
  FAILS(tw_summary_writer_create(folder, &options, &w), TW_INVALID_ARGUMENT, "size 8");
  FAILS(tw_summary_writer_create("", NULL, &w), TW_INVALID_ARGUMENT, "is empty");
  FAILS(tw_summary_writer_create("/dev/null/x", NULL, &w), TW_FAILED_PRECONDITION, "/dev/null/x"); /* a file is no folder */
  CHECK(!w);
  end(w);
}

MAIN(TEST(AFlushedFileHoldsAllRecords), TEST(TensorsAreCheckedWhenTheyAreGiven), TEST(HyperParametersAreGivenOnce), TEST(OptionsAreChecked))
