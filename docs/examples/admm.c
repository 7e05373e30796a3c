/* ADMM for localized logistic regression, in plain C: an entry of the arena in another language.
 *
 *     cc -O2 -o admm admm.c -lm
 *     llr-cvx arena --command './admm {problem} {out}' --dry-run
 *
 * It reads samples.csv, edges.csv and instance.json from the folder {problem}, and writes W.csv to the folder {out},
 * its iterates to {out}/iterates/ (every 10th step) and its claim of J(W) to claims.json. Each term of
 *
 *     J(W) = sum_i log(1 + exp(-y_i w_i.x_i)) + lambda1 sum_e omega_e ||w_i - w_j|| + lambda2 sum_i ||w_i||_1^2
 *
 * gets a copy of its own: Q, Z = B W and P. W itself solves (B'B + 2I) W = B'(Z - uZ) + (P - uP) + (Q - uQ), by a few
 * sweeps of Jacobi's method from the previous W. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static int N, d, E;
static double lambda1, lambda2;
static double *X, *y, *omega;
static int *from, *to;

static void die(const char *what) { fprintf(stderr, "admm: %s\n", what); exit(1); }

static double *zeros(size_t n)
{
    double *a = calloc(n ? n : 1, sizeof *a);
    if (!a) die("out of memory");
    return a;
}

static FILE *in_folder(const char *folder, const char *name, const char *mode)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *f = fopen(path, mode);
    if (!f) { perror(path); exit(1); }
    return f;
}

static double fact(const char *text, const char *key) /* a number in instance.json */
{
    char quoted[64];
    snprintf(quoted, sizeof quoted, "\"%s\":", key);
    const char *found = strstr(text, quoted);
    if (!found) die("instance.json lacks a number");
    return atof(found + strlen(quoted));
}

static void read_problem(const char *folder)
{
    char text[65536];
    FILE *f = in_folder(folder, "instance.json", "r");
    text[fread(text, 1, sizeof text - 1, f)] = 0;
    fclose(f);
    N = (int)fact(text, "N"); d = (int)fact(text, "d"); E = (int)fact(text, "edges");
    lambda1 = fact(text, "lambda1"); lambda2 = fact(text, "lambda2");
    X = zeros((size_t)N * d); y = zeros(N); omega = zeros(E);
    from = calloc(E + 1, sizeof *from); to = calloc(E + 1, sizeof *to);
    f = in_folder(folder, "samples.csv", "r");
    if (fscanf(f, "%*[^\n]")) die("samples.csv has no header");
    for (int i = 0; i < N; i++) {
        if (fscanf(f, "%lf", &y[i]) != 1) die("samples.csv is short");
        for (int k = 0; k < d; k++)
            if (fscanf(f, ",%lf", &X[i * d + k]) != 1) die("samples.csv is short");
    }
    fclose(f);
    f = in_folder(folder, "edges.csv", "r");
    if (fscanf(f, "%*[^\n]")) die("edges.csv has no header");
    for (int e = 0; e < E; e++)
        if (fscanf(f, "%d,%d,%lf", &from[e], &to[e], &omega[e]) != 3) die("edges.csv is short");
    fclose(f);
}

static double sigmoid(double t) { return t < 0 ? exp(t) / (1 + exp(t)) : 1 / (1 + exp(-t)); }

static void prox_network(double *z, double t) /* t ||z|| */
{
    double length = 0;
    for (int k = 0; k < d; k++) length += z[k] * z[k];
    length = sqrt(length);
    for (int k = 0; k < d; k++) z[k] *= length > t ? 1 - t / length : 0;
}

static int descending(const void *a, const void *b)
{
    double u = *(const double *)a, v = *(const double *)b;
    return (u < v) - (u > v);
}

static void prox_exclusive(double *p, double t, double *sorted) /* t ||p||_1^2 */
{
    double sum = 0, tau = 0;
    for (int k = 0; k < d; k++) sorted[k] = fabs(p[k]);
    qsort(sorted, d, sizeof *sorted, descending);
    for (int k = 0; k < d; k++) {
        sum += sorted[k];
        tau = fmax(tau, sum / (k + 1 + 0.5 / t));
    }
    for (int k = 0; k < d; k++) p[k] = copysign(fmax(fabs(p[k]) - tau, 0), p[k]);
}

static void prox_fit(double *q, const double *x, double label) /* log(1 + exp(-label q.x)) */
{
    double s0 = 0, h = 0;
    for (int k = 0; k < d; k++) { s0 += label * q[k] * x[k]; h += x[k] * x[k]; }
    double low = s0, high = s0 + h, s = s0;
    for (int step = 0; step < 60; step++) {
        s = (low + high) / 2;
        if (s - s0 > h * sigmoid(-s)) high = s; else low = s;
    }
    for (int k = 0; k < d; k++) q[k] += sigmoid(-s) * label * x[k];
}

static double objective(const double *W)
{
    double J = 0;
    for (int i = 0; i < N; i++) {
        double s = 0, size = 0;
        for (int k = 0; k < d; k++) { s += y[i] * W[i * d + k] * X[i * d + k]; size += fabs(W[i * d + k]); }
        J += (s > 0 ? log1p(exp(-s)) : log1p(exp(s)) - s) + lambda2 * size * size;
    }
    for (int e = 0; e < E; e++) {
        double length = 0;
        for (int k = 0; k < d; k++) length += pow(W[from[e] * d + k] - W[to[e] * d + k], 2);
        J += lambda1 * omega[e] * sqrt(length);
    }
    return J;
}

static void write_matrix(const char *folder, const char *name, const double *W)
{
    FILE *f = in_folder(folder, name, "w");
    for (int i = 0; i < N; i++)
        for (int k = 0; k < d; k++) fprintf(f, "%.17g%c", W[i * d + k], k + 1 < d ? ',' : '\n');
    if (fclose(f)) die("cannot write W");
}

int main(int argc, char **argv)
{
    if (argc != 3) die("usage: admm PROBLEM OUT");
    read_problem(argv[1]);
    size_t n = (size_t)N * d, m = (size_t)E * d;
    double *W = zeros(n), *P = zeros(n), *Q = zeros(n), *uP = zeros(n), *uQ = zeros(n), *R = zeros(n);
    double *Z = zeros(m), *uZ = zeros(m), *degree = zeros(N), *sorted = zeros(d), *sum = zeros(n);
    char name[64], path[4096];
    snprintf(path, sizeof path, "%s/iterates", argv[2]);
    mkdir(path, 0777);
    for (int e = 0; e < E; e++) { degree[from[e]]++; degree[to[e]]++; }
    for (int step = 1; step <= 1500; step++) {
        for (size_t k = 0; k < n; k++) R[k] = P[k] - uP[k] + Q[k] - uQ[k];
        for (int e = 0; e < E; e++)
            for (int k = 0; k < d; k++) {
                R[from[e] * d + k] += Z[e * d + k] - uZ[e * d + k];
                R[to[e] * d + k] -= Z[e * d + k] - uZ[e * d + k];
            }
        for (int sweep = 0; sweep < 20; sweep++) { /* Jacobi on (degree + 2) w_i - sum_j w_j = r_i */
            memcpy(sum, R, n * sizeof *sum);
            for (int e = 0; e < E; e++)
                for (int k = 0; k < d; k++) {
                    sum[from[e] * d + k] += W[to[e] * d + k];
                    sum[to[e] * d + k] += W[from[e] * d + k];
                }
            for (int i = 0; i < N; i++)
                for (int k = 0; k < d; k++) W[i * d + k] = sum[i * d + k] / (degree[i] + 2);
        }
        for (size_t k = 0; k < n; k++) { P[k] = W[k] + uP[k]; Q[k] = W[k] + uQ[k]; }
        for (int i = 0; i < N; i++) {
            prox_exclusive(P + i * d, lambda2, sorted);
            prox_fit(Q + i * d, X + i * d, y[i]);
        }
        for (size_t k = 0; k < n; k++) { uP[k] += W[k] - P[k]; uQ[k] += W[k] - Q[k]; }
        for (int e = 0; e < E; e++) {
            double *z = Z + e * d, *u = uZ + e * d;
            for (int k = 0; k < d; k++) z[k] = u[k] += W[from[e] * d + k] - W[to[e] * d + k];
            prox_network(z, lambda1 * omega[e]);
            for (int k = 0; k < d; k++) u[k] -= z[k];
        }
        if (step % 10 == 0) {
            snprintf(name, sizeof name, "iterates/%06d.csv", step);
            write_matrix(argv[2], name, P);
        }
    }
    write_matrix(argv[2], "W.csv", P);
    FILE *f = in_folder(argv[2], "claims.json", "w");
    fprintf(f, "{\"objective\": %.17g}\n", objective(P));
    return fclose(f) ? 1 : 0;
}
