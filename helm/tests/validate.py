#!/usr/bin/env python3
"""Validates the rendered objects strictly against the schemas of one version of Kubernetes.

    validate.py 1.34

crds/KIND.json validates other kinds, and allows only what the chart uses. A kind without a schema is a failure.
"""
import json
import sys

import jsonschema
import kubernetes_validate

from chart import HERE, Report, render, value_files


def problems(item, version):
    """The errors of one object."""
    name = f"{item['kind']} {item['metadata']['name']}"
    own = HERE / "crds" / f"{item['kind']}.json"
    if own.exists():
        schema = json.loads(own.read_text())
        errors = jsonschema.Draft7Validator(schema).iter_errors(item)
        return [f"{name}: {error.json_path}: {error.message}" for error in errors]
    try:
        kubernetes_validate.validate(item, version, strict=True)
    except kubernetes_validate.ValidationError as error:
        where = ".".join(str(part) for part in error.path)
        return [f"{name}: {where}: {error.message}"]
    except kubernetes_validate.SchemaNotFoundError:
        return [f"{name}: Kubernetes {version} has no {item['apiVersion']} {item['kind']}, and helm/tests/crds neither"]
    return []


def main():
    version = sys.argv[1]
    report = Report()
    for name, values in value_files().items():
        objects = render(values, f"{version}.0")
        report.say(f"{name} ({len(objects)} objects)", [text for item in objects for text in problems(item, version)])
    # Tests this check: it detects unknown fields, in Kubernetes' own kinds and in others.
    for kind, wrong in {"v1 Service": {"spec": {"ports": [{"port": 80, "bogus": 1}]}}, "x/v1 Nothing": {}}.items():
        api, kind = kind.split()
        found = problems({"apiVersion": api, "kind": kind, "metadata": {"name": "x"}, **wrong}, version)
        report.say(f"a wrong {kind} is refused", [] if found else ["it is taken"])
    report.end()


if __name__ == "__main__":
    main()
