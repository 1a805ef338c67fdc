"""Reading the JSON export of Label Studio as a long table."""

import json
import urllib.parse

from alim_keras.data.messages import first_five
from alim_keras.data.tables import columns
from alim_keras.data.tables.table import Column
from alim_keras.data.tables.table import Table
from alim_keras.errors import DataError


def is_export(rows):
    """Returns whether a list of objects is one of Label Studio's tasks."""
    return bool(rows) and all(
        isinstance(row, dict)
        and isinstance(row.get("data"), dict)
        and isinstance(row.get("annotations"), list)
        for row in rows
    )


def read(path, tasks, findings):
    """Returns a `Table` with item, annotator and label, a row for each vote.

    Tasks without a vote have a row with a blank label. Cancelled annotations
    and repeated ones are left out and counted.

    Raises:
        DataError: The item's name is unclear, or an annotation holds no
            choices, or those of several questions.
    """
    name = _item_key(path, tasks)
    rows, seen_tasks, questions = [], {}, {}
    found = {"annotations": 0, "cancelled": 0, "duplicates": 0}
    repeated_tasks = 0
    for number, task in enumerate(tasks):
        where = f"{path}: task {number}"
        item = task["data"].get(name)
        if not isinstance(item, (str, int)) or isinstance(item, bool):
            raise DataError(
                f"{where}: no text in data.{name}. Received: {repr(item)[:60]}"
            )
        item = _file_of(item)
        key = json.dumps([task.get("id"), item])
        repeated_tasks += key in seen_tasks
        seen = seen_tasks.setdefault(key, set())
        voted = bool(seen)
        for annotation in task["annotations"]:
            if not isinstance(annotation, dict):
                raise DataError(
                    f"{where}: an annotation is no object. "
                    f"Received: {repr(annotation)[:60]}"
                )
            found["annotations"] += 1
            if annotation.get("was_cancelled"):
                found["cancelled"] += 1
                continue
            choices = _choices(annotation, where, questions)
            who = _who(annotation.get("completed_by"))
            same = json.dumps([who, sorted(set(choices))])
            if same in seen:
                found["duplicates"] += 1
                continue
            seen.add(same)
            voted = voted or bool(choices)
            rows.extend((item, who, choice) for choice in choices)
        if not voted:
            rows.append((item, None, None))
    if len(questions) > 1:
        raise DataError(
            f"{path}: the annotations answer several questions "
            f"({first_five(sorted(questions))}); export one of them"
        )
    _say(findings, len(seen_tasks), repeated_tasks, found, rows)
    cells = {
        "item": [row[0] for row in rows],
        "annotator": [row[1] for row in rows],
        "label": [row[2] for row in rows],
    }
    return Table(
        path,
        tuple(cells),
        lambda column: Column.of(cells[column]),
        len(rows),
        unit="vote",
    )


def _say(findings, num_tasks, repeated_tasks, found, rows):
    people = {row[1] for row in rows if row[1] is not None}
    findings.note(
        f"Label Studio: {num_tasks} tasks, {found['annotations']} "
        f"annotations, {len(people)} annotators"
    )
    findings.count("tasks", num_tasks)
    findings.count("annotations", found["annotations"])
    for name, text in (
        ("cancelled", "cancelled annotations: left out"),
        ("duplicates", "repeated annotations: left out"),
    ):
        if found[name]:
            findings.note(f"{found[name]} {text}")
            findings.count(f"{name}_annotations", found[name])
    if repeated_tasks:
        findings.note(f"{repeated_tasks} tasks are there more than once")


def _item_key(path, tasks):
    """Returns the field of data that names the items."""
    keys = {}
    for task in tasks:
        keys.update(task["data"])
    for names in (columns.IMAGE, columns.ITEM):
        known = [key for key in keys if key.lower() in names]
        if len(known) == 1:
            return known[0]
        if known:
            break
    else:
        known = list(keys)
    if len(known) == 1:
        return known[0]
    raise DataError(
        f"{path}: the fields of data, {first_five(known)}, could all name the "
        "item; export the tasks with one field called image"
    )


def _file_of(item):
    """Returns the file that a link to local files means."""
    if isinstance(item, str) and "local-files/?d=" in item:
        return urllib.parse.unquote(item.partition("?d=")[2])
    return item


def _who(person):
    if isinstance(person, dict):
        for key in ("email", "username", "id"):
            if person.get(key) not in (None, ""):
                return str(person[key])
        return "unknown"
    return "unknown" if person is None else str(person)


def _choices(annotation, where, questions):
    choices = []
    results = annotation.get("result")
    if not isinstance(results, list):
        raise DataError(f"{where}: an annotation without a list of results")
    for result in results:
        value = result.get("value") if isinstance(result, dict) else None
        if not isinstance(value, dict):
            raise DataError(
                f"{where}: a result without a value. "
                f"Received: {repr(result)[:60]}"
            )
        found = value.get("choices")
        if found is None:
            continue  # A comment or a box beside the choices.
        if not isinstance(found, list) or not all(
            isinstance(choice, str) for choice in found
        ):
            raise DataError(
                f"{where}: choices must be a list of names. "
                f"Received: {repr(found)[:60]}"
            )
        questions[str(result.get("from_name"))] = True
        choices.extend(found)
    return choices
