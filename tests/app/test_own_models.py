"""Models that visitors bring: none without the owner's flag or outside the owner's folder, and no path in an answer."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from app.__main__ import main
from app.models.catalog import POCKET
from app.models.entry import CatalogEntry
from app.models.model_pool import ModelPool, without_paths
from app.models.own_models import OwnModels
from app.pages.own import OwnForm
from app.server.limits import LIMITS
from app.server.middleware.bodies import Shapes
from app.state import AppState
from app.ui import LaunchOptions, build, make_state
from decoding.errors import ModelError, ParamError
from tests.event_loops import discard_event_loops
from tests.families import tiny

pytestmark = pytest.mark.filterwarnings("ignore::ResourceWarning")  # of the event loops that Gradio leaves behind
COMMIT = "0123456789" * 4


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """The owner's folder, beside one that nobody may name."""
    tiny("llama").save_pretrained(tmp_path / "root" / "mine" / "llama")
    (tmp_path / "secret").mkdir()
    (tmp_path / "secret" / "config.json").write_text("{}")
    (tmp_path / "root" / "out").symlink_to(tmp_path / "secret")
    (tmp_path / "root" / "mine" / "notes.gguf").write_bytes(b"nonsense")
    return tmp_path / "root"


def test_folders_hub_ids_and_models_of_the_page_make_entries(root: Path) -> None:
    """What is named is in the catalog under a name of its own, with its commit."""
    catalog = {"pocket": POCKET}
    models = OwnModels(root, catalog)
    first = models.add({"model": "mine/llama", "draft": f"org/small@{COMMIT}", "medusa": "", "eagle": None})
    folder = str((root / "mine" / "llama").resolve())
    assert first == CatalogEntry("own 1 llama", folder, draft="org/small", draft_revision=COMMIT, brought=True)
    second = models.add({"model": f"org/model@{COMMIT}", "eagle": f"org/drafter@{COMMIT}"})
    assert (second.model, second.revision, second.part_places) == (
        "org/model",
        COMMIT,
        {"eagle": f"org/drafter@{COMMIT}"},
    )
    third = models.add({"model": "pocket", "draft": "mine/llama"})
    assert (third.name, third.model, third.draft) == ("own 3 pocket", "pocket", folder)
    assert list(catalog) == ["pocket", first.name, second.name, third.name] and catalog["pocket"] is POCKET
    models.drop(second)
    assert second.name not in catalog


@pytest.mark.parametrize(
    ("place", "reason"),
    [
        ("../secret", "no hub id"),
        ("mine/../../secret", "no hub id"),
        ("../root/mine/llama", "no hub id"),
        ("mine/../mine/llama", "no hub id"),
        ("out", "no hub id"),
        ("out/config.json", "must name its commit"),
        ("/etc", "no hub id"),
        ("~", "no hub id"),
        (".", "no hub id"),
        ("mine/nothing", "must name its commit"),
        ("org/model", "must name its commit"),
        ("org/model@main", "must name its commit"),
        (f"../x@{COMMIT}", "no hub id"),
        ("gpt2", "no hub id"),
        ("a\0b", "printable"),
        ("a\nb", "printable"),
        ("x" * 5000, "up to 200"),
        (["mine/llama"], "printable"),
        (7, "printable"),
        ({"a": "b"}, "printable"),
        ("   ", "printable"),
        ("", "name a target"),
        (None, "name a target"),
    ],
)
def test_what_is_not_in_the_folder_is_refused(root: Path, place: object, reason: str) -> None:
    """A visitor could read the server's other files, or learn which of them exist."""
    catalog = {"pocket": POCKET}
    with pytest.raises(ParamError, match=reason) as caught:
        OwnModels(root, catalog).add({"model": place})
    assert "secret" not in str(caught.value) or "secret" in str(place)
    assert str(root.parent) not in str(caught.value) and len(str(caught.value)) < 300
    assert list(catalog) == ["pocket"]


def test_an_absolute_path_back_into_the_folder_is_refused(root: Path) -> None:
    """Whoever found the right one would know where the folder is."""
    with pytest.raises(ParamError, match="no hub id"):
        OwnModels(root, {}).add({"model": str(root / "mine" / "llama")})


@pytest.mark.parametrize("part", ["model", "draft", "datastore"])
@pytest.mark.parametrize("kind", ["link", "link below", "link of a folder", "broken link", "pipe"])
def test_files_that_are_elsewhere_are_refused(root: Path, part: str, kind: str) -> None:
    """A link in a model's folder would have the server read any file for a visitor; a pipe would never end."""
    folder, secret = root / "mine" / "llama", root.parent / "secret"
    (folder / "below").mkdir()
    if kind == "pipe":
        os.mkfifo(folder / "tokenizer.json")
    else:
        name = "below/tokenizer.json" if kind == "link below" else "tokenizer.json"
        to = {"link of a folder": secret, "broken link": secret / "nothing"}.get(kind, secret / "config.json")
        (folder / name).symlink_to(to)
    with pytest.raises(ParamError, match=r"'tokenizer\.json' in the .*'s folder is no file, or a link") as caught:
        OwnModels(root, {"pocket": POCKET}).add({"model": "pocket", part: "mine/llama"})
    assert "secret" not in str(caught.value)


def test_links_within_the_owners_folder_are_followed(root: Path) -> None:
    """The hub's cache is made of them."""
    folder = root / "mine" / "llama"
    (folder / "config.json").rename(root / "blob")
    (folder / "config.json").symlink_to(root / "blob")
    assert OwnModels(root, {}).add({"model": "mine/llama"}).model == str(folder.resolve())


def test_what_lies_outside_looks_like_what_is_not_there(root: Path) -> None:
    """Two sentences would tell a visitor which folders the server has."""
    models, sentences = OwnModels(root, {}), set[str]()
    for place in ("../secret", "../nothing"):
        with pytest.raises(ParamError) as caught:
            models.add({"model": place})
        sentences.add(str(caught.value).replace(place, ""))
    assert len(sentences) == 1


def test_a_page_holds_only_so_many(root: Path) -> None:
    """A catalog that grows with every press would fill the memory and the menu."""
    catalog: dict[str, CatalogEntry] = {}
    models = OwnModels(root, catalog)
    for _ in range(LIMITS.own_models):
        models.add({"model": "mine/llama"})
    with pytest.raises(ParamError, match="start it again"):
        models.add({"model": "mine/llama"})
    assert len(catalog) == LIMITS.own_models


def test_who_brought_a_model_is_told_why_it_fails(root: Path) -> None:
    """The reason is theirs to mend, the folder's place is not theirs to know."""
    models = OwnModels(root, catalog := {"pocket": POCKET})
    entry = models.add({"model": "mine/notes.gguf"})
    with pytest.raises(ModelError, match="notes.gguf.* is no GGUF file") as caught:
        ModelPool(catalog).request(entry).wait(60)
    assert str(root.parent) not in str(caught.value)


@pytest.mark.parametrize(
    ("sentence", "shown"),
    [
        ("'/home/me/my models/x' is no folder; name org/model", "'x' is no folder; name org/model"),
        ("read /srv/a/b.json: no", "read b.json: no"),
        ('"/a/b c/d" and (/e/f)', '"d" and (f)'),
        ("~/models/x is gone", "x is gone"),
        (f"org/model@{COMMIT} at 3/4", f"org/model@{COMMIT} at 3/4"),
    ],
)
def test_paths_are_cut_to_their_last_part(sentence: str, shown: str) -> None:
    """Hub ids and fractions stay."""
    assert without_paths(sentence) == shown


def form_of(root: Path) -> tuple[OwnForm, AppState]:
    """The form alone, without a page around it."""
    import gradio as gr

    app_state = AppState({"pocket": POCKET}, "pocket", own_root=root)
    assert app_state.own_models is not None
    with gr.Blocks():
        made = OwnForm(app_state, app_state.own_models)
    discard_event_loops()
    return made, app_state


def test_the_form_loads_a_model_and_offers_it(root: Path) -> None:
    """The last update puts the model into both menus; one that fails is taken out of the catalog again."""
    form, app_state = form_of(root)
    *_, (said, menu, race_menu) = form.load("mine/llama", None, "", "", "", "", "")
    assert said["value"] == "Own 1 llama is loaded, and chosen above."
    assert menu["choices"] == race_menu["choices"] == ["pocket", "own 1 llama"] and menu["value"] == "own 1 llama"
    *_, (said, menu, _) = form.load("mine/llama", None, "mine/llama", "", "", "", "")
    assert "no weight of a Medusa head" in said["value"] and str(root.parent) not in said["value"]
    assert list(app_state.catalog) == ["pocket", "own 1 llama"] and "choices" not in menu
    *_, (said, _, _) = form.load("<img src=x>[a](b)", *[""] * 6)
    assert "\\<img src=x\\>\\[a\\]\\(b\\)" in said["value"]


def owned(root: Path | None) -> tuple[int, list[bool]]:
    """How many parts of a built page are the form's, and whether the request filter lets each of its events run."""
    page = build(make_state(LaunchOptions(own_root=root)))
    discard_event_loops()
    ids = [block.elem_id for block in page.blocks.values() if str(getattr(block, "elem_id", "")).startswith("own")]
    events = [n for n, fn in page.fns.items() if getattr(fn.fn, "__qualname__", "").startswith("OwnForm")]
    return len(ids), [n in Shapes.of(page).runs for n in events]


def test_without_the_flag_there_is_no_form_and_no_event(tmp_path: Path) -> None:
    """The request filter passes on what the built page has: an event that does not exist cannot be sent."""
    assert owned(None) == (0, []) and owned(tmp_path) == (10, [True])


def test_the_flag_names_a_folder(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A mistyped folder must not open the working folder instead."""
    assert main(["--bring-your-own", str(tmp_path / "nothing"), "--port", "7999"]) == 2
    assert "--bring-your-own names no folder" in capsys.readouterr().err
    (tmp_path / "file").write_text("x")
    with pytest.raises(ParamError, match="names no folder"):
        OwnModels(tmp_path / "file", {})
