"""`space`: makes a Hugging Face Space of this checkout, and uploads it."""

from __future__ import annotations

import argparse
from pathlib import Path

from app.hosting.folder import MARK, folder_bytes
from app.hosting.forms import FORMS, Form
from app.hosting.space import write_space
from decoding.errors import ParamError
from decoding.hub import parse_id

from .arguments import clean

HELP = "write this page as a folder that is a Hugging Face Space, and upload it"
EXAMPLE = "python -m decoding space --form static --to USER/NAME --push"


def add_flags(parser: argparse.ArgumentParser) -> None:
    """Add the command's flags."""
    parser.add_argument(
        "--form",
        choices=FORMS,
        default="cpu",
        help="what the Space runs on: a processor, a GPU of its own, GPUs shared by all ZeroGPU Spaces, or nothing, as "
        "plain files that replay recorded runs (default: %(default)s)",
    )
    parser.add_argument("--out", metavar="FOLDER", default="space", help="folder to write (default: %(default)s)")
    parser.add_argument("--to", metavar="USER/NAME", help="the Space to upload to, which is created if it is missing")
    parser.add_argument("--push", action="store_true", help="upload the folder, and delete what else the Space holds")


def main(arguments: argparse.Namespace) -> int:
    """Write the folder, and upload it if asked to."""
    form, out, to = FORMS[arguments.form], Path(clean(arguments.out)), _space(arguments.to)
    token = None
    if arguments.push:
        if to is None:
            raise ParamError("name the Space to upload to: --to USER/NAME")
        token = _token()
    write_space(form, out)
    print(f"{out}: {folder_bytes(out) / 1e6:.1f} MB, a Space of the form {arguments.form}")
    if to is None or token is None:
        print(f"To upload it: python -m decoding space --form {arguments.form} --to {to or 'USER/NAME'} --push")
    else:
        print(f"Uploaded to {_upload(form, out, to, token)}")
        if form.hardware and not form.is_free:
            print(f"It runs on the hardware that its settings name; {form.hardware} is suggested.")
    return 0


def _space(name: str | None) -> str | None:
    hub_id = None if name is None else parse_id(name, owned=True)
    if name is not None and (hub_id is None or hub_id.revision is not None):
        raise ParamError(f"--to must be USER/NAME, not {name[:100]!r}")
    return name


def _token() -> str:
    from huggingface_hub import get_token

    token: str | None = get_token()
    if token is None:
        raise ParamError(
            "the hub does not know you: make a token that may write at https://huggingface.co/settings/tokens, and "
            "sign in with it by `hf auth login`, or put it into HF_TOKEN"
        )
    return token


def _upload(form: Form, out: Path, to: str, token: str) -> str:
    """Create the Space if it is missing, and make its content that of the folder; returns its address."""
    from huggingface_hub import HfApi

    api = HfApi(token=token)
    try:
        hardware = form.hardware if form.is_free else None
        api.create_repo(to, repo_type="space", space_sdk=form.sdk, space_hardware=hardware, exist_ok=True)
        api.upload_folder(
            repo_id=to,
            repo_type="space",
            folder_path=out,
            ignore_patterns=[MARK],
            delete_patterns=["*"],
            commit_message="Upload Specscope",
        )
    except Exception as error:  # the hub's client passes on the errors of several network libraries
        reason = " ".join(str(error).split())[:300]
        raise ParamError(f"the Space {to} could not be uploaded ({reason}): {out} holds it, for another try") from None
    return f"https://huggingface.co/spaces/{to}"
