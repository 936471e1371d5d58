"""Tests of rota_job against a node played by the test. Run with `python3 -m unittest`."""

import json
import os
import socket
import tempfile
import threading
import unittest

import rota_job


class Node:
    """The other end of a job's socket."""

    def __init__(self):
        self.folder = tempfile.TemporaryDirectory()
        self.path = os.path.join(self.folder.name, "s")
        self.listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.listener.bind(self.path)
        self.listener.listen(1)
        self.listener.settimeout(30)

    def accept(self):
        self.stream, _ = self.listener.accept()
        self.stream.settimeout(30)
        self.lines = self.stream.makefile("r")
        return self.hear()

    def hear(self):
        return json.loads(self.lines.readline())

    def hear_until(self, **wanted):
        while True:
            message = self.hear()
            if all(message.get(name) == value for name, value in wanted.items()):
                return message

    def send(self, **message):
        self.stream.sendall(json.dumps(message).encode() + b"\n")

    def close(self):
        self.stream.close()
        self.listener.close()
        self.folder.cleanup()


def wait_for(condition):
    """Waits until something heard by another thread has arrived."""
    moment = threading.Event()
    for _ in range(3000):
        if condition():
            return
        moment.wait(0.01)
    raise AssertionError("timed out")


class AloneTest(unittest.TestCase):
    def setUp(self):
        for name in ("ROTA_JOB_SOCKET", "ROTA_ITERATIONS", "ROTA_ITERATIONS_DONE", "RANK", "WORLD_SIZE"):
            os.environ.pop(name, None)

    def test_a_script_without_rota_runs_as_it_is(self):
        with rota_job.connect() as job:
            self.assertEqual(list(job.iterate([1, 2, 3])), [1, 2, 3])
            self.assertEqual(job.step, 3)
            self.assertFalse(job.should_checkpoint() or job.should_stop())
        self.assertEqual((rota_job.rank(), rota_job.world_size()), (0, 1))

    def test_steps_go_on_where_they_were_and_the_loader_begins_again(self):
        os.environ.update(ROTA_ITERATIONS="7", ROTA_ITERATIONS_DONE="2.0")
        with rota_job.connect() as job:
            self.assertEqual(list(job.iterate("ab")), ["a", "b", "a", "b", "a"])
            self.assertEqual(job.step, 7)

    def test_a_loader_that_is_used_up_ends_the_iteration(self):
        os.environ["ROTA_ITERATIONS"] = "7"
        with rota_job.connect() as job:
            self.assertEqual(list(job.iterate(iter([1, 2]))), [1, 2])


class NodeTest(unittest.TestCase):
    def setUp(self):
        self.node = Node()
        os.environ.update(ROTA_JOB_SOCKET=self.node.path, ROTA_ITERATIONS="100", RANK="3")
        os.environ.pop("ROTA_ITERATIONS_DONE", None)
        self.job = rota_job.connect()
        self.hello = self.node.accept()

    def tearDown(self):
        self.job.close()
        self.node.close()

    def test_it_says_hello_with_its_rank(self):
        self.assertEqual(self.hello, {"type": "hello", "protocol": 1, "rank": 3, "stops": True})

    def test_a_checkpoint_is_asked_for_once_and_confirmed(self):
        self.node.send(type="checkpoint")
        wait_for(self.job.should_checkpoint)
        self.job.step = 12
        self.job.checkpointed()
        self.assertFalse(self.job.should_checkpoint())
        self.node.hear_until(type="checkpointed", iterations=12)

    def test_an_order_to_stop_ends_the_iteration_after_a_checkpoint(self):
        seen = []
        for item in self.job.iterate(range(1000)):
            seen.append(item)
            if len(seen) == 5:
                self.node.send(type="stop", grace_s=60.0, keep_work=True)
                wait_for(self.job.should_stop)
        self.assertEqual(len(seen), 5)
        self.assertTrue(self.job.should_checkpoint())
        self.assertGreater(self.job.grace_left(), 10)
        self.job.checkpointed()
        self.assertFalse(self.job.should_checkpoint())
        self.node.hear_until(type="checkpointed", iterations=5)

    def test_ranks_that_agree_leave_after_the_same_step(self):
        others = iter([False, False, True])
        seen = list(self.job.iterate(range(1000), agree=lambda mine: mine or next(others)))
        self.assertEqual(seen, [0, 1], "another rank heard of the stop first")

    def test_work_nobody_wants_is_not_saved(self):
        self.node.send(type="stop", grace_s=1.0, keep_work=False)
        wait_for(self.job.should_stop)
        self.assertFalse(self.job.should_checkpoint())

    def test_a_job_that_is_stopped_for_another_size_knows_it(self):
        self.assertIsNone(self.job.next_size())
        self.node.send(type="rescale", gpus=8, world_size=2)
        self.node.send(type="stop", grace_s=60.0, keep_work=True)
        wait_for(self.job.should_stop)
        self.assertEqual(self.job.next_size(), (8, 2))
        self.assertTrue(self.job.should_checkpoint())

    def test_the_lease_is_told(self):
        self.assertIsNone(self.job.lease_left())
        self.job.renew()
        self.node.hear_until(type="renew")
        self.node.send(type="lease", lease_s=50.0)
        wait_for(lambda: self.job.lease_left() is not None)
        self.assertLess(self.job.lease_left(), 50.1)

    def test_a_node_that_is_gone_does_not_end_the_training(self):
        self.node.stream.close()
        self.node.lines.close()
        self.assertEqual(len(list(self.job.iterate(range(10)))), 100)

    def test_a_line_of_a_newer_node_is_passed_over(self):
        self.node.send(type="confetti", colour="blue")
        self.node.send(type="checkpoint")
        wait_for(self.job.should_checkpoint)


if __name__ == "__main__":
    unittest.main()
