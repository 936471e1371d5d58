#!/usr/bin/env python3
"""HyperQueue from the package index, driven line by line by `cargo bench --bench live -- starts`.

    python3 tests/bench/with_hyperqueue.py CORES COMMAND...

Takes the hyperqueue of the Python that runs it, or makes a virtual environment in the user's cache and installs it there.
Says its version, then for every number read submits that many tasks of the command and says `done` when they have ended.
Its server and its worker are those of the released program; nothing is journaled and no output is kept.
"""
import os, subprocess, sys, tempfile
from importlib import metadata


def main():
    try:
        import hyperqueue  # noqa: F401
    except ImportError:
        return install()
    from hyperqueue import Job, LocalCluster
    from hyperqueue.cluster import WorkerConfig

    # The library prints to standard output what nobody asked for.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    cores, command = int(sys.argv[1]), sys.argv[2:]
    with tempfile.TemporaryDirectory() as folder:
        with LocalCluster(server_dir=folder, worker_config=WorkerConfig(cores=cores)) as cluster:
            client = cluster.client()
            print("HyperQueue", metadata.version("hyperqueue"), file=answers, flush=True)
            for line in sys.stdin:
                job = Job()
                for _ in range(int(line)):
                    job.program(command, stdout=None, stderr=None)
                client.wait_for_jobs([client.submit(job)])
                print("done", file=answers, flush=True)


def install():
    cache = os.environ.get("XDG_CACHE_HOME", os.path.expanduser("~/.cache"))
    folder = os.path.join(cache, "rota-bench-hyperqueue")
    python = os.path.join(folder, "bin", "python")
    if folder in sys.executable:
        print("it is not in", folder, flush=True)
        return 1
    try:
        if not os.path.exists(python):
            subprocess.run([sys.executable, "-m", "venv", folder], check=True, stdout=2)
        subprocess.run([python, "-m", "pip", "install", "--quiet", "hyperqueue"], check=True, stdout=2)
    except (OSError, subprocess.CalledProcessError) as error:
        print("it could not be installed from the package index:", error, flush=True)
        return 1
    os.execv(python, [python] + sys.argv)


if __name__ == "__main__":
    sys.exit(main())
