"""A certificate for a W of unknown origin."""
from llr_cvx.certificate import Certificate, certificate
import numpy as np
def certify(problem, W, alpha=None, U=None):
    W=np.asarray(W,float)
    if alpha is None: alpha=problem.alpha(W)
    if U is None:
        D=problem.incidence@W; n=np.linalg.norm(D,axis=1,keepdims=True)
        U=problem.radii[:,None]*np.divide(D,n,out=np.zeros_like(D),where=n>0)
    return certificate(problem,W,alpha,U)
