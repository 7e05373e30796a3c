"""Every tuned number of the iterative solvers, in one place.

`llr-cvx bench --part settings` multiplies and divides each of them by three and reports what that costs in time and
in gaps missed over a fixed set of problems; docs/speed.md shows its result. Lengths are shares of `typical_weight`, so
that they scale with the data.
"""

# ---- IRLS -------------------------------------------------------------------------------------------------

FIRST_EPSILON = 0.1  # share of a typical weight
LAST_EPSILON = 1e-15  # share of a typical weight below which rounding of J_epsilon hides its decrease
EPSILON_SHRINK = 0.2  # of epsilon, each time the gap has come down to the cost of smoothing
SETTLED = 1.5  # that is, to this multiple of J_epsilon - J
MAX_HELD = 8  # steps after which epsilon shrinks in any case
MIN_PROGRESS = 0.8  # share of the gap that a step may leave before its system is solved more accurately
CG_LOOSEST, CG_TIGHTEST = 0.01, 1e-10  # relative accuracy of the systems
CG_TIGHTEN, CG_RELAX = 0.1, 10.0  # factors of that accuracy after a step without and with progress
SMALLEST_STEP = 0.01  # share of a primal-dual step below which the plain step of Algorithm 1 is taken instead

# ---- linear systems ---------------------------------------------------------------------------------------

EASY_CG = 16  # iterations after which block Jacobi is joined by a coarse level
MAX_CG = 2000
STIFF_EDGE = 0.03  # share of the largest c_e above which an edge joins its samples to a group
FACTOR_COST = 25.0  # 40 + N^3 / (this (N + E)) iterations cost as much as solving with one factorisation per feature
KEEP_FACTORED = 300  # where they cost less iterations than this, a run that needed factors once uses them to the end
MAX_FACTORS = 1e7  # entries of all factors together: 80 MB
HELD_CURVATURE = 1e3  # multiple of its coupling from which a weight counts as decoupled

# ---- which edges fuse, which weights vanish ---------------------------------------------------------------

INSIDE = 0.98  # ||u_e||^2 below which an edge counts as fused
INDISTINCT = 100.0  # multiple of epsilon below which IRLS takes a weight for zero and two rows for equal

# ---- the strategy of the fast solver ----------------------------------------------------------------------

DENSE = 700  # samples up to which matrices are inverted and IRLS is fast
HANDOVER = 3e-3  # relative gap at which splitting takes over from IRLS where its systems are slow,
MANY_HANDOVER = 0.1  # and for more than DENSE samples in any case
SLOW_CG, HARD_CG = 20, 150  # conjugate gradient iterations of a slow system, and of one at which it takes over at once
MAX_FUSED_COLD = 0.9  # share of fused edges up to which it takes over; beyond it the finish is tried at once,
MAX_FUSED_WARM = 0.88  # and up to which it goes on from a neighbouring solution: clusters move slowly
SPLITTING_GAIN = 0.1  # share of the gap that it must not leave, or IRLS goes on from its own point
FINISH_TOL = 1e-9  # a tol from here on asks for the exact support and clusters,
FIRST_FINISH, NEXT_FINISH = 3e-7, 0.03  # tried at this relative gap, and after a failure at this share of it

# ---- splitting --------------------------------------------------------------------------------------------

SINGLE_PRECISION_GAP = 5e-7  # relative gap down to which rounds in single precision go
RELAX = 1.7  # of a round; it converges below 2
RHO_SHARE = 0.3  # rho_i as a share of the sum of r_e at sample i
TUNING_ROUNDS = 4, 10  # rounds whose difference says what gamma should be
ROUNDS_PER_BOUND = 4  # rounds from one lower bound to the next
SETTLED_RISE = 2.0  # multiple of tol by which the bound may have risen where W is worth a look
MAX_BLIND = 24  # rounds after which W is looked at in any case,
MAX_ROUNDS_LEFT = 300  # and rounds that may be left to do, at the rate since the last such look
INNER_CG = 3  # conjugate gradient iterations per round for more than DENSE samples
NEGLIGIBLE_EDGE = 1e-15  # share of the largest r_e up to which an edge does not couple
COARSE_ALPHA, MAX_BISECTIONS = 0.1, 40  # error of alpha_i above which its root is bracketed, in so many steps
L1_STEPS = 10  # Newton steps for ||w_i||_1 at most; mostly two are made

# ---- the finish on a face ---------------------------------------------------------------------------------

FINISH_CG = 400  # conjugate gradient iterations in all
MAX_FREE = 20  # free weights per cluster beyond which a face is large: its systems are hard
FACE_LOOSE, FACE_TIGHT = 1e-2, 1e-4  # accuracy of its systems before and after the face has settled
HOPELESS_CG = 100  # iterations to the loose accuracy that show a wrong face
COMPLETION_ROUNDS = 600  # for up to DENSE samples in clusters, and a sixth of it for more
SMALL_CLUSTER = 6.0  # samples
GIVEN_WEIGHT = 1e-2  # weight of a v that is given, against that of one that is free
MAX_APART = 0.1  # share of their first distance at which two sets have no point in common: the face is wrong
