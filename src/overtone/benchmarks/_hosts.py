"""The hosts of releases: a dataset hub, and repositories on GitHub. A host lists its files and downloads single files.
An interrupted download is resumed, and a file with a wrong digest is deleted.

`huggingface_hub` (the extra `fetch`) lists the hub's files and makes every HTTP request. Its download functions do not
check digests and delete a partial file when the command ends, so the bytes are written and verified here.
"""

from __future__ import annotations

import hashlib
import os
import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import quote

import msgspec
from msgspec import Struct

from overtone.errors import DataError, MissingExtra, install_line
from overtone.paths import shown
from overtone.safety import check_key_route, read_key
from overtone.spec import check_url

_ATTEMPTS = 5
_MAX_LISTS = 2_000
_CHUNK = 1 << 18
_TIMEOUT = 60.0  # seconds without a byte


class Remote(Struct, frozen=True):
    """One file of a release: its path in the repository, its size, and the expected digest."""

    path: str
    size: int
    digest: str
    large: bool = False  # digest is a SHA-256 of the bytes; otherwise git's SHA-1 of a blob


class Host:
    """The base class of hosts. A subclass lists the files at `endpoint` and returns the URL of each."""

    token_name = ""  # environment variable with a token, which is sent to `endpoint` only
    endpoint_name = ""  # environment variable with another URL to use
    home = ""  # the default URL
    newest = ""  # the default revision

    def __init__(self, repo: str, revision: str, pause: float) -> None:
        try:
            import huggingface_hub  # noqa: F401  (a fast import: its parts are loaded when they are used)
        except ModuleNotFoundError:
            raise MissingExtra(f"huggingface_hub is not installed; run: {install_line('fetch')}") from None
        self.repo, self.pause, self.revision = repo, pause, revision or self.newest
        self.endpoint = _base_url(self.endpoint_name, self.home)
        self.token = read_key(self.token_name)
        if self.token:
            check_key_route(self.endpoint, self.token_name)

    def files(self) -> list[Remote]:
        """Return every file of the revision. Raises DataError if the host does not return a list of files."""
        from huggingface_hub.errors import HTTPError
        from huggingface_hub.utils import get_session

        try:
            get_session().head(self.endpoint, timeout=_TIMEOUT)  # fails at once without network; listing retries
            return [self._checked(file) for file in self._list()]
        except (HTTPError, OSError) as error:
            raise self._refusal(error, self.repo) or self._unreachable(error) from None
        except (AttributeError, KeyError, TypeError, ValueError, RecursionError, msgspec.MsgspecError) as error:
            raise DataError(f"{self.endpoint}: not a file list ({error!r}); check {self.endpoint_name}") from None

    def _list(self) -> list[Remote]:
        raise NotImplementedError

    def source(self, file: Remote) -> tuple[str, dict[str, str]]:
        """Return the URL of the file's bytes and the headers that a request for them needs."""
        raise NotImplementedError

    def authorization(self) -> dict[str, str]:
        """Return the header with the token, or {} without a token. It is not sent on a redirect to another host."""
        return {"Authorization": f"Bearer {self.token}"} if self.token else {}

    def download(self, file: Remote, target: Path, report: Callable[[int], None]) -> None:
        """Download one file to `NAME.part`, then rename it; a later attempt or command resumes the part. `report` gets
        the number of bytes so far. Raises DataError, and OSError if the file cannot be written."""
        from huggingface_hub.errors import HTTPError

        part = target.with_name(target.name + ".part")
        target.parent.mkdir(parents=True, exist_ok=True)
        reason, failed, most = "", 0, 0  # failed: attempts in a row without progress; most: bytes of the longest part
        while failed < _ATTEMPTS:
            have = part.stat().st_size if part.exists() else 0
            most = max(most, have)
            report(have)
            try:
                self._receive(file, part, have, report)
            except (HTTPError, OSError) as error:
                if getattr(error, "errno", None):  # an error of the disk, not of the host
                    raise
                if refusal := self._refusal(error, file.path):
                    raise refusal from None
                if _answer(error)[0] == 416:  # the part belongs to another file
                    part.unlink()
                reason, wait = str(error) or type(error).__name__, self._wait(error, failed)
                have = part.stat().st_size if part.exists() else 0
                failed, most = (0, have) if have > most else (failed + 1, most)
            else:
                if is_whole(part, file):
                    part.replace(target)
                    return
                part.unlink()
                reason, wait = "the bytes do not have the digest that the host lists", self.pause
                failed += 1
            time.sleep(wait)
        raise DataError(
            f"{shown(file.path)}: {_ATTEMPTS} attempts failed, the last because {shown(reason)}; "
            "run the same command again to resume"
        )

    def _receive(self, file: Remote, part: Path, have: int, report: Callable[[int], None]) -> None:
        """Download the bytes after the first `have` and append them to `part`. A part that already has the full size is
        not changed; it is verified later."""
        from huggingface_hub.utils import get_session, hf_raise_for_status

        if have == file.size:
            part.touch()
            return
        url, headers = self.source(file)
        headers |= {"Accept-Encoding": "identity"}  # the size of a compressed body would differ
        if 0 < have < file.size:
            headers["Range"] = f"bytes={have}-"
        with get_session().stream("GET", url, headers=headers, timeout=_TIMEOUT) as answer:
            hf_raise_for_status(answer)
            if not answer.headers.get("Content-Range", "").startswith(f"bytes {have}-"):
                have = 0  # the host sends the whole file
            with part.open("r+b" if have else "wb") as sink:
                sink.seek(have)
                for chunk in answer.iter_bytes(_CHUNK):
                    have += len(chunk)
                    if have > file.size:
                        raise DataError(f"{shown(file.path)}: the host sends more than the {file.size} bytes it listed")
                    sink.write(chunk)
                    report(have)
        if have < file.size:
            raise ConnectionError(f"the answer ended after {have} of {file.size} bytes")

    def _wait(self, error: Exception, failed: int) -> float:
        """Return the seconds to wait before the next attempt: the host's Retry-After, or twice as long each time."""
        retry_after = _answer(error)[1].get("Retry-After", "")
        return min(60.0, float(retry_after)) if retry_after.isdecimal() else self.pause * 2**failed

    def _refusal(self, error: Exception, what: str) -> DataError | None:
        """Return the error to raise if another attempt cannot help; None if it can."""
        status, _ = _answer(error)
        if status in (401, 403):
            return DataError(
                f"{shown(what)}: {self.endpoint} answers {status}; set {self.token_name} to a token that has access"
            )
        if status == 404:
            return DataError(f"{shown(what)}: {self.endpoint} does not have it at {self.revision}; check --revision")
        return None

    def _unreachable(self, error: Exception) -> DataError:
        status, _ = _answer(error)
        if status:
            return DataError(f"{self.repo}: {self.endpoint} answers {status}; run the same command again later")
        return DataError(
            f"network unreachable: {shown(str(error))}; copy the folder from a machine with network and pass "
            f"--data DIR, or set {self.endpoint_name} to a mirror you can reach"
        )

    def _checked(self, file: Remote) -> Remote:
        digest = r"[0-9a-f]{64}" if file.large else r"[0-9a-f]{40}"
        if not isinstance(file.path, str) or file.size < 0 or not re.fullmatch(digest, file.digest):
            raise DataError(
                f"{shown(str(file.path))}: the file list gives no usable size and digest; check {self.endpoint_name}"
            )
        return file


class Hub(Host):
    """A dataset on the hub."""

    token_name, endpoint_name = "HF_TOKEN", "HF_ENDPOINT"
    home, newest = "https://huggingface.co", "main"

    def _list(self) -> list[Remote]:
        from huggingface_hub import HfApi
        from huggingface_hub.hf_api import RepoFile

        api = HfApi(self.endpoint, token=self.token or False)  # False: no token from a file in the home folder
        tree = api.list_repo_tree(self.repo, recursive=True, revision=self.revision, repo_type="dataset")
        return [_of_hub(entry) for entry in tree if isinstance(entry, RepoFile)]

    def source(self, file: Remote) -> tuple[str, dict[str, str]]:
        from huggingface_hub import hf_hub_url

        url = hf_hub_url(self.repo, file.path, repo_type="dataset", revision=self.revision, endpoint=self.endpoint)
        return url, self.authorization()


def _of_hub(entry: Any) -> Remote:
    if entry.lfs is None:
        return Remote(entry.path, entry.size, entry.blob_id)
    return Remote(entry.path, entry.lfs.size, entry.lfs.sha256.removeprefix("sha256:"), large=True)


class _Leaf(Struct):
    path: str
    type: str
    sha: str
    mode: str = ""
    size: int = 0


class _Tree(Struct):
    tree: list[_Leaf]
    truncated: bool = False


class GitHub(Host):
    """A repository's files, listed by GitHub's API and downloaded from the host of raw files. The token is sent to the
    API only, because the host of raw files is another host and needs no token for public files."""

    token_name, endpoint_name = "GITHUB_TOKEN", "GITHUB_ENDPOINT"
    home, newest = "https://api.github.com", "HEAD"
    raw_name, raw_home = "GITHUB_RAW_ENDPOINT", "https://raw.githubusercontent.com"

    def __init__(self, repo: str, revision: str, pause: float) -> None:
        super().__init__(repo, revision, pause)
        self.raw = _base_url(self.raw_name, self.raw_home)
        self._lists = 0

    def _list(self) -> list[Remote]:
        return self._below(quote(self.revision, safe=""), "")

    def _below(self, tree: str, prefix: str) -> list[Remote]:
        """Return the files of a tree. A tree that is too large for one answer is listed folder by folder."""
        whole = self._tree(tree, "?recursive=1")
        if not whole.truncated:
            return [Remote(prefix + leaf.path, leaf.size, leaf.sha) for leaf in whole.tree if _is_file(leaf)]
        top = self._tree(tree, "")
        if top.truncated:
            raise DataError(f"{self.repo}: {shown(prefix) or 'its root'} holds more files than {self.endpoint} lists")
        files = []
        for leaf in top.tree:
            if _is_file(leaf):
                files.append(Remote(prefix + leaf.path, leaf.size, leaf.sha))
            elif leaf.type == "tree":
                self._checked(Remote(leaf.path, 0, leaf.sha))
                files += self._below(leaf.sha, f"{prefix}{leaf.path}/")
        return files

    def _tree(self, tree: str, query: str) -> _Tree:
        from huggingface_hub.utils import hf_raise_for_status, http_backoff

        self._lists += 1
        if self._lists > _MAX_LISTS:
            raise DataError(f"{self.repo}: more than {_MAX_LISTS} folders; download it with git instead")
        url = f"{self.endpoint}/repos/{self.repo}/git/trees/{tree}{query}"
        answer = http_backoff(
            "GET", url, headers=self.authorization(), timeout=_TIMEOUT, retry_on_status_codes=(500, 502, 503)
        )
        hf_raise_for_status(answer)
        return msgspec.json.decode(answer.content, type=_Tree)

    def source(self, file: Remote) -> tuple[str, dict[str, str]]:
        return f"{self.raw}/{self.repo}/{quote(self.revision, safe='')}/{quote(file.path)}", {}

    def _refusal(self, error: Exception, what: str) -> DataError | None:
        status, headers = _answer(error)
        if status in (403, 429) and headers.get("X-RateLimit-Remaining") == "0":
            return DataError(
                f"{shown(what)}: {self.endpoint} has reached its hourly limit of requests without a token; "
                f"set {self.token_name}, or wait an hour"
            )
        return super()._refusal(error, what)


def _is_file(leaf: _Leaf) -> bool:
    return leaf.type == "blob" and leaf.mode != "120000"  # the mode of a link


HOSTS: dict[str, type[Host]] = {"hub": Hub, "github": GitHub}


def _base_url(variable: str, home: str) -> str:
    """Return the URL in an environment variable, or `home` if it is not set."""
    url = os.environ.get(variable, "").rstrip("/") or home
    check_url(url, variable)
    return url


def _answer(error: Exception) -> tuple[int, Any]:
    """Return the status and headers of the answer that caused an error; 0 and no headers if there was no answer."""
    response = getattr(error, "response", None)
    return (0, {}) if response is None else (response.status_code, response.headers)


def is_whole(path: Path, file: Remote) -> bool:
    """Return whether the file exists with the expected size and digest."""
    if not path.is_file() or path.stat().st_size != file.size:
        return False
    digest = hashlib.sha256() if file.large else hashlib.sha1(b"blob %d\0" % file.size, usedforsecurity=False)
    with path.open("rb") as source:
        while chunk := source.read(1 << 20):
            digest.update(chunk)
    return digest.hexdigest() == file.digest


def as_size(count: int) -> str:
    """Return a number of bytes in MB or GB."""
    return f"{count / 1e9:.2f} GB" if count >= 1e9 else f"{count / 1e6:.1f} MB"
