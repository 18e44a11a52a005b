"""What the processes of test_parallel.py are forked from: everything that a rank needs, imported and made once."""

from __future__ import annotations

import torch

from tests.rank_worker import machine

torch.set_num_threads(1)  # a pool of threads would not survive the fork
machine("float32")
machine("bfloat16")
