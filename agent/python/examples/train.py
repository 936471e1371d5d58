"""Data-parallel training that really trains: a small network on two spirals, gradients averaged over TCP.

Every rank computes the gradient of its part of the batch; rank 0 adds them up and returns the sum. The result
therefore does not depend on the number of ranks. Needs numpy. The loss continues from a checkpoint, with 1, 2 or 4
ranks. Under Rota everything comes from the environment; alone, try `python3 train.py --steps 200`.
"""

import argparse
import os
import pickle
import socket
import struct
import sys
import time

import numpy

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import rota_job  # noqa: E402  (in the folder above)

BATCH = 64


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=0, help="steps in all [default: ROTA_ITERATIONS]")
    parser.add_argument("--pause", type=float, default=0.0, help="seconds to wait in each step, to watch it")
    options = parser.parse_args()
    folder = os.environ.get("ROTA_CHECKPOINT_DIR", ".")
    os.makedirs(folder, exist_ok=True)
    path = os.path.join(folder, "spirals.npz")
    with rota_job.connect() as job, Ranks() as ranks:
        job.total_steps = options.steps or job.total_steps
        weights, job.step = load(path)
        print(f"rank {ranks.rank} of {ranks.size} begins at step {job.step}", flush=True)
        for step in job.iterate(iter(range(job.step, job.total_steps)), agree=ranks.any):
            loss, gradient = ranks.mean(*part_of_step(weights, step, ranks.rank, ranks.size))
            weights = [w - 0.5 * g for w, g in zip(weights, gradient)]
            if ranks.rank == 0 and (step + 1) % 20 == 0:
                print(f"step {step + 1} loss {loss:.6f}", flush=True)
            time.sleep(options.pause)
            if ranks.any(job.should_checkpoint()):
                save(path, weights, step + 1, ranks.rank)
                ranks.any(False)  # No rank reports it before it is written.
                job.checkpointed(step + 1)
        save(path, weights, job.step, ranks.rank)
        ranks.any(False)
        job.checkpointed()
        print(f"rank {ranks.rank} ends at step {job.step}", flush=True)


def spirals(step):
    """The batch of a step: the same in every rank."""
    draw = numpy.random.default_rng(step)
    label = draw.integers(0, 2, BATCH)
    turn = draw.uniform(0.5, 2.0, BATCH)
    angle = turn * numpy.pi + label * numpy.pi
    points = numpy.stack([turn * numpy.cos(angle), turn * numpy.sin(angle)], axis=1)
    return points, label


def part_of_step(weights, step, rank, size):
    """Sum of losses and gradients over this rank's part of the batch."""
    points, label = spirals(step)
    points, label = points[rank::size], label[rank::size]
    w1, b1, w2, b2 = weights
    hidden = numpy.tanh(points @ w1 + b1)
    chance = 1.0 / (1.0 + numpy.exp(-(hidden @ w2 + b2)))
    loss = -numpy.log(numpy.where(label == 1, chance, 1.0 - chance) + 1e-12).sum()
    error = chance - label
    back = numpy.outer(error, w2) * (1.0 - hidden**2)
    return loss, [points.T @ back, back.sum(0), hidden.T @ error, error.sum()]


def load(path):
    if os.path.exists(path):
        with numpy.load(path) as kept:
            return [kept[f"w{n}"] for n in range(4)], int(kept["step"])
    draw = numpy.random.default_rng(7)
    return [draw.normal(0, 1, (2, 16)), numpy.zeros(16), draw.normal(0, 1, 16), numpy.zeros(())], 0


def save(path, weights, step, rank):
    if rank == 0:
        new = path + ".new"
        with open(new, "wb") as file:
            numpy.savez(file, step=step, **{f"w{n}": w for n, w in enumerate(weights)})
        os.replace(new, path)


class Ranks:
    """All ranks of the job, in a star around rank 0."""

    def __init__(self):
        self.rank, self.size = rota_job.rank(), rota_job.world_size()
        self.peers = {}

    def __enter__(self):
        if self.size == 1:
            return self
        address, port = rota_job.master()
        if self.rank == 0:
            with socket.create_server(("", port)) as listener:
                listener.settimeout(60)
                while len(self.peers) < self.size - 1:
                    peer, _ = listener.accept()
                    self.peers[receive(peer)] = peer
        else:
            self.peers[0] = knock(address, port)
            send(self.peers[0], self.rank)
        return self

    def __exit__(self, *_):
        for peer in self.peers.values():
            peer.close()

    def mean(self, loss, gradient):
        """The mean over the whole batch. Added in the order of ranks: the same every time."""
        total = self._reduce((loss, gradient), lambda a, b: (a[0] + b[0], [x + y for x, y in zip(a[1], b[1])]))
        return total[0] / BATCH, [part / BATCH for part in total[1]]

    def any(self, mine):
        """Whether it holds for some rank."""
        return self._reduce(mine, lambda a, b: a or b)

    def _reduce(self, mine, add):
        if self.rank != 0:
            send(self.peers[0], mine)
            return receive(self.peers[0])
        total = mine
        for rank in sorted(self.peers):
            total = add(total, receive(self.peers[rank]))
        for peer in self.peers.values():
            send(peer, total)
        return total


def knock(address, port):
    """Rank 0 may take a moment to listen."""
    for _ in range(600):
        try:
            return socket.create_connection((address, port), timeout=60)
        except OSError:
            time.sleep(0.1)
    raise SystemExit(f"rank 0 does not listen at {address}:{port}")


def send(peer, value):
    data = pickle.dumps(value)
    peer.sendall(struct.pack("<I", len(data)) + data)


def receive(peer):
    (n_bytes,) = struct.unpack("<I", read(peer, 4))
    return pickle.loads(read(peer, n_bytes))


def read(peer, n_bytes):
    data = b""
    while len(data) < n_bytes:
        piece = peer.recv(n_bytes - len(data))
        if not piece:
            raise SystemExit("a rank is gone")
        data += piece
    return data


if __name__ == "__main__":
    main()
