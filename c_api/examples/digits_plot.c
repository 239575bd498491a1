/* The picture that digits.c leaves: how the loss fell, how the accuracy rose, and which digits are taken for which. Plain SVG. */
#include <math.h>
#include <stdio.h>

#include "digits.h"

/* Colours: ink, quiet ink, lines, then blue for what is right and orange for what is not. */
#define INK "#1f2933"
#define QUIET "#7b8794"
#define GRID "#e4e7eb"
#define BLUE "#2467c8"
#define PALE "#b9d0f2"
#define ORANGE "#e07b22"

/* The left panel in picture units, and the confusion matrix. */
enum { kLeft = 70, kTop = 96, kWidth = 470, kHeight = 330, kMatrix = 640, kCell = 33 };

/* The loss is drawn on a logarithmic axis of whole powers of ten. */
typedef struct axis {
  int low, high;
} axis;

static axis loss_axis(const history* h) {
  axis a = {0, 1};
  for (int i = 0; i < h->n_steps; ++i) {
    const double power = log10(h->loss[i] > 1e-4f ? (double)h->loss[i] : 1e-4);
    if (power < a.low) a.low = (int)floor(power);
    if (power > a.high) a.high = (int)ceil(power);
  }
  return a;
}

static double loss_y(axis a, double loss) {
  const double power = log10(loss > 1e-4 ? loss : 1e-4);
  return kTop + kHeight * (a.high - power) / (a.high - a.low);
}

static double accuracy_y(double accuracy) { return kTop + kHeight * (1 - accuracy); }

static void draw_text(FILE* f, double x, double y, const char* anchor, int size, const char* fill, const char* text) {
  fprintf(f, "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\" font-size=\"%d\" fill=\"%s\">%s</text>\n", x, y, anchor, size, fill, text);
}

static void draw_axes(FILE* f, axis a, const history* h) {
  char label[32];
  for (int power = a.low; power <= a.high; ++power) {
    const double y = loss_y(a, pow(10, power));
    fprintf(f, "<path d=\"M%d %.1fh%d\" stroke=\"" GRID "\"/>\n", kLeft, y, kWidth);
    snprintf(label, sizeof label, "%g", pow(10, power));
    draw_text(f, kLeft - 8, y + 4, "end", 12, BLUE, label);
  }
  for (int percent = 0; percent <= 100; percent += 25) {
    snprintf(label, sizeof label, "%d %%", percent);
    draw_text(f, kLeft + kWidth + 8, accuracy_y(percent / 100.0) + 4, "start", 12, ORANGE, label);
  }
  for (int i = 0; i <= 5; ++i) {
    const int epoch = h->n_epochs * i / 5;
    snprintf(label, sizeof label, "%d", epoch);
    draw_text(f, kLeft + (double)kWidth * epoch / h->n_epochs, kTop + kHeight + 20, "middle", 12, QUIET, label);
  }
  draw_text(f, kLeft + kWidth / 2.0, kTop + kHeight + 42, "middle", 13, QUIET, "epoch");
  draw_text(f, kLeft, kTop - 14, "start", 13, BLUE, "training loss");
  draw_text(f, kLeft + kWidth, kTop - 14, "end", 13, ORANGE, "test accuracy");
}

/* Every batch as a pale line, and over it the average of the batches before, which is what one wants to see. */
static void draw_loss(FILE* f, axis a, const history* h) {
  for (int smooth = 0; smooth < 2; ++smooth) {
    double mean = h->loss[0];
    fprintf(f, "<path fill=\"none\" stroke=\"%s\" stroke-width=\"%s\" stroke-linejoin=\"round\" d=\"", smooth ? BLUE : PALE,
            smooth ? "2.2" : "0.8");
    for (int i = 0; i < h->n_steps; ++i) {
      mean += 0.06 * (h->loss[i] - mean);
      fprintf(f, "%c%.1f %.1f", i ? 'L' : 'M', kLeft + (double)kWidth * (i + 1) / h->n_steps, loss_y(a, smooth ? mean : h->loss[i]));
    }
    fprintf(f, "\"/>\n");
  }
}

static void draw_accuracy(FILE* f, const history* h) {
  fprintf(f, "<path fill=\"none\" stroke=\"" ORANGE "\" stroke-width=\"2.2\" stroke-linejoin=\"round\" d=\"");
  for (int i = 0; i < h->n_epochs; ++i) {
    fprintf(f, "%c%.1f %.1f", i ? 'L' : 'M', kLeft + (double)kWidth * (i + 1) / h->n_epochs, accuracy_y(h->accuracy[i]));
  }
  fprintf(f, "\"/>\n");
}

/* Rows are true digits, columns predicted ones; the deeper the colour, the larger the share of the row. */
static void draw_matrix(FILE* f, const int counts[kClasses][kClasses]) {
  char label[32];
  draw_text(f, kMatrix + kCell * kClasses / 2.0, kTop - 36, "middle", 13, QUIET, "predicted");
  fprintf(f, "<text transform=\"translate(%d %.1f) rotate(-90)\" text-anchor=\"middle\" font-size=\"13\" fill=\"" QUIET "\">true</text>\n",
          kMatrix - 34, kTop + kCell * kClasses / 2.0);
  for (int i = 0; i < kClasses; ++i) {
    int total = 0;
    for (int j = 0; j < kClasses; ++j) total += counts[i][j];
    snprintf(label, sizeof label, "%d", i);
    draw_text(f, kMatrix - 12, kTop + kCell * (i + 0.5) + 5, "end", 14, INK, label);
    draw_text(f, kMatrix + kCell * (i + 0.5), kTop - 12, "middle", 14, INK, label);
    for (int j = 0; j < kClasses; ++j) {
      const int n = counts[i][j];
      const double share = total > 0 ? (double)n / total : 0;
      const double depth = n == 0 ? 0 : i == j ? 0.15 + 0.85 * share : 0.25 + 2 * share;
      fprintf(f, "<rect x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\" rx=\"4\" fill=\"%s\" fill-opacity=\"%.2f\"/>\n",
              kMatrix + kCell * j + 1, kTop + kCell * i + 1, kCell - 2, kCell - 2,
              n == 0   ? "#f5f7fa"
              : i == j ? BLUE
                       : ORANGE,
              n == 0      ? 1
              : depth < 1 ? depth
                          : 1);
      if (n == 0) continue;
      snprintf(label, sizeof label, "%d", n);
      draw_text(f, kMatrix + kCell * (j + 0.5), kTop + kCell * (i + 0.5) + 5, "middle", 13, depth > 0.55 ? "#ffffff" : INK, label);
    }
  }
}

int plot_digits(const char* path, const history* h, const int counts[kClasses][kClasses], double accuracy) {
  FILE* f = fopen(path, "w");
  if (!f) return -1;
  int tested = 0;
  for (int i = 0; i < kClasses * kClasses; ++i) tested += counts[i / kClasses][i % kClasses];
  const axis a = loss_axis(h);
  char title[128];
  fprintf(f,
          "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 1000 490\" font-family=\"system-ui, 'DejaVu Sans', sans-serif\">\n"
          "<rect width=\"1000\" height=\"490\" fill=\"#ffffff\"/>\n");
  snprintf(title, sizeof title, "Handwritten digits: %.2f %% of %d test digits are read right", 100 * accuracy, tested);
  draw_text(f, kLeft, 40, "start", 19, INK, title);
  draw_axes(f, a, h);
  draw_loss(f, a, h);
  draw_accuracy(f, h);
  draw_matrix(f, counts);
  fprintf(f, "</svg>\n");
  const int failed = ferror(f);
  return fclose(f) != 0 || failed ? -1 : 0;
}
