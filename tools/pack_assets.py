"""Pack the weights in assets/ that no other program reads directly: `make parts` does so at its end.

python -m tools.pack_assets
python -m tools.pack_assets --unpack assets/pocket/eagle --out drafter
"""

from __future__ import annotations

import argparse
import json
import lzma
import sys
import zlib
from collections.abc import Sequence
from hashlib import sha256
from itertools import product
from pathlib import Path

import numpy as np

from analysis.plain_folder import unpack_folder
from decoding.packed import ASSETS, SUFFIX, stored, unpack

PACKED = (  # pocket's target and drafter are left out, since README shows them to transformers
    "pocket/datastore.safetensors",
    "pocket/eagle/*.safetensors",
    "pocket/dflash/*.safetensors",
    "pocket/kangaroo/*.safetensors",
    "pocket/medusa/*.safetensors",
    "pocket/medusa-2/**/*.safetensors",
    "samples/slow-drafter/*.safetensors",
    "smollm2/**/*.safetensors",
    "smollm2/conversations.jsonl",
)
BASES = {
    **{
        f"pocket/medusa-2/backbone/{name}": f"pocket/target/{name}"
        for name in ("model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors")
    },
    "samples/slow-drafter/model.safetensors": "pocket/eagle/model.safetensors",
}
_WORTH_XZ = 0.95  # of zlib's size: it is several times as slow to read


def pack(content: bytes, base: str | None = None, start: bytes = b"") -> bytes:
    """Pack a file; `start` are the bytes of the base."""
    numbers = np.frombuffer(content + bytes(len(content) % 2), "<u2")
    if base is not None:
        numbers = numbers - np.frombuffer(start + bytes(len(start) % 2), "<u2")
        numbers = (numbers << 1) ^ (0 - (numbers >> 15))  # zigzag: small differences of both signs are small numbers
    whole = numbers.astype("<u2").tobytes()
    ways = [[_compress(whole)], [_compress(whole[1::2]), _compress(whole[::2])]]
    chosen = min(ways, key=lambda parts: sum(len(data) for _, data in parts))
    parts, end = list[tuple[str, int, int]](), 0
    for codec, data in chosen:
        parts.append((codec, end, end + len(data)))
        end += len(data)
    facts = {"bytes": len(content), "sha256": sha256(content).hexdigest(), "base": base, "parts": parts}
    return json.dumps(facts).encode() + b"\n" + b"".join(data for _, data in chosen)


def _compress(data: bytes) -> tuple[str, bytes]:
    """Compress with the shortest result: Huffman codes alone suit the exponents of weights, matches repeated bytes."""
    tried = []
    for level, strategy in product((0, 9), (zlib.Z_DEFAULT_STRATEGY, zlib.Z_HUFFMAN_ONLY)):
        encoder = zlib.compressobj(level, zlib.DEFLATED, 15, 9, strategy)
        tried.append(encoder.compress(data) + encoder.flush())
    best, xz = min(tried, key=len), lzma.compress(data)
    return ("xz", xz) if len(xz) < _WORTH_XZ * len(best) else ("zlib", best)


def pack_assets(assets: Path) -> None:
    """Replace all plain files that `PACKED` names by packed ones."""
    plain = [path for pattern in PACKED for path in assets.glob(pattern)]
    for path in plain:
        base = BASES.get(path.relative_to(assets).as_posix())
        start = b"" if base is None else _read(assets / base)
        path.with_name(path.name + SUFFIX).write_bytes(pack(path.read_bytes(), base, start))
    for path in plain:  # now that none is a base any more
        path.unlink()


def _read(path: Path) -> bytes:
    file = stored(path)
    return unpack(file) if file.suffix == SUFFIX else file.read_bytes()


def main(argv: Sequence[str] | None = None) -> int:
    """Pack the assets, or unpack a folder of them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--unpack", type=Path, metavar="FOLDER", help="copy this folder for another program instead")
    parser.add_argument("--out", type=Path, metavar="FOLDER", help="where to")
    given = parser.parse_args(argv)
    if (given.unpack is None) != (given.out is None):
        parser.error("--unpack and --out go together")
    if given.unpack is not None:
        given.out.mkdir(parents=True, exist_ok=True)
        unpack_folder(given.unpack, given.out)
        print(f"{given.out} holds: {', '.join(sorted(file.name for file in given.out.iterdir()))}")
    else:
        pack_assets(ASSETS)
    return 0


if __name__ == "__main__":
    sys.exit(main())
