"""The processes of a run on several devices or hosts: how they connect, and how they exchange numbers.

    torchrun --nproc-per-node 2 -m decoding run --parallel ...

Every process is a *rank*, numbered from 0. torchrun starts the ranks, on one host or several, and passes each its
number in environment variables; any launcher that sets these will do. On CUDA, with a device for each rank, they
communicate through NCCL, else through Gloo. The numbers are on the host by then, so NCCL copies them to the device and
back, for which the host waits a second time.

Gloo notices at once that a process has ended, since its connections close. NCCL does so between hosts; on one host
torchrun ends the other processes. A process that hangs is given up after `_TIMEOUT`.
"""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from datetime import timedelta

import torch
import torch.distributed as dist

from .errors import ParamError, RankError

_TIMEOUT = timedelta(minutes=10)  # a rank may still load its model, or read a long prompt
_VARIABLES = ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")
_LOST = "another rank of this run has ended or cannot be reached: see its output, then start all ranks again"
START = "torchrun --nproc-per-node 2 -m decoding run --parallel"


class Ranks:
    """This process and the other ranks of its run."""

    def __init__(self, rank: int, count: int, device: str | None, backend: str) -> None:
        self.rank, self.count, self.device, self.backend = rank, count, device, backend
        self.received = 0  # bytes that each rank has received by `gather`, from itself too

    @classmethod
    def join(cls, device: str | None = None) -> Ranks:
        """Connect to the other ranks, by the environment variables. `device` is the model's; None: the best one."""
        if missing := [name for name in _VARIABLES if name not in os.environ]:
            raise ParamError(f"--parallel needs a process for every rank ({missing[0]} is not set): begin with {START}")
        cuda = device in (None, "cuda") and torch.cuda.is_available()
        local, neighbours = (int(os.environ.get(name, 0)) for name in ("LOCAL_RANK", "LOCAL_WORLD_SIZE"))
        devices = torch.cuda.device_count() if cuda else 0
        backend = "nccl" if devices >= max(1, neighbours) and dist.is_nccl_available() else "gloo"
        device = f"cuda:{local % devices}" if devices else device
        try:
            dist.init_process_group(
                backend, timeout=_TIMEOUT, device_id=torch.device(device) if backend == "nccl" and device else None
            )
        except (RuntimeError, ValueError) as error:
            reason = " ".join(str(error).split())[:160]
            raise RankError(f"the ranks did not find each other ({reason}): start all of them again") from None
        return cls(dist.get_rank(), dist.get_world_size(), device, backend)

    def gather(self, numbers: Sequence[int]) -> list[list[int]]:
        """Exchange numbers of 4 bytes, equally many from every rank. RankError if one has ended."""
        sent = torch.tensor(numbers, dtype=torch.int32, device=self.device if self.backend == "nccl" else "cpu")
        received = sent.new_empty(self.count, len(numbers))
        try:
            work = dist.all_gather([*received], sent, async_op=True)
            if self.backend == "nccl":
                self._wait(work)  # `work.wait` returns before the work is done, and would never raise an error
            work.wait()
        except RuntimeError:
            raise RankError(_LOST) from None
        self.received += received.nbytes
        rows: list[list[int]] = received.tolist()
        return rows

    def leave(self) -> None:
        """Close this rank's connections."""
        if dist.is_initialized():
            dist.destroy_process_group()

    def _wait(self, work: dist.Work) -> None:
        give_up = time.monotonic() + _TIMEOUT.total_seconds()
        while not work.is_completed():
            if time.monotonic() > give_up:
                raise RankError(_LOST)
