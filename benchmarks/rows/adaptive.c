/* Logistic growth by Euler's steps whose length depends on the state: the value, and by hand its gradient. */

#include <stdlib.h>

double forward(double y, double k, double c, double end) {
  double t = 0.0;
  while (t < end) {
    const double h = c / (1.0 + y * y);
    y += h * (k * y * (1.0 - y));
    t += h;
  }
  return y;
}

/* The states are kept on the way; slopes of y, k and c are written to `slopes`. Returns the value; -1 without memory. */
double gradient(double y, double k, double c, double end, double *slopes) {
  size_t count = 0, room = 1024;
  double t = 0.0, *kept = malloc(room * sizeof *kept);
  if (!kept) return -1.0;
  while (t < end) {
    if (count == room) {
      double *more = realloc(kept, 2 * room * sizeof *kept);
      if (!more) {
        free(kept);
        return -1.0;
      }
      kept = more;
      room *= 2;
    }
    kept[count++] = y;
    const double h = c / (1.0 + y * y);
    y += h * (k * y * (1.0 - y));
    t += h;
  }
  double y_bar = 1.0, k_bar = 0.0, c_bar = 0.0;
  while (count) {
    const double at = kept[--count], less = 1.0 / (1.0 + at * at), h = c * less, rate = at * (1.0 - at);
    const double h_bar = y_bar * k * rate;
    k_bar += y_bar * h * rate;
    c_bar += h_bar * less;
    y_bar += y_bar * h * k * (1.0 - 2.0 * at) - h_bar * h * less * 2.0 * at;
  }
  free(kept);
  slopes[0] = y_bar;
  slopes[1] = k_bar;
  slopes[2] = c_bar;
  return y;
}
