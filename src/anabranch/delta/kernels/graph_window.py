"""The union of events of a sliding window on arrays, and the facts that its elements give.

In a window whose events leave in the order of time, the newest event that gives a value of an element leaves last of
all that give one. So a value stays until its own event leaves, or a newer event brings another: no older value ever
comes back. Existence, each label and each property therefore need one number each, the position of the newest event
that gave it.

A node or relationship has a slot while it is in the window. `take_in` writes the arrivals, notes the slots whose
element may have changed, and counts relationships at their ends; `emit` compares these slots with the facts that they
gave before.

Invariant: a slot is free exactly when its element is not in the window, between calls. Positions grow.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from anabranch.delta.batch import ABSENT, NULL, Ids
from anabranch.delta.graph_rows import LinkRows, NodeRows
from anabranch.delta.kernels.compiling import Int, Record, Records, Small, fields, inlined, kernel

Bits = npt.NDArray[np.int64]
"""One bit for each kind, or for each label."""

NODE = np.dtype(fields("key seen degree bits version mark"))
LINK = np.dtype(fields("key seen type source target old_type old_source old_target bits version mark"))
LOGGED = np.dtype(fields("position slot"))
STATE = np.dtype(
    fields(
        "node_free nodes link_free links node_head node_end link_head link_end "
        "touched_nodes touched_links removed added next_version versions"
    )
)
NONE = -1
FACT = 5
RECORD = 4
"""The cells of a version before its values: key, type, source, target."""


class NodeTable(NamedTuple):
    """Nodes by slot. `slots` are the slots by key; `labels` and `times` the positions that gave labels and values;
    `told` the values of the last version; `log` the arrivals in their order; `touched` the slots to look at."""

    records: Records
    slots: Small
    labels: Ids
    values: Ids
    times: Ids
    told: Ids
    log: Records
    touched: Ids


class LinkTable(NamedTuple):
    """Relationships by slot."""

    records: Records
    slots: Small
    values: Ids
    times: Ids
    told: Ids
    log: Records
    touched: Ids


class Present(NamedTuple):
    """The touched elements as they are now: the values of nodes and relationships, null where there is none, and the
    labels of nodes as bits."""

    nodes: Ids
    labels: Bits
    links: Ids


class KindTable(NamedTuple):
    """What kinds ask for. `labels_of_set` are the labels of a label set as bits, `needs` the labels that a kind of
    nodes needs, `kinds_of_type` the kinds of relationships that a type allows. `masks` are, as bits, the shown kinds of
    nodes, and the shown and the undirected kinds of relationships. `numbers` are the numbers of kinds in facts, those
    of nodes first."""

    labels_of_set: Bits
    needs: Bits
    kinds_of_type: Bits
    masks: Bits
    node_numbers: Ids
    link_numbers: Ids


class Emission(NamedTuple):
    """The facts that left and that came, and the records of new versions."""

    removed: Ids
    added: Ids
    versions: Ids


# --- taking in ---


@inlined
def _node_slot(nodes: NodeTable, state: Record, key: Int) -> Int:
    slot = np.int64(nodes.slots[key])
    if slot >= 0:
        return slot
    slot = state.node_free
    if slot >= 0:
        state.node_free = nodes.records[slot].degree
    else:
        slot = state.nodes
        state.nodes += 1
    record = nodes.records[slot]
    record.key = key
    record.seen = NONE
    record.degree = 0
    record.bits = 0
    record.version = 0
    record.mark = 0
    for label in range(nodes.labels.shape[1]):
        nodes.labels[slot, label] = NONE
    for column in range(nodes.values.shape[1]):
        nodes.times[slot, column] = NONE
    nodes.slots[key] = slot
    return slot


@inlined
def _link_slot(links: LinkTable, state: Record, key: Int) -> Int:
    slot = np.int64(links.slots[key])
    if slot >= 0:
        return slot
    slot = state.link_free
    if slot >= 0:
        state.link_free = links.records[slot].type
    else:
        slot = state.links
        state.links += 1
    record = links.records[slot]
    record.key = key
    record.old_source = NONE
    record.old_target = NONE
    record.bits = 0
    record.version = 0
    record.mark = 0
    for column in range(links.values.shape[1]):
        links.times[slot, column] = NONE
    links.slots[key] = slot
    return slot


@inlined
def _touch_node(nodes: NodeTable, state: Record, slot: Int) -> None:
    if nodes.records[slot].mark == 0:
        nodes.records[slot].mark = 1
        nodes.touched[state.touched_nodes] = slot
        state.touched_nodes += 1


@inlined
def _touch_link(links: LinkTable, state: Record, slot: Int) -> None:
    if links.records[slot].mark == 0:
        links.records[slot].mark = 1
        links.touched[state.touched_links] = slot
        state.touched_links += 1


@kernel
def take_in(
    nodes: NodeTable,
    links: LinkTable,
    states: Records,
    kinds: KindTable,
    new_nodes: NodeRows,
    new_links: LinkRows,
    first: Int,
) -> None:
    """Add arrivals and let the events before the position `first` leave; note the elements that may have changed."""
    state = states[0]
    state.touched_nodes = 0
    state.touched_links = 0
    for row in range(new_nodes.keys.size):
        position = new_nodes.positions[row]
        slot = _node_slot(nodes, state, new_nodes.keys[row])
        nodes.records[slot].seen = position
        bits = kinds.labels_of_set[new_nodes.label_sets[row]]
        for label in range(nodes.labels.shape[1]):
            if (bits >> label) & 1:
                nodes.labels[slot, label] = position
        for column in range(nodes.values.shape[1]):
            value = new_nodes.values[row, column]
            if value != ABSENT:
                nodes.values[slot, column] = value
                nodes.times[slot, column] = position
        _touch_node(nodes, state, slot)
        entry = nodes.log[state.node_end]
        entry.position = position
        entry.slot = slot
        state.node_end += 1
    for row in range(new_links.keys.size):
        position = new_links.positions[row]
        source = _node_slot(nodes, state, new_links.sources[row])
        target = _node_slot(nodes, state, new_links.targets[row])
        slot = _link_slot(links, state, new_links.keys[row])
        record = links.records[slot]
        record.seen = position
        record.type = new_links.types[row]
        record.source = source
        record.target = target
        for column in range(links.values.shape[1]):
            value = new_links.values[row, column]
            if value != ABSENT:
                links.values[slot, column] = value
                links.times[slot, column] = position
        _touch_link(links, state, slot)
        # An end without a relationship, because a later event of this slide moved it, is let go again.
        _touch_node(nodes, state, source)
        _touch_node(nodes, state, target)
        entry = links.log[state.link_end]
        entry.position = position
        entry.slot = slot
        state.link_end += 1
    while state.node_head < state.node_end and nodes.log[state.node_head].position < first:
        _touch_node(nodes, state, nodes.log[state.node_head].slot)
        state.node_head += 1
    while state.link_head < state.link_end and links.log[state.link_head].position < first:
        _touch_link(links, state, links.log[state.link_head].slot)
        state.link_head += 1
    for at in range(state.touched_links):
        record = links.records[links.touched[at]]
        lives = record.seen >= first
        if record.old_source >= 0 and (
            not lives or record.source != record.old_source or record.target != record.old_target
        ):
            nodes.records[record.old_source].degree -= 1
            nodes.records[record.old_target].degree -= 1
            _touch_node(nodes, state, record.old_source)
            _touch_node(nodes, state, record.old_target)
        if lives and (record.source != record.old_source or record.target != record.old_target):
            nodes.records[record.source].degree += 1
            nodes.records[record.target].degree += 1
            _touch_node(nodes, state, record.source)
            _touch_node(nodes, state, record.target)


@kernel
def show(nodes: NodeTable, links: LinkTable, states: Records, first: Int, present: Present) -> None:
    """Write the touched elements as they are now."""
    state = states[0]
    for at in range(state.touched_nodes):
        slot = nodes.touched[at]
        bits = 0
        for label in range(nodes.labels.shape[1]):
            if nodes.labels[slot, label] >= first:
                bits |= 1 << label
        present.labels[at] = bits
        for column in range(nodes.values.shape[1]):
            lives = nodes.times[slot, column] >= first
            present.nodes[at, column] = nodes.values[slot, column] if lives else NULL
    for at in range(state.touched_links):
        slot = links.touched[at]
        for column in range(links.values.shape[1]):
            lives = links.times[slot, column] >= first
            present.links[at, column] = links.values[slot, column] if lives else NULL


# --- giving out ---


@inlined
def _put(facts: Ids, place: Int, end: Int, kind: Int, other: Int, identity: Int, content: Int) -> None:
    facts[place, 0] = end
    facts[place, 1] = kind
    facts[place, 2] = other
    facts[place, 3] = identity
    facts[place, 4] = content


@inlined
def _changed(told: Ids, slot: Int, now: Ids, at: Int) -> bool:
    for column in range(now.shape[1]):  # noqa: SIM110  kernels have no generators
        if told[slot, column] != now[at, column]:
            return True
    return False


@inlined
def _new_version(state: Record, out: Emission, told: Ids, slot: Int, now: Ids, at: Int) -> Int:
    """Number a new version of an element and write its values; the caller writes the rest of its record."""
    place = state.versions
    state.versions += 1
    for column in range(now.shape[1]):
        told[slot, column] = now[at, column]
        out.versions[place, RECORD + column] = now[at, column]
    return state.next_version + place


@kernel
def emit_nodes(
    nodes: NodeTable, states: Records, kinds: KindTable, present: Present, passes: Bits, first: Int, out: Emission
) -> None:
    """Write the facts of touched nodes that left and came. `passes` are the kinds whose conditions hold, as bits."""
    state = states[0]
    state.removed = 0
    state.added = 0
    state.versions = 0
    shown = kinds.masks[0]
    for at in range(state.touched_nodes):
        slot = nodes.touched[at]
        record = nodes.records[slot]
        record.mark = 0
        lives = record.seen >= first or record.degree > 0
        bits = 0
        if lives:
            labels = present.labels[at]
            for kind in range(kinds.needs.size):
                if labels & kinds.needs[kind] == kinds.needs[kind]:
                    bits |= 1 << kind
            bits &= passes[at]
        old, before = record.bits, record.version
        version = before
        renewed = False
        if bits & shown and (not old & shown or _changed(nodes.told, slot, present.nodes, at)):
            renewed = True
            place = state.versions
            version = _new_version(state, out, nodes.told, slot, present.nodes, at)
            out.versions[place, 0] = record.key
            out.versions[place, 1] = NONE
            out.versions[place, 2] = NONE
            out.versions[place, 3] = NONE
        for kind in range(kinds.needs.size):
            was, is_now = (old >> kind) & 1, (bits >> kind) & 1
            is_shown = (shown >> kind) & 1
            anew = is_shown and renewed
            if was and (not is_now or anew):
                content = before if is_shown else NULL
                _put(out.removed, state.removed, slot + 1, kinds.node_numbers[kind], content, NULL, NULL)
                state.removed += 1
            if is_now and (not was or anew):
                content = version if is_shown else NULL
                _put(out.added, state.added, slot + 1, kinds.node_numbers[kind], content, NULL, NULL)
                state.added += 1
        record.bits = bits
        record.version = version
        if not lives:
            nodes.slots[record.key] = NONE
            record.degree = state.node_free
            state.node_free = slot


@kernel
def emit_links(
    links: LinkTable,
    nodes: NodeTable,
    states: Records,
    kinds: KindTable,
    present: Present,
    passes: Bits,
    first: Int,
    out: Emission,
) -> None:
    """Write the facts of touched relationships that left and came, behind those of nodes."""
    state = states[0]
    shown, both_ways = kinds.masks[1], kinds.masks[2]
    for at in range(state.touched_links):
        slot = links.touched[at]
        record = links.records[slot]
        record.mark = 0
        lives = record.seen >= first
        bits = 0
        if lives:
            bits = kinds.kinds_of_type[record.type] & passes[at]
        moved = record.source != record.old_source or record.target != record.old_target
        anew = moved or record.type != record.old_type
        old, before = record.bits, record.version
        version = before
        renewed = False
        if bits & shown and (not old & shown or anew or _changed(links.told, slot, present.links, at)):
            renewed = True
            place = state.versions
            version = _new_version(state, out, links.told, slot, present.links, at)
            out.versions[place, 0] = record.key
            out.versions[place, 1] = record.type
            out.versions[place, 2] = nodes.records[record.source].key
            out.versions[place, 3] = nodes.records[record.target].key
        for kind in range(kinds.link_numbers.size):
            was, is_now = (old >> kind) & 1, (bits >> kind) & 1
            is_shown, turns = (shown >> kind) & 1, (both_ways >> kind) & 1
            replaced = moved or (is_shown and renewed)
            number = kinds.link_numbers[kind]
            if was and (not is_now or replaced):
                content = before if is_shown else NULL
                one, other = record.old_source + 1, record.old_target + 1
                _put(out.removed, state.removed, one, number, other, slot + 1, content)
                state.removed += 1
                if turns and one != other:
                    _put(out.removed, state.removed, other, number, one, slot + 1, content)
                    state.removed += 1
            if is_now and (not was or replaced):
                content = version if is_shown else NULL
                one, other = record.source + 1, record.target + 1
                _put(out.added, state.added, one, number, other, slot + 1, content)
                state.added += 1
                if turns and one != other:
                    _put(out.added, state.added, other, number, one, slot + 1, content)
                    state.added += 1
        record.bits = bits
        record.version = version
        if lives:
            record.old_source = record.source
            record.old_target = record.target
            record.old_type = record.type
        else:
            links.slots[record.key] = NONE
            record.type = state.link_free
            state.link_free = slot
