/* What digits.c and digits_plot.c share: the course of a training run and how the trained net did. */
#ifndef DIGITS_H
#define DIGITS_H

enum { kClasses = 10 };

typedef struct history {
  float* loss; /* of each step's batch */
  int n_steps;
  int n_epochs;
  float* accuracy; /* on the test set after each epoch, 0 .. 1 */
} history;

/* Writes an SVG picture: the loss curve with the test accuracy over it, and the confusion matrix (counts[true][predicted]).
 * Answers 0, or -1 with errno set. */
int plot_digits(const char* path, const history* h, const int counts[kClasses][kClasses], double accuracy);

#endif
