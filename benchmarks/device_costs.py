"""Write the costs by which a race plays passes: c(T) as measured on a named device, from a file in assets/costs/.

python -m benchmarks.gpu --shapes 7B --models none --nodes 1,2,4,8,16,32,64,96,128 --costs assets/costs/nvidia-h200.json
python -m benchmarks.device_costs assets/costs/nvidia-h200.json
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from decoding.packed import ASSETS

SCRIPT = ASSETS / "player" / "race" / "measured.js"
SHAPE = "7B"  # large enough that a GPU is kept busy, which the recorded models are not


def script(measured: dict[str, Any]) -> str:
    """Write the JavaScript with the costs of one shape, after the shortest measured text."""
    costs = min((each for each in measured["shapes"] if each["shape"] == SHAPE), key=lambda each: each["context"])
    facts = {"device": measured["device"], "date": measured["date"], **costs}
    lines = "".join(f"  {name}: {json.dumps(value)},\n" for name, value in facts.items())
    return (
        "// The measured costs of passes on a device: written by benchmarks/device_costs.py from assets/costs/.\n"
        f"export const MEASURED = {{\n{lines}}};\n"
    )


def main() -> None:
    """Write the module."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.device_costs", description="Write what the race plays.")
    parser.add_argument("file", type=Path, help="of assets/costs/")
    measured = json.loads(parser.parse_args().file.read_text(encoding="utf-8"))
    SCRIPT.write_text(script(measured), encoding="utf-8")


if __name__ == "__main__":
    main()
