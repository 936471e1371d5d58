"""A data loader that really works: unpacks and tokenises text with N worker processes, as training input pipelines do.

Every batch is `--batch-size` documents, each of them packed by zlib; workers unpack them, split them into words and count
them, and the main process takes batches in order. Nothing is trained: with workers enough the loop is bound by them, and
that is the part of a job that CPUs decide. Standard library only. Try it alone:

    python3 load_data.py --workers 2 --max-iterations 20

or under the profiler:

    rota profile run --name text --max-cpus 2 -- python3 agent/python/examples/load_data.py
"""

import argparse
import collections
import concurrent.futures
import os
import random
import re
import sys
import zlib

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import rota_job  # noqa: E402  (in the folder above)

WORDS = re.compile(rb"[a-z]+")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--batch-size", type=int, default=8, help="documents in a batch")
    parser.add_argument("--workers", type=int, default=1, help="processes that prepare batches")
    parser.add_argument("--max-iterations", type=int, default=0, help="batches in all [default: ROTA_ITERATIONS]")
    parser.add_argument("--kilobytes", type=int, default=64, help="size of a document before it is packed")
    options = parser.parse_args()
    documents = [packed(number, options.kilobytes) for number in range(16)]
    vocabulary = collections.Counter()
    with concurrent.futures.ProcessPoolExecutor(options.workers) as workers, rota_job.connect() as job:
        job.total_steps = options.max_iterations or job.total_steps
        # One batch more in advance than there are workers: no worker waits for the main process.
        ahead = collections.deque()
        number = 0
        for _ in job.iterate(iter(range(job.total_steps))):
            while len(ahead) <= options.workers:
                batch = [documents[(number * options.batch_size + i) % 16] for i in range(options.batch_size)]
                ahead.append(workers.submit(prepare, batch))
                number += 1
            vocabulary.update(ahead.popleft().result())
        print(f"{job.step} batches, {len(vocabulary)} different words", flush=True)
        for left in ahead:
            left.cancel()


def packed(number, kilobytes):
    """A document of random words: always the same for a number."""
    draw = random.Random(number)
    words = ["".join(draw.choices("etaoinshrdlu", k=draw.randint(2, 9))) for _ in range(2000)]
    text = " ".join(draw.choices(words, k=kilobytes * 1024 // 6))
    return zlib.compress(text.encode(), 6)


def prepare(batch):
    """What a worker does: unpack, split, count."""
    counts = collections.Counter()
    for document in batch:
        counts.update(WORDS.findall(zlib.decompress(document)))
    return dict(counts.most_common(100))


if __name__ == "__main__":
    main()
