/* Localized logistic regression for problems of a few dozen weights, with dense linear algebra.
 *
 *   J(W) = sum_i log(1 + exp(-y_i w_i.x_i)) + lambda1 sum_e omega_e ||w_i - w_j|| + lambda2 sum_i ||w_i||_1^2
 *
 * A problem is {X, y, edges, weights, lambda1, lambda2}; W is an array of rows w_i. Everything here is computed as in the
 * Python package, and a test compares the two in a browser. */
"use strict";

const LLR = (() => {
  const sum = (values) => values.reduce((total, t) => total + t, 0);
  const dot = (a, b) => a.reduce((total, t, k) => total + t * b[k], 0);
  const norm = (a) => Math.hypot(...a);
  const combine = (a, s, b) => a.map((t, k) => t + s * b[k]); // a + s b
  const scaled = (s, a) => a.map((t) => s * t);
  const softplus = (t) => Math.max(t, 0) + Math.log1p(Math.exp(-Math.abs(t))); // log(1 + exp(t))
  const sigmoid = (t) => (t >= 0 ? 1 / (1 + Math.exp(-t)) : Math.exp(t) / (1 + Math.exp(t)));
  const matrix = (n, m, entry) => Array.from({ length: n }, (_, r) => Array.from({ length: m }, (_, c) => entry(r, c)));
  const plus = (W, t, dW) => W.map((w, i) => combine(w, t, dW[i]));
  const inner = (A, B) => sum(A.map((a, i) => dot(a, B[i])));

  // ---- the objective, its smoothing and the dual ---------------------------------------------------------

  /** J_epsilon at W with the pieces of its gradient, and J. */
  function smoothed(p, W, epsilon) {
    const margins = W.map((w, i) => p.y[i] * dot(w, p.X[i]));
    const alpha = margins.map((m) => sigmoid(-m));
    const D = p.edges.map(([i, j]) => combine(W[i], -1, W[j]));
    const a = D.map((d) => Math.hypot(...d, epsilon));
    const b = W.map((w) => w.map((t) => Math.hypot(t, epsilon)));
    const S = b.map(sum);
    const radii = scaled(p.lambda1, p.weights);
    const dHat = D.map((d, e) => scaled(1 / a[e], d));
    const wHat = W.map((w, i) => w.map((t, k) => t / b[i][k]));
    const U = dHat.map((d, e) => scaled(radii[e], d));
    const gradient = dualVectors(p, alpha, U).map((v, i) => combine(v, 2 * p.lambda2 * S[i], wHat[i]));
    const fit = sum(margins.map((m) => softplus(-m)));
    const l1 = W.map((w) => sum(w.map(Math.abs)));
    const objective = fit + dot(radii, D.map(norm)) + p.lambda2 * dot(l1, l1);
    const value = fit + dot(radii, a) + p.lambda2 * dot(S, S);
    return { W, epsilon, margins, alpha, a, b, S, radii, dHat, wHat, U, gradient, objective, value };
  }

  /** v_i = -alpha_i y_i x_i + (sum of U_e over edges that leave i) - (sum over edges that enter i). */
  function dualVectors(p, alpha, U) {
    const v = p.X.map((x, i) => scaled(-alpha[i] * p.y[i], x));
    p.edges.forEach(([i, j], e) => {
      v[i] = combine(v[i], 1, U[e]);
      v[j] = combine(v[j], -1, U[e]);
    });
    return v;
  }

  /** D(alpha, U) = sum_i H(alpha_i) - sum_i ||v_i||_inf^2 / (4 lambda2): below J(W) for every W. */
  function dual(p, alpha, U) {
    const xlogx = (t) => (t > 0 ? t * Math.log(t) : 0);
    const entropy = sum(alpha.map((t) => -xlogx(t) - (t < 1 ? (1 - t) * Math.log1p(-t) : 0)));
    const largest = dualVectors(p, alpha, U).map((v) => Math.max(...v.map(Math.abs)));
    return entropy - dot(largest, largest) / (4 * p.lambda2);
  }

  // ---- linear algebra ------------------------------------------------------------------------------------

  /** Matrix of order N d from a d x d block per sample and one per edge, which couples its two samples. */
  function assemble(p, sampleBlock, edgeBlock) {
    const N = p.X.length, d = p.X[0].length;
    const H = matrix(N * d, N * d, () => 0);
    const add = (i, j, sign, block) =>
      block.forEach((row, r) => row.forEach((t, c) => { H[i * d + r][j * d + c] += sign * t; }));
    p.X.forEach((_, i) => add(i, i, 1, sampleBlock(i)));
    p.edges.forEach(([i, j], e) => {
      const block = edgeBlock(e);
      [[i, i, 1], [j, j, 1], [i, j, -1], [j, i, -1]].forEach(([r, c, sign]) => add(r, c, sign, block));
    });
    return H;
  }

  /** Solve H x = f for a positive definite H by Cholesky factorisation. */
  function solveSystem(H, f) {
    const n = f.length, L = matrix(n, n, () => 0), x = [...f];
    for (let r = 0; r < n; r++) {
      for (let c = 0; c <= r; c++) {
        let t = H[r][c];
        for (let k = 0; k < c; k++) t -= L[r][k] * L[c][k];
        L[r][c] = r === c ? Math.sqrt(Math.max(t, Number.MIN_VALUE)) : t / L[c][c];
      }
    }
    for (let r = 0; r < n; r++) {
      for (let k = 0; k < r; k++) x[r] -= L[r][k] * x[k];
      x[r] /= L[r][r];
    }
    for (let r = n - 1; r >= 0; r--) {
      for (let k = r + 1; k < n; k++) x[r] -= L[k][r] * x[k];
      x[r] /= L[r][r];
    }
    return x;
  }

  /** The step -H^-1 gradient in the coordinates [i, k], zero in all others. */
  function newtonStep(H, gradient, coordinates) {
    const d = gradient[0].length;
    const all = coordinates || gradient.flatMap((g, i) => g.map((_, k) => [i, k]));
    const place = all.map(([i, k]) => i * d + k);
    const sub = place.map((r) => place.map((c) => H[r][c]));
    const x = solveSystem(sub, all.map(([i, k]) => -gradient[i][k]));
    const step = gradient.map((g) => g.map(() => 0));
    all.forEach(([i, k], n) => { step[i][k] = x[n]; });
    return step;
  }

  // ---- Algorithm 1 ---------------------------------------------------------------------------------------

  /** The quadratic above J_epsilon that touches it at W, the logistic loss bounded as by Jaakkola and Jordan. */
  function majoriser(p, W, epsilon) {
    const at = smoothed(p, W, epsilon);
    const bend = at.margins.map((m) => (Math.abs(m) > 1e-6 ? Math.tanh(m / 2) / (2 * m) : 0.25));
    const H = assemble(
      p,
      (i) => matrix(p.X[i].length, p.X[i].length, (r, c) =>
        bend[i] * p.X[i][r] * p.X[i][c] + (r === c ? 2 * p.lambda2 * at.S[i] / at.b[i][r] : 0)),
      (e) => matrix(p.X[0].length, p.X[0].length, (r, c) => (r === c ? at.radii[e] / at.a[e] : 0)),
    );
    const value = (V) => {
      const fit = V.map((v, i) => {
        const m = p.y[i] * dot(v, p.X[i]), m0 = at.margins[i];
        return softplus(-m0) - (m - m0) / 2 + bend[i] / 2 * (m * m - m0 * m0);
      });
      const network = p.edges.map(([i, j], e) =>
        at.radii[e] * ((norm(combine(V[i], -1, V[j])) ** 2 + epsilon ** 2) / (2 * at.a[e]) + at.a[e] / 2));
      const exclusive = V.map((v, i) => at.S[i] * sum(v.map((t, k) => (t * t + epsilon ** 2) / at.b[i][k])));
      return sum(fit) + sum(network) + p.lambda2 * sum(exclusive);
    };
    /** Where it is smallest; with `coordinates`, smallest while all other weights stay as they are. */
    const minimiser = (coordinates) => plus(W, 1, newtonStep(H, at.gradient, coordinates));
    return { at, value, minimiser };
  }

  /** W(t) -> W(t+1) of Algorithm 1. */
  const irlsStep = (p, W, epsilon) => majoriser(p, W, epsilon).minimiser();

  // ---- a solver ------------------------------------------------------------------------------------------

  /** Minimise J by primal-dual Newton steps on J_epsilon, epsilon shrinking, until the relative gap is at most tol. */
  function solve(p, { tol = 1e-11, W0 = null, epsilon = 0.1, shrink = 0.3, maxIter = 300 } = {}) {
    let at = smoothed(p, W0 || p.X.map((x) => x.map(() => 0)), epsilon);
    let u = at.dHat, z = at.wHat, held = 0;
    let best = { W: at.W, objective: at.objective, dual: -Infinity };
    for (let iteration = 0; iteration < maxIter; iteration++) {
      const U = u.map((t, e) => scaled(at.radii[e], t));
      const bound = dual(p, at.alpha, U);
      if (at.objective <= best.objective) Object.assign(best, { W: at.W, objective: at.objective });
      if (bound > best.dual) Object.assign(best, { dual: bound, alpha: at.alpha, U });
      const gap = best.objective - best.dual;
      if (gap <= tol * best.objective || at.epsilon < 1e-14) break;
      if (gap <= 2 * (at.value - at.objective) || ++held > 4) {
        at = smoothed(p, at.W, shrink * at.epsilon);
        held = 0;
      }
      const dW = newtonStep(primalDualMatrix(p, at, u, z), at.gradient);
      [u, z] = dualStep(p, at, u, z, dW);
      at = descend(p, at, dW);
    }
    return best;
  }

  /** The matrix of dW after u_e a_e = d_e and z_ik b_ik = w_ik are linearised and du, dz eliminated. */
  function primalDualMatrix(p, at, u, z) {
    const d = p.X[0].length;
    return assemble(
      p,
      (i) => matrix(d, d, (r, c) =>
        at.alpha[i] * (1 - at.alpha[i]) * p.X[i][r] * p.X[i][c] + 2 * p.lambda2 * at.wHat[i][r] * at.wHat[i][c] +
        (r === c ? 2 * p.lambda2 * at.S[i] * (1 - z[i][r] * at.wHat[i][r]) / at.b[i][r] : 0)),
      (e) => matrix(d, d, (r, c) =>
        at.radii[e] / at.a[e] * ((r === c) - (u[e][r] * at.dHat[e][c] + at.dHat[e][r] * u[e][c]) / 2)),
    );
  }

  /** u and z after the full step dW, put back into their balls. */
  function dualStep(p, at, u, z, dW) {
    const newU = p.edges.map(([i, j], e) => {
      const flow = combine(dW[i], -1, dW[j]);
      const bent = combine(combine(flow, -dot(at.dHat[e], flow) / 2, u[e]), -dot(u[e], flow) / 2, at.dHat[e]);
      const next = combine(at.dHat[e], 1 / at.a[e], bent);
      return scaled(1 / Math.max(1, norm(next)), next);
    });
    const newZ = at.wHat.map((row, i) => row.map((t, k) =>
      Math.min(1, Math.max(-1, t + dW[i][k] * (1 - z[i][k] * t) / at.b[i][k]))));
    return [newU, newZ];
  }

  /** The longest of the steps 1, 1/2, ... that lowers J_epsilon enough; if all are too short, a step of Algorithm 1. */
  function descend(p, at, dW) {
    const slope = inner(at.gradient, dW);
    for (let t = 1; t > 1e-4; t /= 2) {
      const trial = smoothed(p, plus(at.W, t, dW), at.epsilon);
      if (trial.value < at.value && trial.value <= at.value + 1e-4 * t * slope) return trial;
    }
    const plain = smoothed(p, irlsStep(p, at.W, at.epsilon), at.epsilon);
    return plain.value < at.value ? plain : at;
  }

  // ---- structure -----------------------------------------------------------------------------------------

  /** Which weights are zero, which edges are fused, and a cluster number per sample, up to a tolerance. */
  function structure(p, W, tolerance = 1e-5) {
    const zero = W.map((w) => w.map((t) => Math.abs(t) <= tolerance));
    const fused = p.edges.map(([i, j]) => norm(combine(W[i], -1, W[j])) <= tolerance);
    const cluster = W.map((_, i) => i);
    const root = (i) => (cluster[i] === i ? i : root(cluster[i]));
    p.edges.forEach(([i, j], e) => {
      if (fused[e]) cluster[Math.max(root(i), root(j))] = Math.min(root(i), root(j));
    });
    return { zero, fused, cluster: cluster.map((_, i) => root(i)) };
  }

  return { smoothed, dual, majoriser, irlsStep, solve, structure, newtonStep };
})();
