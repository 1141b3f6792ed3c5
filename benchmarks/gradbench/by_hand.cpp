// Gradients of the evals lse, llsq, gmm and ode written by hand in C++: the bar for compiled derivatives.
// Built by native.py with -O3 for the machine at hand. Arrays are C-ordered; results are written into what is given.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

namespace {

using std::size_t;

// y' of the chain y_0' = x_0, y_i' = x_i y_(i-1).
void slope(const double *x, const double *y, double *out, size_t n) {
  out[0] = x[0];
  for (size_t i = 1; i < n; ++i) out[i] = x[i] * y[i - 1];
}

// The cotangent of y from that of its slope; what the slope says of x is added to x_bar.
void slope_back(const double *x, const double *y, const double *k_bar, double *x_bar, double *y_bar, size_t n) {
  x_bar[0] += k_bar[0];
  for (size_t i = 1; i < n; ++i) x_bar[i] += k_bar[i] * y[i - 1];
  for (size_t i = 0; i + 1 < n; ++i) y_bar[i] = k_bar[i + 1] * x[i + 1];
  y_bar[n - 1] = 0.0;
}

}  // namespace

extern "C" {

void lse(const double *x, size_t n, double *x_bar) {
  double largest = x[0];
  for (size_t i = 1; i < n; ++i) largest = std::max(largest, x[i]);
  double total = 0.0;
  for (size_t i = 0; i < n; ++i) total += x_bar[i] = std::exp(x[i] - largest);
  const double factor = 1.0 / total;
  for (size_t i = 0; i < n; ++i) x_bar[i] *= factor;
}

// Points go in blocks: the powers of a block stay in the nearest cache, and its loops are vectors.
void llsq(const double *x, size_t m, const double *t, size_t n, double *x_bar) {
  constexpr size_t block = 256;
  double rest[block], power[block];
  std::fill(x_bar, x_bar + m, 0.0);
  for (size_t start = 0; start < n; start += block) {
    const size_t count = std::min(block, n - start);
    const double *at = t + start;
    for (size_t i = 0; i < count; ++i) {
      rest[i] = static_cast<double>((at[i] > 0.0) - (at[i] < 0.0));
      power[i] = 1.0;
    }
    for (size_t j = 0; j < m; ++j)
      for (size_t i = 0; i < count; ++i) {
        rest[i] -= x[j] * power[i];
        power[i] *= at[i];
      }
    std::fill(power, power + count, 1.0);
    for (size_t j = 0; j < m; ++j) {
      double lanes[8] = {};
      size_t i = 0;
      for (; i + 8 <= count; i += 8)
        for (size_t lane = 0; lane < 8; ++lane) {
          lanes[lane] += rest[i + lane] * power[i + lane];
          power[i + lane] *= at[i + lane];
        }
      double total = 0.0;
      for (; i < count; ++i) {
        total += rest[i] * power[i];
        power[i] *= at[i];
      }
      for (double lane : lanes) total += lane;
      x_bar[j] -= total;
    }
  }
}

// The lower parts l are column by column, as in the eval.
void gmm(const double *alpha, const double *mu, const double *q, const double *l, const double *x, size_t n, size_t d,
         size_t components, double gamma, double m, double *alpha_bar, double *mu_bar, double *q_bar, double *l_bar) {
  const size_t below = d * (d - 1) / 2;
  std::vector<double> roots(components * d * d), volume(components, 0.0), terms(components);
  std::vector<double> scaled(components * d), centred(components * d), roots_bar(components * d * d, 0.0);
  std::vector<double> totals(components, 0.0), shift(components * d, 0.0);
  for (size_t k = 0; k < components; ++k) {
    double *root = &roots[k * d * d];
    size_t place = k * below;
    for (size_t column = 0; column < d; ++column) {
      root[column * d + column] = std::exp(q[k * d + column]);
      volume[k] += q[k * d + column];
      for (size_t row = column + 1; row < d; ++row) root[row * d + column] = l[place++];
    }
  }
  for (size_t i = 0; i < n; ++i) {
    double largest = -INFINITY;
    for (size_t k = 0; k < components; ++k) {
      const double *root = &roots[k * d * d];
      double *away = &centred[k * d], *image = &scaled[k * d];
      for (size_t a = 0; a < d; ++a) away[a] = x[i * d + a] - mu[k * d + a];
      double square = 0.0;
      for (size_t a = 0; a < d; ++a) {
        double total = 0.0;
        for (size_t b = 0; b <= a; ++b) total += root[a * d + b] * away[b];
        image[a] = total;
        square += total * total;
      }
      terms[k] = alpha[k] + volume[k] - 0.5 * square;
      largest = std::max(largest, terms[k]);
    }
    double total = 0.0;
    for (size_t k = 0; k < components; ++k) total += terms[k] = std::exp(terms[k] - largest);
    for (size_t k = 0; k < components; ++k) {
      const double weight = terms[k] / total;
      totals[k] += weight;
      double *root_bar = &roots_bar[k * d * d];
      for (size_t a = 0; a < d; ++a) {
        const double image = weight * scaled[k * d + a];
        shift[k * d + a] += image;
        for (size_t b = 0; b <= a; ++b) root_bar[a * d + b] -= image * centred[k * d + b];
      }
    }
  }
  double largest = alpha[0], total = 0.0;
  for (size_t k = 1; k < components; ++k) largest = std::max(largest, alpha[k]);
  for (size_t k = 0; k < components; ++k) total += std::exp(alpha[k] - largest);
  for (size_t k = 0; k < components; ++k) {
    const double *root = &roots[k * d * d], *root_bar = &roots_bar[k * d * d];
    alpha_bar[k] = totals[k] - static_cast<double>(n) * std::exp(alpha[k] - largest) / total;
    size_t place = k * below;
    for (size_t column = 0; column < d; ++column) {
      double sum = 0.0;
      for (size_t a = column; a < d; ++a) sum += root[a * d + column] * shift[k * d + a];
      mu_bar[k * d + column] = sum;
      const double diagonal = root[column * d + column];
      const double own = root_bar[column * d + column] - gamma * gamma * diagonal;
      q_bar[k * d + column] = own * diagonal + totals[k] + m;
      for (size_t row = column + 1; row < d; ++row)
        l_bar[place++] = root_bar[row * d + column] - gamma * gamma * root[row * d + column];
    }
  }
}

// The adjoint of the steps of Runge and Kutta, backwards over the kept states.
void ode_last(const double *x, size_t n, size_t steps, double *x_bar) {
  const double h = 2.0 / static_cast<double>(steps);
  std::vector<double> kept(steps * 4 * n), k(4 * n), y(n, 0.0);
  double *k1 = &k[0], *k2 = &k[n], *k3 = &k[2 * n], *k4 = &k[3 * n];
  for (size_t step = 0; step < steps; ++step) {
    double *y1 = &kept[step * 4 * n], *y2 = y1 + n, *y3 = y2 + n, *y4 = y3 + n;
    std::copy(y.begin(), y.end(), y1);
    slope(x, y1, k1, n);
    for (size_t i = 0; i < n; ++i) y2[i] = y1[i] + 0.5 * h * k1[i];
    slope(x, y2, k2, n);
    for (size_t i = 0; i < n; ++i) y3[i] = y1[i] + 0.5 * h * k2[i];
    slope(x, y3, k3, n);
    for (size_t i = 0; i < n; ++i) y4[i] = y1[i] + h * k3[i];
    slope(x, y4, k4, n);
    for (size_t i = 0; i < n; ++i) y[i] = y1[i] + h / 6 * (k1[i] + 2 * k2[i] + 2 * k3[i] + k4[i]);
  }
  std::vector<double> bars(6 * n);
  double *y_bar = &bars[0], *k_bar = &bars[n], *b1 = &bars[2 * n], *b2 = b1 + n, *b3 = b2 + n, *b4 = b3 + n;
  std::fill(x_bar, x_bar + n, 0.0);
  y_bar[n - 1] = 1.0;
  for (size_t step = steps; step-- > 0;) {
    const double *y1 = &kept[step * 4 * n], *y2 = y1 + n, *y3 = y2 + n, *y4 = y3 + n;
    for (size_t i = 0; i < n; ++i) k_bar[i] = h / 6 * y_bar[i];
    slope_back(x, y4, k_bar, x_bar, b4, n);
    for (size_t i = 0; i < n; ++i) k_bar[i] = h / 3 * y_bar[i] + h * b4[i];
    slope_back(x, y3, k_bar, x_bar, b3, n);
    for (size_t i = 0; i < n; ++i) k_bar[i] = h / 3 * y_bar[i] + 0.5 * h * b3[i];
    slope_back(x, y2, k_bar, x_bar, b2, n);
    for (size_t i = 0; i < n; ++i) k_bar[i] = h / 6 * y_bar[i] + 0.5 * h * b2[i];
    slope_back(x, y1, k_bar, x_bar, b1, n);
    for (size_t i = 0; i < n; ++i) y_bar[i] += b1[i] + b2[i] + b3[i] + b4[i];
  }
}

}  // extern "C"
