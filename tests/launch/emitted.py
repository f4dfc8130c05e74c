#!/usr/bin/env python3
"""What tandem run --emit printed, read by other programs than tandem.

    emitted.py check SCHEMAS FILE     mistakes of a manifest, one a line; exit status 1 where there is one.
                                      SCHEMAS: published definitions of JobSet and MPIJob, as JSON
    emitted.py words FILE WORD...     does a manifest or driver give the ranks these words?
    emitted.py pod FILE INDEX         environment of one pod of a JobSet, as Kubernetes makes it
"""
import ast
import json
import os
import re
import sys

import yaml

REFERENCE = re.compile(r"\$\$|\$\(([^)]*)\)")


# ---- the published definitions -----------------------------------------------------------------

def strict(schema):
    """A schema that also refuses unknown members, as `kubectl --validate=strict` does."""
    if isinstance(schema, list):
        return [strict(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    if schema.get("x-kubernetes-int-or-string"):
        return {"type": ["integer", "string"]}
    result = {key: strict(value) for key, value in schema.items()}
    if isinstance(schema.get("properties"), dict):
        # Its values are schemas whatever they are called.
        result["properties"] = {key: strict(value) for key, value in schema["properties"].items()}
        if not schema.get("x-kubernetes-preserve-unknown-fields"):
            result.setdefault("additionalProperties", False)
    return result


def without_nulls(value):
    if isinstance(value, dict):
        return {key: without_nulls(one) for key, one in value.items() if one is not None}
    return [without_nulls(one) for one in value] if isinstance(value, list) else value


def schema_mistakes(manifest, schemas):
    import jsonschema
    kind = f"{manifest.get('apiVersion')} {manifest.get('kind')}"
    if kind not in schemas:
        yield f"there is no definition of '{kind}'"
        return
    validator = jsonschema.Draft7Validator(strict(schemas[kind]))
    for error in validator.iter_errors(without_nulls(manifest)):
        yield "/".join(map(str, error.absolute_path)) + ": " + error.message[:200]


# ---- rules that the definitions leave to the controllers -----------------------------------------

def pods_of(manifest):
    """(what a pod's host name ends in, its replicas, its spec, the Job it belongs to or {})"""
    spec = manifest["spec"]
    if manifest["kind"] == "JobSet":
        for group in spec["replicatedJobs"]:
            job = group["template"]["spec"]
            yield f"-{group['name']}-0-", job["parallelism"], job["template"]["spec"], job
    else:
        for name, group in spec["mpiReplicaSpecs"].items():
            yield f"-{name.lower()}-", group["replicas"], group["template"]["spec"], {}


def pod_mistakes(pod, job):
    volumes = {volume["name"]: volume for volume in pod.get("volumes", [])}
    used = set()
    for container in pod["containers"]:
        where = container["name"]
        size = container.get("resources", {})
        if not size.get("requests") or size.get("requests") != size.get("limits"):
            yield f"{where}: requests and limits are not equal"
        mounts = {mount["mountPath"]: mount["name"] for mount in container.get("volumeMounts", [])}
        used.update(mounts.values())
        for name in set(mounts.values()) - set(volumes):
            yield f"{where}: there is no volume '{name}'"
        shared = volumes.get(mounts.get("/dev/shm"), {})
        if shared.get("emptyDir", {}).get("medium") != "Memory":
            yield f"{where}: /dev/shm is not in memory"
        if not any("persistentVolumeClaim" in volumes.get(name, {}) for name in mounts.values()):
            yield f"{where}: no claim is mounted"
        known = set()
        for variable in container.get("env", []):
            for name in REFERENCE.findall(variable.get("value", "")):
                if name and name not in known:
                    yield f"{where}: {variable['name']} refers to {name}, which is not set before it"
            known.add(variable["name"])
    for name in set(volumes) - used:
        yield f"volume '{name}' is not mounted"
    if not pod.get("terminationGracePeriodSeconds"):
        yield "a pod has no grace period"
    for rule in job.get("podFailurePolicy", {}).get("rules", []):
        if pod.get("restartPolicy") != "Never":
            yield "podFailurePolicy needs restartPolicy: Never"
        codes = rule.get("onExitCodes", {})
        names = [container["name"] for container in pod["containers"]]
        if codes.get("containerName", names[0]) not in names:
            yield f"podFailurePolicy names the container '{codes['containerName']}', which is none"
        if codes.get("operator") not in ("In", "NotIn"):
            yield f"podFailurePolicy has the operator '{codes.get('operator')}'"
        if rule["action"] not in ("FailJob", "FailIndex", "Ignore", "Count"):
            yield f"podFailurePolicy has the action '{rule['action']}'"


def mistakes(manifest, schemas):
    found = list(schema_mistakes(manifest, schemas))
    if found: # what follows reads members whose kind is known
        return found
    name = manifest["metadata"].get("name")
    if not isinstance(name, str) or not re.fullmatch(r"[a-z]([-a-z0-9]*[a-z0-9])?", name):
        found.append(f"metadata/name: {name!r} is no DNS-1035 label")
    for key in set(manifest["metadata"]) - {"name", "namespace", "labels", "annotations"}:
        found.append(f"metadata: unknown member '{key}'")
    for ending, replicas, pod, job in pods_of(manifest):
        if len(f"{name}{ending}{replicas - 1}") > 63:
            found.append(f"{name}{ending}{replicas - 1} is too long for a host name")
        found.extend(pod_mistakes(pod, job))
    spec = manifest["spec"]
    if manifest["kind"] == "MPIJob":
        groups = spec["mpiReplicaSpecs"]
        if set(groups) != {"Launcher", "Worker"} or groups["Launcher"]["replicas"] != 1:
            found.append("an MPIJob has one Launcher, and Worker")
        for key, group in groups.items():
            if group.get("restartPolicy") not in ("Never", "OnFailure"):
                found.append(f"{key}: restartPolicy '{group.get('restartPolicy')}'")
        if spec.get("launcherCreationPolicy", "AtStartup") not in ("AtStartup", "WaitForWorkersReady"):
            found.append(f"launcherCreationPolicy '{spec['launcherCreationPolicy']}'")
        worker = groups.get("Worker", {"template": {"spec": {"containers": [{}]}}})
        if "readinessProbe" not in worker["template"]["spec"]["containers"][0]:
            found.append("Worker: no readinessProbe")
    else:
        for _, _, pod, job in pods_of(manifest):
            if pod.get("restartPolicy") not in ("Never", "OnFailure"):
                found.append(f"restartPolicy '{pod.get('restartPolicy')}' of a Job")
            if job.get("completionMode") != "Indexed" or job["completions"] != job["parallelism"]:
                found.append("the Job does not give each pod a number")
    return found


# ---- words and variables -------------------------------------------------------------------------

def expand(text, variables):
    """What Kubernetes makes of an argument or the value of a variable."""
    def replace(match):
        if match[0] == "$$":
            return "$"
        return variables.get(match[1], match[0])
    return REFERENCE.sub(replace, text)


def words_of(text):
    if text.startswith("#!"):
        for node in ast.parse(text).body:
            if isinstance(node, ast.Assign) and node.targets[0].id == "WORDS":
                return ast.literal_eval(node.value)
    manifest = yaml.safe_load(text)
    for ending, _, pod, _ in pods_of(manifest):
        if ending != "-worker-":
            return [expand(word, {}) for word in pod["containers"][0]["args"]]
    return []


def pod_environment(manifest, index):
    name = manifest["metadata"]["name"]
    fields = {
        "metadata.annotations['batch.kubernetes.io/job-completion-index']": index,
        "metadata.labels['batch.kubernetes.io/controller-uid']": "UID",
        "metadata.labels['jobset.sigs.k8s.io/jobset-name']": name,
    }
    variables = {}
    _, _, pod, _ = next(pods_of(manifest))
    for variable in pod["containers"][0]["env"]:
        if "valueFrom" in variable:
            value = fields[variable["valueFrom"]["fieldRef"]["fieldPath"]]
        else:
            value = expand(variable["value"], variables)
        variables[variable["name"]] = value
    return variables


def main(command, *arguments):
    if command == "check":
        with open(arguments[0]) as schemas, open(arguments[1], encoding="utf-8") as manifest:
            found = mistakes(yaml.safe_load(manifest), json.load(schemas))
        print("\n".join(found))
        return int(bool(found))
    with open(arguments[0], encoding="utf-8") as file:
        text = file.read()
    if command == "words":
        words = [os.fsencode(word) for word in words_of(text)]
        wanted = [os.fsencode(word) for word in arguments[1:]]
        print(words, wanted, sep="\n")
        return int(words != wanted)
    for name, value in pod_environment(yaml.safe_load(text), arguments[1]).items():
        print(f"{name}={value}")
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
