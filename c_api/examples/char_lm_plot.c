/* The picture that char_lm.c leaves: how the perplexities fell. Plain SVG. */
#include <math.h>
#include <stdio.h>

#include "char_lm.h"

enum { kLeft = 60, kTop = 60, kWidth = 620, kHeight = 320 };

/* Logarithms of the lowest and the highest perplexity, with a little room. */
typedef struct range {
  double low, high;
} range;

static range range_of(const curve* c) {
  range r = {1e300, -1e300};
  for (int i = 0; i < c->n; ++i) {
    r.low = fmin(r.low, log(fmin(c->points[i].training, c->points[i].held_out)) - 0.05);
    r.high = fmax(r.high, log(fmax(c->points[i].training, c->points[i].held_out)) + 0.05);
  }
  return r;
}

static double y_of(range r, double perplexity) { return kTop + kHeight * (r.high - log(perplexity)) / (r.high - r.low); }

static void draw_text(FILE* f, double x, double y, const char* anchor, const char* fill, int size, const char* text) {
  fprintf(f, "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\" font-size=\"%d\" fill=\"%s\">%s</text>\n", x, y, anchor, size, fill, text);
}

static void draw_axes(FILE* f, range r, int last) {
  const int ticks[] = {2, 3, 4, 5, 7, 10, 15, 20, 30, 50};
  char label[32];
  for (size_t i = 0; i < sizeof ticks / sizeof *ticks; ++i) {
    if (log(ticks[i]) <= r.low || log(ticks[i]) >= r.high) continue;
    fprintf(f, "<path d=\"M%d %.1fh%d\" stroke=\"#e4e7eb\"/>\n", kLeft, y_of(r, ticks[i]), kWidth);
    snprintf(label, sizeof label, "%d", ticks[i]);
    draw_text(f, kLeft - 8, y_of(r, ticks[i]) + 4, "end", "#7b8794", 13, label);
  }
  for (int i = 0; i <= 5; ++i) {
    snprintf(label, sizeof label, "%d", last * i / 5);
    draw_text(f, kLeft + kWidth * i / 5.0, kTop + kHeight + 22, "middle", "#7b8794", 13, label);
  }
  draw_text(f, kLeft + kWidth / 2.0, kTop + kHeight + 46, "middle", "#7b8794", 13, "step");
}

static void draw_line(FILE* f, range r, const curve* c, int held_out) {
  const char* const colour = held_out ? "#2467c8" : "#b9d0f2";
  const int last = c->points[c->n - 1].step;
  fprintf(f, "<polyline fill=\"none\" stroke=\"%s\" stroke-width=\"2.2\" points=\"", colour);
  for (int i = 0; i < c->n; ++i) {
    const point p = c->points[i];
    fprintf(f, " %.1f,%.1f", kLeft + (double)kWidth * p.step / last, y_of(r, held_out ? p.held_out : p.training));
  }
  fprintf(f, "\"/>\n");
  draw_text(f, kLeft + kWidth - 120 + 70 * held_out, kTop - 8, "start", colour, 13, held_out ? "held out" : "training");
}

int plot_char_lm(const char* path, const curve* c) {
  FILE* f = fopen(path, "w");
  if (!f) return -1;
  const range r = range_of(c);
  const point last = c->points[c->n - 1];
  char title[128];
  snprintf(title, sizeof title, "Perplexity of text that was held out: %.2f after %d steps", last.held_out, last.step);
  fprintf(f,
          "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 760 440\" font-family=\"system-ui, sans-serif\">\n"
          "<rect width=\"760\" height=\"440\" fill=\"#ffffff\"/>\n");
  draw_text(f, kLeft, 30, "start", "#1f2933", 18, title);
  draw_axes(f, r, last.step);
  for (int held_out = 0; held_out < 2; ++held_out) draw_line(f, r, c, held_out);
  fprintf(f, "</svg>\n");
  const int failed = ferror(f);
  return fclose(f) != 0 || failed ? -1 : 0;
}
