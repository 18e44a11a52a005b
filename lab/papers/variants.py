"""Loads the engines that ablations compare: each differs in one trained or built part."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

from decoding.engine import Engine
from decoding.errors import ParamError
from decoding.loader import load
from decoding.model.session import ProgressCallback
from decoding.model.split import AnyDecoder
from decoding.parts import MethodPart, Parts

from .experiment import Variant

_MOST = 32  # adapters of a folder
_SHARES = {"a sixteenth": 16, "a quarter": 4, "all": 1}  # of a text, as what it is divided by


def load_adapters(engine: Engine, folder: Path) -> dict[str, Variant]:
    """Load a variant for every adapter in a folder of folders."""
    from decoding.parts.adapter_files import load_adapter

    model, variants = _decoder(engine), dict[str, Variant]()
    for place in _folders(folder, "--kangaroo-variants", "adapters"):
        adapter = load_adapter(str(place), model)
        facts = {"exit_layer": adapter.layer, "architecture": adapter.config.architecture}
        variants[f"kangaroo {place.name}"] = Variant("kangaroo", _with(engine, "kangaroo", adapter), facts)
    return variants


def load_drafters(engine: Engine, folder: Path) -> dict[str, Variant]:
    """Load a variant for every EAGLE-3 drafter in a folder of folders."""
    from decoding.parts.eagle_files import load_eagle

    from ..training.eagle_folder import learnt_guesses

    model, variants = _decoder(engine), dict[str, Variant]()
    for place in _folders(folder, "--eagle-variants", "drafters"):
        drafter = load_eagle(str(place), model)
        facts = {"tapped layers": len(drafter.layers), "guesses learnt": learnt_guesses(place)}
        variants[f"eagle {place.name}"] = Variant("eagle", _with(engine, "eagle", drafter), facts)
    return variants


def _decoder(engine: Engine) -> AnyDecoder:
    if not isinstance(engine.model, AnyDecoder):
        raise ParamError(f"{engine.model.card.name} is a table, which has no place for adapters: leave them out")
    return engine.model


def _folders(folder: Path, flag: str, what: str) -> list[Path]:
    if not folder.is_dir():
        raise ParamError(f"{flag} must name a folder of folders, not {str(folder)[:200]!r}")
    places = sorted(path.parent for path in folder.glob("*/config.json"))
    if not 0 < len(places) <= _MOST:
        raise ParamError(f"{str(folder)[:200]!r} holds {len(places)} {what}: {flag} takes 1 to {_MOST}")
    return places


def load_medusa_2(engine: Engine, folder: Path, progress: ProgressCallback) -> dict[str, Variant]:
    """Load Medusa-2: the model that learnt together with its heads, and those; computed like the engine's model."""
    if not (folder / "backbone").is_dir():
        raise ParamError(f"--medusa-2 must name what `train medusa` made with the model, not {str(folder)[:200]!r}")
    device, dtype = ",".join(map(str, engine.model.devices)), engine.model.precision
    both = load(str(folder / "backbone"), medusa=str(folder), device=device, dtype=dtype, progress=progress)
    return {"medusa-2": Variant("medusa-2", both, {})}


def build_stores(engine: Engine, text: Path, progress: ProgressCallback) -> dict[str, Variant]:
    """Build datastores of growing shares of a text, one document a line."""
    from decoding.parts.datastore import fingerprint, load_store

    from ..training.datastore import build_store

    documents = text.read_text(encoding="utf-8").splitlines(keepends=True)
    stores = {}
    with TemporaryDirectory() as folder:  # an open store no longer needs its file's name
        for name, part in _SHARES.items():
            progress(f"building datastores: {name}", 1 / (1 + part))
            source, out = Path(folder) / f"{part}.jsonl", Path(folder) / f"{part}.safetensors"
            source.write_text("".join(documents[: len(documents) // part]), encoding="utf-8")
            build_store([source], engine.codec, out)
            store = load_store(out, fingerprint(engine.codec), engine.model.card.vocabulary)
            stores[name] = Variant("datastore", _with(engine, "datastore", store), {})
    return stores


def _with(engine: Engine, name: str, part: MethodPart) -> Engine:
    return Engine(engine.model, engine.codec, engine.draft, Parts({name: lambda progress: part}))
