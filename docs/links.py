"""Makes one site of the Markdown files that GitHub shows: files outside of docs/ that pages link to are part of it."""

from __future__ import annotations

import posixpath
import re
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files, InclusionLevel

ROOT = Path(__file__).parents[1]
ELSEWHERE = "project"
"""The folder of the site for files that are not in docs/."""
LINK = re.compile(r"(?<=\]\()(?!https?://|#|mailto:)([^)#\s]+)")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the files that pages link to, and those that these link to."""
    unread = [file for file in files if file.is_documentation_page()]
    while unread:
        page = unread.pop()
        for link in LINK.findall(page.content_string):
            path = posixpath.normpath(posixpath.join(posixpath.dirname(_in_project(page.src_uri)), link))
            if (ROOT / path).is_file() and files.get_file_from_path(_in_site(path)) is None:
                content = (ROOT / path).read_bytes()
                added = File.generated(config, _in_site(path), content=content, inclusion=InclusionLevel.NOT_IN_NAV)
                files.append(added)
                if added.is_documentation_page():
                    unread.append(added)
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Replace the paths of the project by those of the site."""
    here = page.file.src_uri
    folder = posixpath.dirname(_in_project(here))

    def moved(found: re.Match[str]) -> str:
        path = posixpath.normpath(posixpath.join(folder, found[1]))
        return posixpath.relpath(_in_site(path), posixpath.dirname(here) or ".")

    return LINK.sub(moved, markdown)


def _in_site(path: str) -> str:
    """Where a file of the project is in the site: docs/ is its root, and the rest is in its own folder."""
    return path.removeprefix("docs/") if path.startswith("docs/") else f"{ELSEWHERE}/{path}"


def _in_project(path: str) -> str:
    """Where a file of the site is in the project."""
    return path.removeprefix(f"{ELSEWHERE}/") if path.startswith(f"{ELSEWHERE}/") else f"docs/{path}"
