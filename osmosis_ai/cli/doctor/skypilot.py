"""Checks of SkyPilot, which only trials in its sandboxes need."""

from osmosis_ai.cli.doctor.findings import Finding, ok, warn


def skypilot() -> list[Finding]:
    """Whether trials can run in SkyPilot's sandboxes from here."""
    from harbor_backend.admin import check_skypilot, installed_version

    if installed_version() is None:
        return [ok("skypilot", "not installed; only trials in its sandboxes need it")]
    return [
        ok(check.name, check.detail)
        if check.remedy is None
        else warn(check.name, check.detail, check.remedy)
        for check in check_skypilot()
    ]
