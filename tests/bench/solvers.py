#!/usr/bin/env python3
"""The golden placement and level models with cvxpy's GLPK and scipy's HiGHS, compared with `rota solve`.

    python3 tests/bench/solvers.py [--rota target/release/rota] [--golden ../shared/golden/milp/synergy]

Makes its own virtual environment in a temporary folder, installs cvxpy, cvxopt, scipy and highspy from the package
index, and prints times on the same files in the same run, as ratios to Rota's. Times are CPU seconds, best of three, so
that other work on the machine does not decide. Rota's include starting the program and reading the file; the others'
are those of the call that solves, with the model in memory.
"""
import argparse, json, os, resource, subprocess, sys, tempfile, time

FILES = ["s64_j200_seed12_p1_ilp", "s16_j100_seed8_p1_ilp", "s16_j100_seed8_p2_ilp", "s8_j40_seed5_p2_ilp"]
PATIENCE_S = 120
N_RUNS = 3


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--rota", default="target/release/rota")
    parser.add_argument("--golden", default=os.path.join(os.environ.get("ROTA_SHARED", "../shared"), "golden/milp/synergy"))
    parser.add_argument("--worker", nargs=2, metavar=("SOLVER", "FILE"), help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.worker:
        return work(*args.worker)
    with tempfile.TemporaryDirectory() as folder:
        python = os.path.join(folder, "bin", "python")
        subprocess.run([sys.executable, "-m", "venv", folder], check=True)
        subprocess.run([python, "-m", "pip", "install", "--quiet", "cvxpy", "cvxopt", "scipy", "highspy"], check=True)
        print(f"{'model':<28}{'rota':>10}{'scipy HiGHS':>16}{'cvxpy GLPK_MI':>16}")
        for name in FILES:
            path = os.path.join(args.golden, name + ".mps.gz")
            if not os.path.exists(path):
                print(f"{name:<28} is absent")
                continue
            ours, answer = rota(args.rota, path)
            others = [run(python, solver, path, ours, answer["objective"]) for solver in ("scipy", "glpk")]
            print(f"{name:<28}{ours:>8.3f} s{others[0]:>16}{others[1]:>16}")


def rota(program, path):
    best = float("inf")
    for _ in range(N_RUNS):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        done = subprocess.run([program, "solve", path, "--json", "--in-process"], check=True, capture_output=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        best = min(best, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return best, json.loads(done.stdout)


def run(python, solver, path, ours, expected):
    try:
        done = subprocess.run([python, __file__, "--worker", solver, path], capture_output=True, timeout=PATIENCE_S, text=True)
    except subprocess.TimeoutExpired:
        return f"> {PATIENCE_S / ours:.0f} x"
    if done.returncode:
        return done.stderr.strip().splitlines()[-1][:14] if done.stderr else "failed"
    seconds, objective = map(float, done.stdout.split())
    if abs(objective - expected) > 1e-5 * max(1.0, abs(expected)):
        return f"differs: {objective:.4f}"
    return f"{seconds / ours:.1f} x"


def work(solver, path):
    """Reads a model with HiGHS's own reader, so that all solve the same numbers; times the solve alone."""
    import gzip, highspy, numpy, scipy.sparse, shutil
    with tempfile.NamedTemporaryFile(suffix=".mps") as plain:
        with gzip.open(path) as packed:
            shutil.copyfileobj(packed, plain)
        plain.flush()
        reader = highspy.Highs()
        reader.setOptionValue("output_flag", False)
        reader.readModel(plain.name)
        lp = reader.getLp()
    shape = (lp.num_row_, lp.num_col_)
    matrix = scipy.sparse.csc_matrix((lp.a_matrix_.value_, lp.a_matrix_.index_, lp.a_matrix_.start_), shape=shape)
    cost = numpy.array(lp.col_cost_)
    kinds = list(lp.integrality_) or [highspy.HighsVarType.kContinuous] * lp.num_col_
    whole = numpy.array([kind == highspy.HighsVarType.kInteger for kind in kinds])
    low, high = numpy.array(lp.col_lower_), numpy.array(lp.col_upper_)
    least, most = numpy.array(lp.row_lower_), numpy.array(lp.row_upper_)
    solve = {"scipy": solve_scipy, "glpk": solve_glpk}[solver]
    answers = []
    # A slow solver is timed once.
    while len(answers) < N_RUNS and sum(seconds for seconds, _ in answers) < PATIENCE_S / 10:
        answers.append(solve(cost, matrix, least, most, low, high, whole))
    seconds, objective = min(answers)
    print(seconds, objective + lp.offset_)


def solve_scipy(cost, matrix, least, most, low, high, whole):
    from scipy.optimize import Bounds, LinearConstraint, milp
    began = time.process_time()
    answer = milp(cost, constraints=LinearConstraint(matrix, least, most), bounds=Bounds(low, high), integrality=whole.astype(int))
    return time.process_time() - began, answer.fun


def solve_glpk(cost, matrix, least, most, low, high, whole):
    import cvxpy, numpy
    assert whole.all(), "the files are pure integer models"
    began = time.process_time()
    x = cvxpy.Variable(len(cost), integer=True)
    rows = matrix.tocsr()
    equal, upper, lower = least == most, numpy.isfinite(most) & (least != most), numpy.isfinite(least) & (least != most)
    constraints = [rows[equal] @ x == most[equal]] if equal.any() else []
    constraints += [rows[upper] @ x <= most[upper]] if upper.any() else []
    constraints += [rows[lower] @ x >= least[lower]] if lower.any() else []
    constraints += [x[numpy.isfinite(low)] >= low[numpy.isfinite(low)]]
    constraints += [x[numpy.isfinite(high)] <= high[numpy.isfinite(high)]] if numpy.isfinite(high).any() else []
    problem = cvxpy.Problem(cvxpy.Minimize(cost @ x), constraints)
    problem.solve(solver=cvxpy.GLPK_MI)
    return time.process_time() - began, problem.value


if __name__ == "__main__":
    main()
