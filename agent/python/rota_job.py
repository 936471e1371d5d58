"""The job side of Rota, for training scripts in Python. No dependencies; Python 3.8 or newer.

    import rota_job

    with rota_job.connect() as job:
        step = job.start_step                      # 0, or where the last checkpoint left off
        for batch in job.iterate(loader):          # reports progress; ends when the job is asked to stop
            train(batch)
            if job.should_checkpoint():
                save(path, job.step)
                job.checkpointed()

Without Rota (no ROTA_JOB_SOCKET in the environment) the same script runs as it is: nothing is ever asked of it.
The lines that travel are described in docs/job-protocol.md.
"""

import json
import os
import socket
import threading
import time

PROTOCOL = 1

# Progress is sent at most this often, in seconds; who measures wants it more often.
_REPORT_EVERY_S = float(os.environ.get("ROTA_REPORT_EVERY_S", "0.2") or 0.2)


def rank():
    """The number of this process among all of the job."""
    return int(os.environ.get("RANK", "0"))


def world_size():
    """How many processes the job has."""
    return int(os.environ.get("WORLD_SIZE", "1"))


def local_rank():
    """The number of this process among those on its node; its GPU, when each has one."""
    return int(os.environ.get("LOCAL_RANK", "0"))


def master():
    """Where rank 0 listens: (address, port)."""
    return os.environ.get("MASTER_ADDR", "127.0.0.1"), int(os.environ.get("MASTER_PORT", "29500"))


def connect():
    """The connection to Rota, or a stand-in when the script runs on its own."""
    return Job(os.environ.get("ROTA_JOB_SOCKET"))


class Job:
    """A job's connection to its node. Safe to use from several threads."""

    def __init__(self, socket_path):
        self._lock = threading.Lock()
        self._asked_checkpoint = False
        self._asked_stop = False
        self._keep_work = True
        self._kill_at = None
        self._next_size = None
        self._lease_until = None
        self._reported_at = 0.0
        self.total_steps = _steps("ROTA_ITERATIONS")
        self.start_step = _steps("ROTA_ITERATIONS_DONE")
        self.step = self.start_step
        self._socket = None
        if socket_path:
            self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            self._socket.connect(socket_path)
            self._send({"type": "hello", "protocol": PROTOCOL, "rank": rank(), "stops": True})
            threading.Thread(target=self._listen, daemon=True).start()

    def iterate(self, iterable, agree=None):
        """Wraps any iterable: counts and reports steps, and ends when all are done or the job is asked to stop.

        An iterable that ends is started again while steps are left, if that is possible; when the total is unknown, the
        loop ends with it. One rank may hear of a stop a step before another. Ranks that work in step pass `agree`, which is given whether
        this rank is to stop and returns whether any is; then all leave after the same step.
        """
        agree = agree or bool
        while not self._is_done():
            n_before = self.step
            for item in iterable:
                if self._is_done() or agree(self.should_stop()):
                    return
                yield item
                self.step += 1
                self.progress()
            if self.total_steps == 0 or self.step == n_before:
                return

    def progress(self, step=None):
        """Reports the steps done, those of earlier launches included; often is fine, it is sent now and then."""
        if step is not None:
            self.step = step
        now = time.monotonic()
        if now - self._reported_at >= _REPORT_EVERY_S or self._is_done() or self.should_stop():
            self._reported_at = now
            self._send({"type": "progress", "iterations": self.step, "at_s": now})

    def should_checkpoint(self):
        """Whether a checkpoint is wanted now: it was asked for, or the job is to stop and its work is to be kept."""
        with self._lock:
            return self._asked_checkpoint or (self._asked_stop and self._keep_work)

    def should_stop(self):
        """Whether the job is to end."""
        with self._lock:
            return self._asked_stop

    def checkpointed(self, step=None):
        """Reports that a checkpoint with this many steps is safely written."""
        step = self.step if step is None else step
        with self._lock:
            self._asked_checkpoint = False
            self._keep_work = False
        self._send({"type": "progress", "iterations": self.step})
        self._send({"type": "checkpointed", "iterations": step})

    def done(self):
        """Says that all work is done and its results are written: however the job ends now, it is not run again."""
        self._send({"type": "done"})

    def renew(self):
        """Asks how long the job may run; `lease_left()` knows when the answer is there."""
        self._send({"type": "renew"})

    def lease_left(self):
        """Seconds left of the lease as last heard; None lasts for ever."""
        with self._lock:
            return None if self._lease_until is None else max(0.0, self._lease_until - time.monotonic())

    def grace_left(self):
        """Seconds until the process is killed; None when it was not asked to stop."""
        with self._lock:
            return None if self._kill_at is None else max(0.0, self._kill_at - time.monotonic())

    def next_size(self):
        """(GPUs, ranks) with which the job goes on after this stop, where it is stopped for another size; else None."""
        with self._lock:
            return self._next_size

    def close(self):
        """Reports the last step and hangs up."""
        if self._socket is not None:
            self._send({"type": "progress", "iterations": self.step})
            self._socket.close()
            self._socket = None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def _is_done(self):
        return self.total_steps > 0 and self.step >= self.total_steps

    def _send(self, message):
        if self._socket is None:
            return
        try:
            with self._lock:
                self._socket.sendall(json.dumps(message).encode() + b"\n")
        except OSError:
            pass  # The node is gone: there is no one to report to.

    def _listen(self):
        try:
            with self._socket.makefile("r", encoding="utf-8") as lines:
                for line in lines:
                    self._hear(json.loads(line))
        except (OSError, ValueError, AttributeError):
            pass

    def _hear(self, message):
        kind = message.get("type")
        with self._lock:
            if kind == "checkpoint":
                self._asked_checkpoint = True
            elif kind == "rescale":
                self._next_size = (int(message["gpus"]), int(message["world_size"]))
            elif kind == "stop":
                self._asked_stop = True
                self._keep_work = bool(message.get("keep_work", True))
                self._kill_at = time.monotonic() + float(message.get("grace_s", 0))
            if kind in ("welcome", "lease"):
                left = message.get("lease_s")
                self._lease_until = None if left is None else time.monotonic() + left


def _steps(name):
    return int(float(os.environ.get(name, "0") or 0))
