"""Writes a Space into a folder."""

from __future__ import annotations

import shutil
from pathlib import Path

from .folder import renew
from .forms import ROOT, Form, readme, requirements, tracked_files


def write_space(form: Form, out: Path) -> None:
    """Write a folder that is a Space of this form."""
    if form.sdk == "static":
        from .static_site import write_site

        write_site(out)
    else:
        names = tracked_files()
        renew(out)
        for name in names:
            (out / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(ROOT / name, out / name)
        (out / "requirements.txt").write_text(requirements(form), encoding="utf-8")
    (out / "README.md").write_text(readme(form), encoding="utf-8")
