"""Every tuned number of the iterative solvers, in one place.

`llr-cvx bench --part settings` multiplies and divides each of them by three and reports what that costs in time and
in gaps missed over a fixed set of problems. Lengths are shares of `typical_weight`, so
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
TINY_EPSILON = 1e5  # multiple of the last epsilon below which it is held while rounding W lowers J

# ---- linear systems ---------------------------------------------------------------------------------------

EASY_CG = 16  # iterations after which block Jacobi is joined by a coarse level
MAX_CG = 2000
STIFF_EDGE = 0.003  # share of the largest c_e above which an edge joins its samples to a group
FACTOR_COST = 12.0  # 40 + (n^3 + 5 terms^2) / (this (N + E)) iterations cost as much as factors for n groups
MAX_FACTORS = 1e7  # entries of all factors together: 80 MB

# ---- which edges fuse, which weights vanish ---------------------------------------------------------------

LARGEST_RADIUS = 1e3  # multiple of sqrt(d) sum_i ||x_i|| to which lambda1 omega_e is cut down
INSIDE = 0.98  # ||u_e||^2 below which an edge counts as fused
ZERO_WEIGHT, EQUAL_ROWS = 100.0, 1e3  # multiples of epsilon up to which a weight is zero, and two rows are equal
SHORT_WEIGHT, SHRINKS = 1e4, 0.6  # and up to which a weight is zero if it has fallen to this share with epsilon
ROUNDING_SHARES = 0.1, 0.01  # of these multiples that are tried too when W is rounded,
MAX_STEPS_TO_ROUND = 3  # and steps with a smaller epsilon where their zeros differ,
SUPPORT_TOL = 1e-8  # if a gap as small as this is asked for

# ---- the strategy of the fast solver ----------------------------------------------------------------------

DENSE = 700  # samples up to which matrices are inverted and IRLS is the faster of the two for small gaps
HANDOVER = 0.1  # relative gap at which splitting takes over otherwise
HARD_CG = 150  # iterations of a system at which it takes over at once, for any number of samples
MAX_FUSED = 0.9  # share of fused edges up to which splitting is tried: clusters move slowly
SMALL_LAMBDA2 = 0.03  # multiple of the squared ||x_i||_inf, in the median, below which a path goes on by IRLS alone
SPLITTING_GAIN = 0.1  # share of the gap that it must not leave, or IRLS goes on from its own point

# ---- splitting --------------------------------------------------------------------------------------------

SINGLE_PRECISION_GAP = 5e-7  # relative gap down to which rounds in single precision go
RELAX = 1.7  # of a round; it converges below 2
RHO_SHARE = 0.3  # rho_i as a share of the sum of r_e at sample i
TUNING_ROUNDS = 4, 10  # rounds whose difference says what gamma should be
ROUNDS_PER_BOUND = 4  # rounds from one lower bound to the next
SETTLED_RISE = 2.0  # multiple of tol by which the bound may have risen where W is worth a look
MAX_BLIND = 24  # rounds after which W is looked at in any case,
MAX_ROUNDS_LEFT = 30, 300  # and rounds that may be left, at the rate since: more where IRLS is slow (see `split`)
INNER_CG = 3  # conjugate gradient iterations per round for more than DENSE samples
NEGLIGIBLE_EDGE = 1e-15  # share of the largest r_e up to which an edge does not couple
COARSE_ALPHA, MAX_BISECTIONS = 0.1, 40  # error of alpha_i above which its root is bracketed, in so many steps
L1_STEPS = 10  # Newton steps for ||w_i||_1 at most; mostly two are made
