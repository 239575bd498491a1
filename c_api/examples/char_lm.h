/* What char_lm.c and char_lm_plot.c share: the course of a training run. */
#ifndef CHAR_LM_H
#define CHAR_LM_H

typedef struct point {
  int step;
  double training, held_out; /* perplexities */
} point;

typedef struct curve {
  point* points;
  int n;
} curve;

/* Writes an SVG picture: both perplexities over the steps, on a logarithmic axis. Answers 0, or -1 with errno set. */
int plot_char_lm(const char* path, const curve* c);

#endif
