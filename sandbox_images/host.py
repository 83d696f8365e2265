"""What this machine says about itself: its release, its package mirror, its pip index, its CAs.

The base image is a copy of the host's own ways to reach packages, so that nothing here has to
name a mirror. Whatever carries a credential stays on the host: an image is readable by anyone
who gets a sandbox made from it.
"""

import configparser
import os
import re
import shlex
import subprocess
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from sandbox_images.errors import BaseImageError

_CERTIFICATE = re.compile(
    r"-----BEGIN CERTIFICATE-----.*?-----END CERTIFICATE-----", flags=re.DOTALL
)
_PACKAGE_LIST = re.compile(r"^'(.*)/dists/(.*)/([^/]+)/binary-[^/]+/Packages", flags=re.MULTILINE)
_MIRROR_FILE = re.compile(r"^'mirror\+file:(?://)?(?P<file>/.*?)/dists/", flags=re.MULTILINE)
_INDEX_KEYS = ("index-url", "extra-index-url", "trusted-host")
_APT_SETTINGS = (
    "Acquire::Check-Valid-Until",
    "Acquire::Check-Date",
    "Acquire::http::Proxy",
    "Acquire::https::Proxy",
)


@dataclass(frozen=True)
class Release:
    """The Debian (or derived) release that this machine runs, as `os-release` names it."""

    id: str
    codename: str


def parse_release(text: str) -> Release:
    """Read the text of an `os-release` file.

    Raises:
        BaseImageError: the file names no release codename.
    """
    fields: dict[str, str] = {}
    for line in text.splitlines():
        name, separator, value = line.partition("=")
        if separator and not line.startswith("#"):
            fields[name.strip()] = " ".join(shlex.split(value))
    codename = fields.get("VERSION_CODENAME", "")
    if not codename:
        raise BaseImageError(
            f"os-release of {fields.get('PRETTY_NAME', 'this system')} has no VERSION_CODENAME: "
            "the base image can only be built on a Debian release. Make a container registry "
            "reachable, or load an image named python:3.12-slim into the engine."
        )
    return Release(id=fields.get("ID", ""), codename=codename)


def carries_credential(url: str) -> bool:
    """Whether a URL holds a user name or a password."""
    return "@" in urlsplit(url).netloc


def image_sources(listing: str, codename: str) -> list[str]:
    """One-line apt sources for the image.

    Args:
        listing: what `apt-get --print-uris update` prints.
        codename: the release; its own suites (`-updates`, `-security`) are kept, others dropped.
    """
    components: dict[tuple[str, str], list[str]] = {}
    for uri, suite, component in _PACKAGE_LIST.findall(listing):
        own = suite == codename or suite.startswith(f"{codename}-")
        if own and not carries_credential(uri):
            known = components.setdefault((uri, suite), [])
            if component not in known:
                known.append(component)
    if not any(suite == codename for _, suite in components):
        return []
    return [f"deb {uri} {suite} {' '.join(names)}" for (uri, suite), names in components.items()]


def apt_options(dump: str) -> list[str]:
    """The settings of `apt-config dump` without which the host's mirror cannot be used."""
    kept: list[str] = []
    for line in dump.splitlines():
        name, _, value = line.partition(" ")
        value = value.rstrip(";").strip('"')
        if name in _APT_SETTINGS and value and not carries_credential(value):
            kept.append(f'{name} "{value}"')
    return kept


def pip_settings(config_files: Iterable[str], environ: Mapping[str, str]) -> dict[str, str]:
    """The package index that pip on this machine uses, as `[global]` settings for an image.

    Later files win over earlier ones and the environment over all, as in pip. Indexes that are
    directories of this machine or that carry a credential are left out.

    Args:
        config_files: the text of each pip configuration file, least important first.
        environ: the process environment (`PIP_INDEX_URL` and its like).
    """
    raw: dict[str, str] = {}
    for text in config_files:
        parser = configparser.RawConfigParser()
        parser.read_string(text)
        for section in ("global", "install"):
            if parser.has_section(section):
                raw.update({k: v for k, v in parser.items(section) if k in _INDEX_KEYS})
    for key in _INDEX_KEYS:
        value = environ.get(f"PIP_{key.upper().replace('-', '_')}")
        if value:
            raw[key] = value
    settings: dict[str, str] = {}
    for key, value in raw.items():
        words = value.split()
        if key != "trusted-host":
            words = [url for url in words if _shareable_index(url)]
        if words:
            settings[key] = " ".join(words)
    if not settings.keys() & {"index-url", "extra-index-url"}:
        return {}
    return settings


def _shareable_index(url: str) -> bool:
    return urlsplit(url).scheme in {"http", "https"} and not carries_credential(url)


def extra_certificates(bundle: str, known: Iterable[str]) -> list[str]:
    """The PEM certificates of `bundle` that are in none of the `known` PEM texts, in order."""
    seen = {_squeeze(pem) for text in known for pem in _CERTIFICATE.findall(text)}
    extra: list[str] = []
    for pem in _CERTIFICATE.findall(bundle):
        if _squeeze(pem) not in seen:
            seen.add(_squeeze(pem))
            extra.append(pem)
    return extra


def _squeeze(pem: str) -> str:
    return "".join(pem.split())


def read_release() -> Release:
    """The release of this machine; see `parse_release`."""
    return parse_release(_read(Path("/etc/os-release")))


def resolve_mirror_files(listing: str, read: Callable[[Path], str]) -> str:
    """Replace `mirror+file:` addresses, which name a file of this machine, by its first mirror.

    Args:
        listing: what `apt-get --print-uris update` prints.
        read: gives the text of a mirror file.
    """

    def first_mirror(found: re.Match[str]) -> str:
        lines = (line.split("#")[0].split() for line in read(Path(found["file"])).splitlines())
        mirror = next((words[0] for words in lines if words), found[0])
        return f"'{mirror.rstrip('/')}/dists/"

    return _MIRROR_FILE.sub(first_mirror, listing)


def read_sources(codename: str) -> list[str]:
    """This machine's own apt sources; empty when there are none to go by."""
    # Unlike apt's other listings, this one needs no package lists to be there yet.
    listing = _output("apt-get", "--print-uris", "update")
    return image_sources(resolve_mirror_files(listing, _read), codename)


def read_apt_options() -> list[str]:
    """This machine's own apt settings; see `apt_options`."""
    return apt_options(_output("apt-config", "dump"))


def read_pip_settings() -> dict[str, str]:
    """This machine's own package index; see `pip_settings`."""
    home = Path.home()
    directories = os.environ.get("XDG_CONFIG_DIRS", "/etc/xdg").split(":")
    user = Path(os.environ.get("XDG_CONFIG_HOME", home / ".config"))
    paths = [Path(directory) / "pip/pip.conf" for directory in reversed(directories)]
    paths += [Path("/etc/pip.conf"), home / ".pip/pip.conf", user / "pip/pip.conf"]
    if named := os.environ.get("PIP_CONFIG_FILE"):
        paths.append(Path(named))
    return pip_settings([_read(path) for path in paths if path.is_file()], os.environ)


def read_extra_certificates() -> list[str]:
    """The CAs that this machine trusts beyond those of Debian's ca-certificates package."""
    bundles = (os.environ.get("SSL_CERT_FILE"), "/etc/ssl/certs/ca-certificates.crt")
    bundle = next((Path(path) for path in bundles if path and Path(path).is_file()), None)
    if bundle is None:
        return []
    shipped = sorted(Path("/usr/share/ca-certificates").rglob("*.crt"))
    return extra_certificates(_read(bundle), (_read(path) for path in shipped))


def _read(path: Path) -> str:
    return path.read_text(encoding="utf-8", errors="replace")


def _output(*command: str) -> str:
    try:
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout
    except (OSError, subprocess.CalledProcessError):
        # No apt, or none that lists its sources: mmdebstrap's defaults take over.
        return ""
