"""The processes of a run that several devices or hosts share: how they find each other, and what they exchange.

    torchrun --nproc-per-node 2 -m decoding run --parallel ...

Every process is a *rank*, numbered from 0. torchrun starts them, on one host or on several, and tells each its number
by environment variables; any other launcher that sets the same ones will do. On CUDA, where every rank has a device of
its own, they talk through NCCL, else through Gloo. What they exchange has come to the host by then, so NCCL takes it to
the device and back, for which the host waits a second time.

Gloo notices at once that a process has ended, since its connections close. NCCL does so between hosts; on one host it
is torchrun that ends the other processes. A process that hangs is given up after `_PATIENCE`.
"""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from datetime import timedelta

import torch
import torch.distributed as dist

from .errors import ParamError, RankError

_PATIENCE = timedelta(minutes=10)  # a rank may still load its model, or read a long prompt
_VARIABLES = ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")
_LOST = "another rank of this run has ended or cannot be reached: see what it said, then start all ranks again"
START = "torchrun --nproc-per-node 2 -m decoding run --parallel"


class Ranks:
    """This process among those of its run."""

    def __init__(self, rank: int, count: int, device: str | None, backend: str) -> None:
        self.rank, self.count, self.device, self.backend = rank, count, device, backend
        self.received = 0  # bytes that `gather` has brought every rank, its own ones included

    @classmethod
    def join(cls, device: str | None = None) -> Ranks:
        """Meet the other processes, as the environment says; `device` is where the model shall be, None: the best."""
        if missing := [name for name in _VARIABLES if name not in os.environ]:
            raise ParamError(f"--parallel needs a process for every rank ({missing[0]} is not set): begin with {START}")
        cuda = device in (None, "cuda") and torch.cuda.is_available()
        local, neighbours = (int(os.environ.get(name, 0)) for name in ("LOCAL_RANK", "LOCAL_WORLD_SIZE"))
        devices = torch.cuda.device_count() if cuda else 0
        backend = "nccl" if devices >= max(1, neighbours) and dist.is_nccl_available() else "gloo"
        place = f"cuda:{local % devices}" if devices else device
        try:
            dist.init_process_group(
                backend,
                timeout=_PATIENCE,
                device_id=torch.device(place) if backend == "nccl" and place else None,
            )
        except (RuntimeError, ValueError) as error:
            reason = " ".join(str(error).split())[:160]
            raise RankError(f"the ranks did not find each other ({reason}): start all of them again") from None
        return cls(dist.get_rank(), dist.get_world_size(), place, backend)

    def gather(self, numbers: Sequence[int]) -> list[list[int]]:
        """The numbers of every rank, 4 bytes each; all ranks give equally many. RankError if one has ended."""
        mine = torch.tensor(numbers, dtype=torch.int32, device=self.device if self.backend == "nccl" else "cpu")
        everybody = mine.new_empty(self.count, len(numbers))
        try:
            work = dist.all_gather([*everybody], mine, async_op=True)
            if self.backend == "nccl":
                self._wait(work)  # its own wait returns before the work is done, and would never see an error
            work.wait()
        except RuntimeError:
            raise RankError(_LOST) from None
        self.received += everybody.nbytes
        rows: list[list[int]] = everybody.tolist()
        return rows

    def leave(self) -> None:
        """Close the connections; the other ranks may still need theirs."""
        if dist.is_initialized():
            dist.destroy_process_group()

    def _wait(self, work: dist.Work) -> None:
        give_up = time.monotonic() + _PATIENCE.total_seconds()
        while not work.is_completed():
            if time.monotonic() > give_up:
                raise RankError(_LOST)
