"""The table of the deployment's keys in docs/deployment.md, generated from the keys.

``python -m compactor_dev.keys_table`` writes it between the markers.
"""

from __future__ import annotations

import json

from cdk.deployment_fields import DEPLOYMENT_KEYS, RUN_KEYS
from compactor.settings.fields import FIELDS
from compactor.settings.specs import FieldSpec
from compactor_dev.settings_table import DOCS, MadePage, heads, row


def table() -> str:
    """Return Markdown: a row for each deployment key, and the defaults of a run's fields."""
    lines = heads("Key")
    lines += [row(spec, f"`{_text(spec)}`") for spec in DEPLOYMENT_KEYS.values()]
    lines += [
        "",
        "Every field of a run is a key as well, and goes into the input of scheduled runs.",
    ]
    lines += ["The defaults of some differ:", ""]
    for name, spec in RUN_KEYS.items():
        if spec.default != FIELDS[name].default:
            lines.append(f"- `{name}` is `{_text(spec)}` by default.")
    return "\n".join(lines)


def _text(spec: FieldSpec) -> str:
    return json.dumps(spec.default)


PAGE = MadePage(DOCS / "deployment.md", "deployment keys", "compactor_dev.keys_table", table)

if __name__ == "__main__":
    PAGE.write()
