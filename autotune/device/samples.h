/* samples: times of one thing, and what they say. */
#ifndef FA_AUTOTUNE_DEVICE_SAMPLES_H
#define FA_AUTOTUNE_DEVICE_SAMPLES_H
#define FA_SAMPLES_MAX 128

typedef struct fa_samples {
    int n;
    double s[FA_SAMPLES_MAX]; /* seconds; past the last, the oldest makes room */
} fa_samples;

void fa_samples_add(fa_samples *t, double seconds);
double fa_samples_median(const fa_samples *t); /* 0 where there is none */
double fa_samples_spread(const fa_samples *t); /* median absolute deviation over the median */

/* The 95 % interval of the median, without a guess at the distribution; 0 and 0 of fewer than 6 samples, which have none. */
void fa_samples_interval(const fa_samples *t, double *low, double *high);

/* a / b of samples taken in pairs: the geometric mean, and the half width of its 95 % interval, relative (Student's t over the
 * logarithms). Fewer than two pairs: half is infinite. */
typedef struct fa_ratio {
    double mean, half;
} fa_ratio;
fa_ratio fa_samples_ratio(const double *a, const double *b, int n);
#endif
