"""What the base image is made of, as data: hashed into a label, so that a change is noticed."""

import hashlib
import json
from dataclasses import asdict, dataclass
from pathlib import Path

from sandbox_images import host
from sandbox_images.host import Release

IMAGE_LABEL = "ai.osmosis.image"
RECIPE_LABEL = "ai.osmosis.base-recipe"

# bash and curl are what task scripts expect to find; procps is for looking into a sandbox.
PACKAGES = ("bash", "ca-certificates", "curl", "procps")
_CA_BUNDLE = "/etc/ssl/certs/ca-certificates.crt"
_ENVIRONMENT = {
    "PATH": "/usr/local/bin:/usr/local/sbin:/usr/sbin:/usr/bin:/sbin:/bin",
    "LANG": "C.UTF-8",
    "SSL_CERT_FILE": _CA_BUNDLE,
    "PIP_CERT": _CA_BUNDLE,
    "REQUESTS_CA_BUNDLE": _CA_BUNDLE,
}
# As in Debian's own slim images: manuals and translations stay out, licences stay in.
_DPKG_OPTIONS = (
    "path-exclude=/usr/share/man/*",
    "path-exclude=/usr/share/info/*",
    "path-exclude=/usr/share/locale/*",
    "path-exclude=/usr/share/doc/*",
    "path-include=/usr/share/doc/*/copyright",
)
# Debian 12 merges /usr with a package that pulls in all of Perl (50 MB), unless it finds /usr
# merged; later releases come merged.
_PREMERGED = {
    "bookworm": ("--include=usr-is-merged", "--hook-dir=/usr/share/mmdebstrap/hooks/merged-usr")
}
# Package lists that a Dockerfile's `apt-get update` leaves behind: compressed, and no caches
# (a tenth of the size).
_APT_LEAN = 'Acquire::GzipIndexes "true";\nDir::Cache::pkgcache "";\nDir::Cache::srcpkgcache "";\n'
FINISH_PATH = "osmosis-finish.sh"
FINISH_SCRIPT = Path(__file__).with_name("finish.sh")


@dataclass(frozen=True)
class Recipe:
    """Everything that decides the content of the base image, apart from package versions.

    Attributes:
        release: the Debian release to bootstrap.
        sources: one-line apt sources; empty for mmdebstrap's own default.
        apt_options: apt settings for the bootstrap and for the image.
        pip_conf: the text of the image's `/etc/pip.conf`; empty for none.
        certificates: PEM texts of CAs to trust beyond Debian's.
    """

    release: Release
    sources: tuple[str, ...] = ()
    apt_options: tuple[str, ...] = ()
    pip_conf: str = ""
    certificates: tuple[str, ...] = ()

    def digest(self) -> str:
        """A short hash of the recipe and of the code that carries it out.

        The interpreter is not part of it: whichever one is at hand gives an image that serves.
        """
        parts = json.dumps(
            [
                asdict(self),
                PACKAGES,
                _ENVIRONMENT,
                _DPKG_OPTIONS,
                _PREMERGED,
                _APT_LEAN,
                FINISH_SCRIPT.read_text(),
            ],
            sort_keys=True,
        )
        return hashlib.sha256(parts.encode()).hexdigest()[:16]

    def changes(self) -> list[str]:
        """The image's configuration, as instructions for the engine's import."""
        environment = [f"ENV {name}={value}" for name, value in _ENVIRONMENT.items()]
        return [
            *environment,
            f"LABEL {IMAGE_LABEL}=base",
            f"LABEL {RECIPE_LABEL}={self.digest()}",
            'CMD ["python3"]',
        ]

    def files(self) -> dict[str, str]:
        """The text files that the recipe adds to the root file system, by path below it."""
        added = {
            FINISH_PATH: FINISH_SCRIPT.read_text(),
            "etc/apt/apt.conf.d/osmosis-lean": _APT_LEAN,
        }
        if self.pip_conf:
            added["etc/pip.conf"] = self.pip_conf
        for number, pem in enumerate(self.certificates):
            added[f"usr/local/share/ca-certificates/host-{number}.crt"] = f"{pem}\n"
        return added

    def bootstrap_command(self, packages: list[str], overlay: Path, target: Path) -> list[str]:
        """The mmdebstrap command; the sources go to its standard input.

        Args:
            packages: what to install beyond `PACKAGES`.
            overlay: a tar file to unpack over the root before the finishing script runs.
            target: the tar file to write.
        """
        return [
            "mmdebstrap",
            "--variant=minbase",
            f"--include={','.join([*PACKAGES, *packages])}",
            *_PREMERGED.get(self.release.codename, ()),
            *(f"--aptopt={option}" for option in self.apt_options),
            *(f"--dpkgopt={option}" for option in _DPKG_OPTIONS),
            f"--customize-hook=tar-in {overlay} /",
            f'--customize-hook=chroot "$1" sh /{FINISH_PATH}',
            f'--customize-hook=rm "$1/{FINISH_PATH}"',
            self.release.codename,
            str(target),
            *(["-"] if self.sources else []),
        ]


def read_recipe() -> Recipe:
    """The recipe for this machine.

    Raises:
        BaseImageError: this machine's release cannot be told.
    """
    release = host.read_release()
    settings = host.read_pip_settings()
    lines = [f"{key} = {value}" for key, value in sorted(settings.items())]
    return Recipe(
        release=release,
        sources=tuple(host.read_sources(release.codename)),
        apt_options=tuple(host.read_apt_options()),
        pip_conf="\n".join(["[global]", *lines, ""]) if lines else "",
        certificates=tuple(host.read_extra_certificates()),
    )
