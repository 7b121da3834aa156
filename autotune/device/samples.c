/* samples: times of one thing, and what they say. */
#include "samples.h"
#include "gen/error.h"
#include <math.h>
#include <string.h>

void fa_samples_add(fa_samples *t, double seconds)
{
    if (t->n == FA_SAMPLES_MAX)
        memmove(t->s, t->s + 1, sizeof t->s - sizeof *t->s);
    else
        t->n++;
    t->s[t->n - 1] = seconds;
}

static void sort(double *sorted, const double *s, int n)
{
    for (int i = 0; i < n; i++) {
        int j = i;
        for (; j > 0 && sorted[j - 1] > s[i]; j--)
            sorted[j] = sorted[j - 1];
        sorted[j] = s[i];
    }
}

static double median(const double *s, int n)
{
    double sorted[FA_SAMPLES_MAX];
    sort(sorted, s, n);
    return n == 0 ? 0 : n % 2 ? sorted[n / 2] : (sorted[n / 2 - 1] + sorted[n / 2]) / 2;
}

double fa_samples_median(const fa_samples *t)
{
    return median(t->s, t->n);
}

double fa_samples_spread(const fa_samples *t)
{
    double m = median(t->s, t->n), off[FA_SAMPLES_MAX];
    for (int i = 0; i < t->n; i++)
        off[i] = fabs(t->s[i] - m);
    return m > 0 ? median(off, t->n) / m : 0;
}

/* The 97.5 % point of Student's t. */
static double student(int freedom)
{
    static const double exact[] = { 12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228 };
    return freedom <= 10 ? exact[freedom - 1] : 1.96 + 2.5 / freedom;
}

fa_ratio fa_samples_ratio(const double *a, const double *b, int n)
{
    double mean = 0, square = 0;
    for (int i = 0; i < n; i++)
        mean += log(a[i] / b[i]) / n;
    for (int i = 0; i < n; i++)
        square += pow(log(a[i] / b[i]) - mean, 2);
    return (fa_ratio){ exp(mean), n > 1 ? student(n - 1) * sqrt(square / (n - 1) / n) : INFINITY };
}

/* Order statistics: the median lies outside [s(k), s(n + 1 - k)] when fewer than k of n samples, each with chance 1/2, lie on one side. */
void fa_samples_interval(const fa_samples *t, double *low, double *high)
{
    double sorted[FA_SAMPLES_MAX], chance = pow(0.5, t->n), tail = chance;
    int k = 0;
    *low = *high = 0;
    while (tail <= 0.025 && k < t->n / 2) { /* tail = P(at most k of n) */
        k++;
        chance *= (double)(t->n - k + 1) / k;
        tail += chance;
    }
    if (k == 0)
        return;
    fa_holds(k <= t->n);
    sort(sorted, t->s, t->n);
    *low = sorted[k - 1];
    *high = sorted[t->n - k];
}
